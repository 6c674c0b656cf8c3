"""The origin of a page: version, commit, date, command, and facts such as the seed, the target and the profile."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

#: the password in an address such as postgresql://name:password@host
_PASSWORD: Final = re.compile(r"(?<=://)([^/@\s:]*):[^@\s]*(?=@)")
#: digits of a commit that a page shows
_DIGITS: Final = 12


@dataclass(frozen=True, slots=True)
class Made:
    """The origin of a page. ``commit`` is ``""`` outside a checkout. ``facts``: name and value of what else decides the
    contents, in order; the page leaves out those without a value."""

    release: str
    commit: str
    date: str
    command: str
    facts: tuple[tuple[str, str], ...] = ()

    def rows(self) -> list[tuple[str, str]]:
        """Return name and value of each row that has a value."""
        every_row = (
            ("made by", f"fencepost {self.release}"),
            ("commit", self.commit),
            ("date", self.date),
            ("command", self.command),
            *self.facts,
        )
        return [(name, value) for name, value in every_row if value]

    def html(self) -> str:
        """Return the foot of a page."""
        rows = "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in self.rows())
        return f'<footer class="made"><dl>{rows}</dl></footer>'


def made_now(command: str | None = None, /, **facts: object) -> Made:
    """Return what makes a page now: the running program and the time. ``command``: instead of the command line of this
    process; passwords in addresses are left out. ``facts``: see ``Made``; one that is None has no value."""
    head = commit(Path(__file__).parents[3]) or ""
    digits, plus, changes = head.partition("+")
    return Made(
        installed_version(),
        f"{digits[:_DIGITS]}{plus}{changes}",
        f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
        without_passwords(shlex.join(["fencepost", *sys.argv[1:]]) if command is None else command),
        tuple((name, "" if value is None else without_passwords(str(value))) for name, value in facts.items()),
    )


def without_passwords(text: str) -> str:
    """Return the text with ``***`` for each password in an address."""
    return _PASSWORD.sub(r"\1:***", text)


def installed_version() -> str:
    """Return the release of the installed package."""
    try:
        return version("fencepost")
    except PackageNotFoundError:
        return "unknown"


def commit(root: Path) -> str | None:
    """Return the commit of the checkout, with ``+changes`` if files differ from it; None outside git."""
    if not (root / ".git").exists():  # a folder above an installed package may be a checkout of something else
        return None
    head, changes = _git(root, "rev-parse", "HEAD"), _git(root, "status", "--porcelain", "--untracked-files=no")
    if head is None or not re.fullmatch("[0-9a-f]{40,64}", head):
        return None
    return f"{head}+changes" if changes else head


def _git(root: Path, *words: str) -> str | None:
    try:
        ran = subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=False, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return ran.stdout.strip() if ran.returncode == 0 else None
