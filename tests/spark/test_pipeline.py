"""The Spark pipeline: the same rows on any number of cores, and a killed run goes on where it was."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from fencepost_conformance.console import CannotRun
from fencepost_conformance.coverage import catalogue
from fencepost_conformance.generate.plan import GroupProtocol
from fencepost_conformance.pipeline.check import Checker
from fencepost_conformance.pipeline.job import Job, Row
from fencepost_conformance.pipeline.plan import Plan
from fencepost_conformance.pipeline.summary import Summary

pytest.importorskip("pyspark", reason="pyspark is not installed; pip install -e '.[spark]'")

from fencepost_conformance.pipeline.spark import (
    all_rows,
    from_spark,
    run_spark,
    spark_session,
    wave_directory,
)

pytestmark = [pytest.mark.spark, pytest.mark.slow]
PLAN = Plan(Job("core", "kafka-4.3", 60), first=5, count=90, chunk=7, wave=40)
PLANS = {
    GroupProtocol.CLASSIC: PLAN,
    GroupProtocol.MIXED: Plan(Job("core", "kafka-4.3", 60, True, GroupProtocol.MIXED), 5, 40, chunk=7, wave=25),
}
Found = tuple[list[Row], Summary]


@pytest.fixture(scope="module")
def expected() -> dict[GroupProtocol, list[Row]]:
    return {name: Checker(plan.job).check(range(plan.first, plan.first + plan.count)) for name, plan in PLANS.items()}


def rows_of(cores: int, directory: Path, plans: dict[GroupProtocol, Plan]) -> dict[GroupProtocol, Found]:
    session = spark_session(cores, directory / "scratch")
    found = {}
    try:
        for name, plan in plans.items():
            told: list[int] = []
            summary = run_spark(session, plan, directory / name, told.append)
            assert sum(told) == plan.count
            assert min(told) >= 0
            rows = all_rows(session, plan, directory / name).orderBy("seed").collect()
            found[name] = [from_spark(row.asDict()) for row in rows], summary
        return found
    finally:
        session.stop()


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[int, dict[GroupProtocol, Found]]:
    return {cores: rows_of(cores, tmp_path_factory.mktemp(f"cores-{cores}"), PLANS) for cores in (1, 2)}


@pytest.mark.parametrize("protocol", PLANS)
@pytest.mark.parametrize("cores", [1, 2])
def test_rows_do_not_depend_on_where_they_were_made(
    runs: dict[int, dict[GroupProtocol, Found]],
    expected: dict[GroupProtocol, list[Row]],
    cores: int,
    protocol: GroupProtocol,
) -> None:
    rows, _ = runs[cores][protocol]
    assert rows == expected[protocol]


@pytest.mark.parametrize("protocol", PLANS)
@pytest.mark.parametrize("cores", [1, 2])
def test_sums_are_those_of_the_rows(
    runs: dict[int, dict[GroupProtocol, Found]],
    expected: dict[GroupProtocol, list[Row]],
    cores: int,
    protocol: GroupProtocol,
) -> None:
    by_hand = Summary(PLANS[protocol].job)
    by_hand.add_all(expected[protocol])
    _, summary = runs[cores][protocol]
    assert summary == by_hand
    assert len(catalogue.names(summary.reached)) > 100


def test_traces_of_mixed_groups_convert_them(runs: dict[int, dict[GroupProtocol, Found]]) -> None:
    _, summary = runs[2][GroupProtocol.MIXED]
    assert {"rule X-UP-01", "rule X-DOWN-01"} <= {*catalogue.names(summary.reached)}


PROGRAM = """
import sys
from pathlib import Path
from fencepost_conformance.pipeline.job import Job
from fencepost_conformance.pipeline.plan import Plan
from fencepost_conformance.pipeline.spark import run_spark, spark_session
out = Path(sys.argv[1])
plan = Plan(Job("core", "kafka-4.3", 60), first=5, count=90, chunk=7, wave=40)
session = spark_session(1, out / "scratch")
print(run_spark(session, plan, out / "classic").traces)
session.stop()
"""


def test_a_killed_run_goes_on(tmp_path: Path, expected: dict[GroupProtocol, list[Row]]) -> None:
    first, second, *_ = PLAN.waves()
    run = tmp_path / GroupProtocol.CLASSIC
    errors = (tmp_path / "errors").open("wb")
    child = subprocess.Popen([sys.executable, "-c", PROGRAM, str(tmp_path)], stderr=errors, start_new_session=True)
    patience = time.monotonic() + 600
    try:
        while not (wave_directory(run, first) / "_SUCCESS").exists():
            assert child.poll() is None, (tmp_path / "errors").read_text()
            assert time.monotonic() < patience
            time.sleep(0.05)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()
    errors.close()
    assert not (wave_directory(run, second) / "_SUCCESS").exists()
    kept = {file: file.stat().st_mtime_ns for file in wave_directory(run, first).iterdir()}

    rows, summary = rows_of(1, tmp_path, {GroupProtocol.CLASSIC: PLAN})[GroupProtocol.CLASSIC]
    assert rows == expected[GroupProtocol.CLASSIC]
    assert summary.traces == PLAN.count
    assert {file: file.stat().st_mtime_ns for file in wave_directory(run, first).iterdir()} == kept


def test_a_directory_of_another_run_is_refused(tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_text(json.dumps({**PLAN.identity(), "first": 0}))
    with pytest.raises(CannotRun, match="its first differs"):
        run_spark(None, PLAN, tmp_path)  # type: ignore[arg-type]
