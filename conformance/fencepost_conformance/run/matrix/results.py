"""What ``fencepost conform`` wrote about the rows of the matrix."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from .subjects import Subject

PASSED, NOT_SUPPORTED = "passed", "not supported"


@dataclass(frozen=True, slots=True)
class Row:
    """``date``: when the cases were played. ``cases``: as ``cases.json`` has them; empty if the subject did not run,
    which ``why`` then explains."""

    subject: Subject
    date: str
    cases: tuple[Mapping[str, Any], ...]
    why: str = ""

    def families(self) -> dict[str, Counter[str]]:
        """The endings in each family."""
        found: dict[str, Counter[str]] = {}
        for each in self.cases:
            found.setdefault(family(each["case"]), Counter())[each["ending"]] += 1
        return found

    def shortest(self, of: str) -> Mapping[str, Any] | None:
        """The failure of a family with the fewest exchanges; None if no case of it failed."""
        failed = [each for each in self.cases if family(each["case"]) == of and each["ending"] == "failed"]
        return min(failed, key=lambda each: len(each["exchanges"]), default=None)


def family(case: str) -> str:
    """``classic`` of ``classic.join.3``; ``rejoin`` of ``client.rejoin.2``."""
    first, second, *_ = case.split(".")
    return second if first == "client" else first


def row_of(subject: Subject, folder: Path) -> Row:
    """Read the results in a folder."""
    if subject.lacking:
        return Row(subject, "", (), subject.lacking)
    file = folder / "cases.json"
    if not file.exists():
        errors = folder / "stderr"
        said = errors.read_text(encoding="utf-8").strip().splitlines() if errors.exists() else []
        return Row(subject, "", (), said[-1] if said else "it was not run")
    date = datetime.fromtimestamp(file.stat().st_mtime, UTC).date().isoformat()
    return Row(subject, date, tuple(json.loads(file.read_text(encoding="utf-8"))["cases"]))


def columns(rows: Sequence[Row]) -> list[str]:
    """The families of some rows, in the order of the cases."""
    return list(dict.fromkeys(name for row in rows for name in row.families()))
