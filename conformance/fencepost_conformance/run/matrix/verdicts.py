"""Verdicts about cases that a peer did not pass: ``conformance/peers/verdicts.toml``.

Each entry belongs to a row of the matrix, and names cases or families of cases. The matrix shows an entry with the
cells that it explains. If a case fails as its entry says, ``fencepost conform --client NAME`` reports a known fault.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final

from ...common.errors import CannotRun

#: the file, in the folder of the drivers
VERDICTS: Final = "verdicts.toml"
#: what a failure is, as the matrix says it; ``unknown``: it was examined, and its cause was not found
KINDS: Final = {"fault": "fault of the peer", "allowed": "allowed", "unknown": "unknown"}
NOT_EXAMINED: Final = "not examined"
#: the endings that need a verdict
ODD: Final = frozenset({"failed", "not reached"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A verdict. ``cases``: names of cases, or of families of them. ``why``: one sentence. ``shows``: a part of the
    failure's text, so that another failure of the same case is not covered. ``kafka``: the release of Apache Kafka
    beside which the failure was judged. ``ticket``: its address, where there is one. ``sometimes``: the case also
    passes, so the entry is not stale then."""

    cases: tuple[str, ...]
    verdict: str
    why: str
    shows: str = ""
    kafka: str = ""
    ticket: str = ""
    sometimes: bool = False

    def names(self, case: str) -> bool:
        """Return whether the entry is about this case."""
        return any(case == each or case.startswith(f"{each}.") for each in self.cases)

    def explains(self, case: str, why: str) -> bool:
        """Return whether the entry is about this failure of the case."""
        return self.names(case) and self.shows in why


def read_verdicts(file: Path) -> dict[str, tuple[Entry, ...]]:
    """Return the entries of each row of the matrix. Raises ``CannotRun`` for an entry that is malformed."""
    try:
        table = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, tomllib.TOMLDecodeError) as wrong:
        raise CannotRun(f"{file.name} cannot be read: {wrong}") from None
    return {row: tuple(_entry(file, row, each) for each in entries) for row, entries in table.items()}


def _entry(file: Path, row: str, given: Mapping[str, Any]) -> Entry:
    where = f"{file.name}: an entry of {row}"
    if unknown := given.keys() - {each.name for each in fields(Entry)}:
        raise CannotRun(f"{where} has no field {min(unknown)!r}")
    if not given.get("cases") or not given.get("why"):
        raise CannotRun(f"{where} needs cases and why")
    if given.get("verdict") not in KINDS:
        raise CannotRun(f"{where}: verdict must be one of {', '.join(KINDS)} (got {given.get('verdict')!r})")
    if given["verdict"] == "fault" and not given.get("kafka"):
        raise CannotRun(f"{where} is called a fault; kafka must say beside which release this was judged")
    return Entry(**{**given, "cases": tuple(given["cases"])})


def entry_for(entries: Iterable[Entry], case: str, why: str) -> Entry | None:
    """Return the first entry that explains this failure of a case."""
    return next((each for each in entries if each.explains(case, why)), None)


def kind_of(entries: Iterable[Entry], case: Mapping[str, Any]) -> str:
    """Return what the failure of a played case is, in words."""
    found = entry_for(entries, case["case"], case.get("why", ""))
    return NOT_EXAMINED if found is None else KINDS[found.verdict]


def stale(entries: Sequence[Entry], cases: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the names in entries that explain no failure of the cases that were played."""
    found = []
    for entry in entries:
        if entry.sometimes:
            continue
        for name in entry.cases:
            about = [each for each in cases if each["case"] == name or each["case"].startswith(f"{name}.")]
            matches = any(each["ending"] in ODD and entry.shows in each.get("why", "") for each in about)
            if not matches:
                found.append(name)
    return found
