"""What ``fencepost conform`` wrote about the rows of the matrix."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from .earlier import Earlier, earlier_of
from .subjects import Subject
from .verdicts import NOT_EXAMINED, ODD, Entry, kind_of, stale

#: the file of a row's results, in its folder
RESULTS: Final = "cases.json"
PASSED, NOT_SUPPORTED, NOT_REACHED = "passed", "not supported", "not reached"


@dataclass(frozen=True, slots=True)
class Row:
    """``date``: when the cases were played. ``cases``: as ``cases.json`` has them; empty if the subject did not run,
    which ``why`` then explains. ``entries``: the verdicts about its failures. ``earlier``: its row of the earlier
    pages, if it did not run now."""

    subject: Subject
    date: str
    cases: tuple[Mapping[str, Any], ...]
    why: str = ""
    entries: tuple[Entry, ...] = ()
    earlier: Earlier | None = None

    @property
    def known(self) -> bool:
        """Whether there are results."""
        return bool(self.cases) or self.earlier is not None

    @property
    def head(self) -> list[str]:
        """Name, version and date."""
        if self.earlier is not None:
            return [self.earlier.name, self.earlier.version, self.earlier.date]
        return [self.subject.name, self.subject.version, self.date]

    def families(self) -> dict[str, Counter[str]]:
        """The endings in each family; a failure counts by its verdict, such as ``fault of the peer``. A case that was
        not reached counts as such, if it has a verdict."""
        found: dict[str, Counter[str]] = {}
        for each in self.cases:
            ending = self.verdict(each) if each["ending"] in ODD else each["ending"]
            if each["ending"] == NOT_REACHED and ending != NOT_EXAMINED:
                ending = NOT_REACHED
            found.setdefault(family(each["case"]), Counter())[ending] += 1
        return found

    def verdict(self, case: Mapping[str, Any]) -> str:
        """The kind of a failure, in words."""
        return kind_of(self.entries, case)

    def odd(self, of: str | None = None) -> list[Mapping[str, Any]]:
        """The cases that need a verdict, of a family or of all."""
        return [each for each in self.cases if each["ending"] in ODD and of in (None, family(each["case"]))]

    def shortest(self, of: str) -> Mapping[str, Any] | None:
        """The failure of a family with the fewest exchanges, of those that were not reached if none failed; None if
        there is none of either."""
        return min(
            self.odd(of), key=lambda each: (each["ending"] != "failed", len(each.get("exchanges", ()))), default=None
        )

    def stale(self) -> list[str]:
        """The names in verdicts that explain no failure any more."""
        return stale(self.entries, self.cases) if self.cases else []


def family(case: str) -> str:
    """``classic`` of ``classic.join.3``; ``rejoin`` of ``client.rejoin.2``."""
    first, second, *_ = case.split(".")
    return second if first == "client" else first


def row_of(subject: Subject, folder: Path, entries: tuple[Entry, ...] = (), before: Sequence[Earlier] = ()) -> Row:
    """Read the results in a folder; without any, take the row of the earlier pages.

    Args:
        subject: the broker or client.
        folder: the results of its run.
        entries: the verdicts about the subject.
        before: the rows of the earlier pages.
    """
    found = _played(subject, folder, entries)
    return found if found.cases else replace(found, earlier=earlier_of(subject, before))


def _played(subject: Subject, folder: Path, entries: tuple[Entry, ...]) -> Row:
    if subject.lacking:
        return Row(subject, "", (), subject.lacking)
    file = folder / RESULTS
    if not file.exists():
        errors = folder / "stderr"
        said = errors.read_text(encoding="utf-8").strip().splitlines() if errors.exists() else []
        return Row(subject, "", (), said[-1] if said else "it was not run")
    date = datetime.fromtimestamp(file.stat().st_mtime, UTC).date().isoformat()
    return Row(subject, date, tuple(json.loads(file.read_text(encoding="utf-8"))["cases"]), entries=entries)


def columns(rows: Sequence[Row]) -> list[str]:
    """The families of some rows, in the order of the cases; first those of the row that has most."""
    families = [[*row.families()] if row.earlier is None else [*row.earlier.cells] for row in rows]
    return list(dict.fromkeys(name for names in sorted(families, key=len, reverse=True) for name in names))
