"""The Spark pipeline: the same rows on any number of cores, and a killed run resumes where it was."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from fencepost_conformance.common.errors import CannotRun
from fencepost_conformance.generate.plan import GroupProtocol
from fencepost_conformance.judge.coverage import catalogue
from fencepost_conformance.judge.rows.check import Checker
from fencepost_conformance.judge.rows.job import Job, Row
from fencepost_conformance.judge.rows.summary import Summary
from fencepost_conformance.run.cluster import needs
from fencepost_conformance.run.cluster.folder import LocalFolder
from fencepost_conformance.run.cluster.place import Place
from fencepost_conformance.run.cluster.session import Running, started
from fencepost_conformance.run.cluster.shipping import Kit
from fencepost_conformance.run.pipeline.plan import Plan

pytest.importorskip("pyspark", reason="pyspark is not installed; pip install -e '.[spark]'")

from pyspark.errors import PySparkException

from fencepost_conformance.run.pipeline import spark
from fencepost_conformance.run.pipeline.spark import (
    _SCHEMA,
    all_rows,
    as_arrow,
    from_spark,
    run_spark,
    summarise,
    wave_folder,
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
    found = {}
    with started(Place(cores=cores), needs.TRACES, light=True) as running:
        for name, plan in plans.items():
            done: list[int] = []
            folder = LocalFolder(directory / name)
            summary = run_spark(running, plan, folder, done.append)
            assert sum(done) == plan.count
            assert min(done) >= 0
            rows = all_rows(running.session, plan, folder).orderBy("seed").collect()
            found[name] = [from_spark(row.asDict()) for row in rows], summary
    return found


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[GroupProtocol, Found]:
    """Return the rows and the summary that two cores make. The test of a killed run uses one core."""
    return rows_of(2, tmp_path_factory.mktemp("cores-2"), PLANS)


@pytest.mark.parametrize("protocol", PLANS)
def test_rows_do_not_depend_on_where_they_were_made(
    runs: dict[GroupProtocol, Found], expected: dict[GroupProtocol, list[Row]], protocol: GroupProtocol
) -> None:
    rows, _ = runs[protocol]
    assert rows == expected[protocol]


@pytest.mark.parametrize("protocol", PLANS)
def test_sums_equal_the_rows(
    runs: dict[GroupProtocol, Found], expected: dict[GroupProtocol, list[Row]], protocol: GroupProtocol
) -> None:
    by_hand = Summary(PLANS[protocol].job)
    by_hand.add_all(expected[protocol])
    _, summary = runs[protocol]
    assert summary == by_hand
    assert len(catalogue.names(summary.reached)) > 100


def test_traces_that_were_not_decided_have_neither_passed_nor_failed(
    tmp_path: Path, expected: dict[GroupProtocol, list[Row]]
) -> None:
    rows = expected[GroupProtocol.CLASSIC]
    lost = {rows[2].seed: "broken", rows[9].seed: "undecided"}
    rows = [replace(row, outcome=lost[row.seed], left="it ended") if row.seed in lost else row for row in rows]
    by_hand = Summary(PLAN.job)
    by_hand.add_all(rows)
    with started(Place(cores=1), needs.TRACES, light=True) as running:
        values = as_arrow(rows).to_pylist()
        summary = summarise(PLAN, running.session.createDataFrame(values, _SCHEMA), "here")
    assert summary == by_hand
    assert (summary.tally.broken, summary.tally.undecided, summary.outcome.status) == (1, 1, 2)
    assert [row.seed for row in summary.unsettled_rows] == sorted(lost)


GONE = (
    "fencepost_conformance.targets.jvm.process.ProcessFault: "
    "10 traces in a row could not be run; the last, of seed 7: gone"
)


def test_a_target_that_fails_permanently_leaves_the_committed_waves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, *_ = PLAN.waves()
    real = spark.check_wave

    def wave(running: Running, plan: Plan, seeds: range) -> object:
        if seeds == first:
            return real(running, plan, seeds)
        raise PySparkException(f"Job aborted\n{GONE}\n")

    monkeypatch.setattr(spark, "check_wave", wave)
    with started(Place(cores=1), needs.TRACES, light=True) as running:
        summary = run_spark(running, PLAN, LocalFolder(tmp_path))
    assert (summary.traces, summary.stopped) == (len(first), GONE.partition(": ")[2])


def test_traces_of_mixed_groups_convert_them(runs: dict[GroupProtocol, Found]) -> None:
    _, summary = runs[GroupProtocol.MIXED]
    assert {"rule X-UP-01", "rule X-DOWN-01"} <= {*catalogue.names(summary.reached)}


PROGRAM = """
import sys
from pathlib import Path
from fencepost_conformance.judge.rows.job import Job
from fencepost_conformance.run.pipeline.plan import Plan
from fencepost_conformance.run.cluster import needs
from fencepost_conformance.run.cluster.folder import LocalFolder
from fencepost_conformance.run.cluster.place import Place
from fencepost_conformance.run.cluster.session import Running, started
from fencepost_conformance.run.cluster.shipping import Kit
from fencepost_conformance.run.pipeline.spark import run_spark
plan = Plan(Job("core", "kafka-4.3", 60), first=5, count=90, chunk=7, wave=40)
with started(Place(cores=1), needs.TRACES, light=True) as running:
    print(run_spark(running, plan, LocalFolder(Path(sys.argv[1]) / "classic")).traces)
"""


def test_a_killed_run_resumes(tmp_path: Path, expected: dict[GroupProtocol, list[Row]]) -> None:
    first, second, *_ = PLAN.waves()
    run = tmp_path / GroupProtocol.CLASSIC
    errors = (tmp_path / "errors").open("wb")
    child = subprocess.Popen([sys.executable, "-c", PROGRAM, str(tmp_path)], stderr=errors, start_new_session=True)
    patience = time.monotonic() + 600
    try:
        while not ((run / wave_folder(first)) / "_SUCCESS").exists():
            assert child.poll() is None, (tmp_path / "errors").read_text()
            assert time.monotonic() < patience
            time.sleep(0.05)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()
    errors.close()
    assert not ((run / wave_folder(second)) / "_SUCCESS").exists()
    kept = {file: file.stat().st_mtime_ns for file in (run / wave_folder(first)).iterdir()}

    rows, summary = rows_of(1, tmp_path, {GroupProtocol.CLASSIC: PLAN})[GroupProtocol.CLASSIC]
    assert rows == expected[GroupProtocol.CLASSIC]
    assert summary.traces == PLAN.count
    assert {file: file.stat().st_mtime_ns for file in (run / wave_folder(first)).iterdir()} == kept


def test_a_directory_of_another_run_is_refused(tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_text(json.dumps({**PLAN.identity(), "first": 0}))
    with pytest.raises(CannotRun, match="its first differs"):
        run_spark(Running(None, tmp_path, Kit(), "local[1]"), PLAN, LocalFolder(tmp_path))  # type: ignore[arg-type]
