"""Each row of docs/comparisons.md names a planted fault that exists, and each package that compares has a row."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from fencepost_conformance.run.mutants.areas.catalogue import FAULTS
from fencepost_conformance.run.mutants.catalogue import MUTANTS

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/comparisons.md"
SECTION = "## Core, clients, servers and stores"
#: The modules that compare, below the conformance suite; each must have a row.
COMPARE = (
    "generate/simulate",
    "generate/virtual",
    "judge/checker",
    "judge/client",
    "judge/compaction",
    "judge/compare",
    "judge/diff",
    "judge/server",
    "judge/tla",
    "run/pipeline",
    "targets/jvm",
)


def rows(text: str) -> list[list[str]]:
    """Return the cells of all rows of tables, without the headers."""
    lines = [line for line in text.splitlines() if line.startswith("| ") and not line.startswith("| Comparison")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


PART = PAGE.read_text(encoding="utf-8").partition(SECTION)[2]
ROWS = rows(PART)


@cache
def functions(path: Path) -> frozenset[str]:
    """Return the functions of a file; none if the file does not exist."""
    tree = ast.parse(path.read_text(encoding="utf-8") if path.is_file() else "")
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


def wrong(cell: str) -> list[str]:
    """Return the names of planted faults in a cell that do not exist; the cell itself if it names no fault."""
    names = re.findall(r"`([^`]+)`", cell)
    missing = []
    for name in names:
        path, _, function = name.partition("::")
        planted = function in functions(ROOT / path) if function else name in MUTANTS or name in FAULTS
        if not planted:
            missing.append(name)
    return missing if names else [cell]


@pytest.mark.parametrize("row", ROWS, ids=[row[0] for row in ROWS])
def test_a_row_names_planted_faults_that_exist(row: list[str]) -> None:
    assert len(row) == 4
    assert all(row)
    assert wrong(row[3]) == []


def test_names_in_a_first_column_exist() -> None:
    named = [name for row in ROWS for name in re.findall(r"`([a-z_/]+(?:\.py)?)`", row[0])]
    assert len(named) > 20
    places = (ROOT, ROOT / "conformance", ROOT / "conformance/fencepost_conformance")
    assert [name for name in named if not any((place / name).exists() for place in places)] == []


def test_each_package_that_compares_has_a_row() -> None:
    first = " ".join(row[0] for row in ROWS)
    assert [name for name in COMPARE if f"`{name}/" not in first] == []


def test_files_named_anywhere_on_the_page_exist() -> None:
    named = set(re.findall(r"tests/[a-z0-9_/]+\.py", PAGE.read_text(encoding="utf-8")))
    assert sorted(name for name in named if not (ROOT / name).is_file()) == []


@pytest.mark.parametrize(
    "cell",
    ["none", "`no-such-mutant`", "`tests/quality/test_comparisons.py::test_nothing`", "`tests/no.py::test_it`"],
)
def test_a_row_that_is_stale_is_found(cell: str) -> None:
    assert wrong(cell)
