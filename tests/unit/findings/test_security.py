"""SECURITY.md agrees with the pinned table and the tickets on each finding."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fencepost_conformance.judge.findings.catalogue import FINDINGS
from fencepost_conformance.judge.findings.judge import Verdict
from fencepost_conformance.judge.findings.table import read_pinned, read_tickets

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "docs" / "findings"
TEXT = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
#: cells of the rows that begin with findings
ROWS = [
    [cell.strip() for cell in line.strip("|").split(" | ")] for line in TEXT.splitlines() if line.startswith("| [`")
]


def names(cell: str) -> list[str]:
    return re.findall(r"`([a-z-]+)`", cell)


def test_every_finding_is_named() -> None:
    missing = {each.name for each in FINDINGS} - set(names(TEXT))
    # the shortest trace of a fault may stand for it
    assert missing == {
        "stale-timer-bumps-generation",
        "failed-but-written",
        "deletion-decided-too-late",
        "group-listed-twice",
    }


@pytest.mark.parametrize("row", ROWS, ids=lambda row: names(row[0])[0])
def test_releases_and_tickets_match_the_table(row: list[str]) -> None:
    pinned, tickets = read_pinned(FOLDER), read_tickets(FOLDER)
    releases = set(pinned) if row[-2] == "all five" else set(re.findall(r"\d\.\d\.\d", row[-2].partition(";")[0]))
    assert names(row[0])
    for name in names(row[0]):
        assert {release for release, rows in pinned.items() if rows[name] is Verdict.PRESENT} == releases
        known = tickets.of(name).known
        assert (known.words if known else "none found") in row[-1]
