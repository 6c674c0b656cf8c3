"""A run of the tests ends with the list of left-out tests and the reasons; ``make test-all`` begins with the list of
its additions."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tools import testall

ROOT = Path(__file__).parents[3]
TESTS = """
import pytest
def test_one(): pass
@pytest.mark.all
def test_more(): pass
@pytest.mark.all
def test_still_more(): pass
@pytest.mark.skip(reason="needs a thing")
def test_two(): pass
"""


@pytest.mark.parametrize("processes", [(), ("--numprocesses", "1")])
def test_a_run_lists_skipped_tests_and_counts_the_ones_left_to_test_all(
    processes: tuple[str, ...], tmp_path: Path
) -> None:
    shutil.copy(ROOT / "tests" / "conftest.py", tmp_path)
    (tmp_path / "test_some.py").write_text(TESTS)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = all\n")
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", *processes, "-m", "not all"],
        cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert "1 skipped: needs a thing\n" in ran.stdout
    assert "2 left to make test-all" in ran.stdout


def test_the_files_that_begin_a_run_are_there() -> None:
    conftest = (ROOT / "tests" / "conftest.py").read_text(encoding="utf-8")
    named = re.findall(r'^    "(\S+\.py)",$', conftest, re.MULTILINE)
    assert len(named) > 20
    assert [name for name in named if not (ROOT / "tests" / name).exists()] == []


def test_make_test_leaves_out_the_tests_that_only_test_all_runs() -> None:
    recipe = re.search(r"^test: install\n\t(.*)$", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert recipe is not None
    assert recipe[1].endswith("-m 'not all'")
    assert "-m" not in testall.TESTS[2:]


def test_test_all_uses_its_own_seed_and_repeats_no_trace() -> None:
    first, second = testall.stages(1_000)
    assert first.words[-2:] == ("--seed", "1000")
    assert int(second.words[-1]) >= 1_000 + testall.TRACES
    assert f"{testall.TRACES:,}" in testall.ADDS
