"""A file of accepted differences: one line each, a group's key and a reason.

``KEY -- REASON``. Empty lines, and lines that begin with ``#``, are ignored.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rich.markup import escape

from ..common.errors import CannotRun

_BETWEEN = " -- "


@dataclass(frozen=True, slots=True)
class Accepted:
    """``line``: its number in the file."""

    key: str
    reason: str
    line: int


def read_known(path: Path) -> dict[str, Accepted]:
    """Return the entries by key. Raises ``CannotRun`` for a file that cannot be read or a malformed line."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as trouble:
        raise CannotRun(f"{path}: {trouble.strerror}") from None
    except UnicodeDecodeError:
        raise CannotRun(f"{path}: not text in UTF-8") from None
    entries: dict[str, Accepted] = {}
    for number, line in enumerate(text.splitlines(), 1):
        entry = line.strip()
        if not entry or entry.startswith("#"):
            continue
        key, between, reason = (part.strip() for part in entry.partition(_BETWEEN))
        if not between or not key or not reason:
            raise CannotRun(f"{path}, line {number}: expected KEY{_BETWEEN}REASON, found {entry[:80]!r}")
        if key in entries:
            raise CannotRun(f"{path}, line {number}: this key is already in line {entries[key].line}: {key}")
        entries[key] = Accepted(key, reason, number)
    return entries


def unmatched(entry: Accepted) -> str:
    """Return a line, with Rich's markup, about an entry that no difference matched."""
    return f"[yellow]not matched[/] line {entry.line}: {escape(entry.key)}"
