"""A plan covers its seeds exactly once, and its rows do not depend on the process that makes them."""

from __future__ import annotations

import json
from multiprocessing import active_children
from pathlib import Path

import pytest

from fencepost_conformance.common.errors import CannotRun
from fencepost_conformance.generate.plan import GroupProtocol
from fencepost_conformance.judge.rows.job import Job
from fencepost_conformance.run.cluster.folder import LocalFolder
from fencepost_conformance.run.cluster.session import cause
from fencepost_conformance.run.pipeline.kept import close_kept, kept_checker
from fencepost_conformance.run.pipeline.local import Crew, run_local
from fencepost_conformance.run.pipeline.plan import Plan, claim

JOB = Job("core", "kafka-4.3", 40)


@pytest.mark.parametrize(("first", "count"), [(0, 1), (7, 100), (3, 23), (0, 24)])
def test_waves_and_chunks_cover_the_seeds(first: int, count: int) -> None:
    plan = Plan(JOB, first, count, chunk=5, wave=12)
    seeds = [seed for wave in plan.waves() for chunk in plan.chunks(wave) for seed in chunk]
    assert seeds == list(range(first, first + count))
    assert all(len(chunk) <= 5 for wave in plan.waves() for chunk in plan.chunks(wave))


def test_two_processes_make_the_rows_of_one() -> None:
    plan = Plan(JOB, 11, 24, chunk=6)
    alone, together = ([row for rows in run_local(plan, workers) for row in rows] for workers in (1, 2))
    assert alone == together
    assert [row.seed for row in alone] == list(range(11, 35))


def test_a_directory_belongs_to_one_plan(tmp_path: Path) -> None:
    plan = Plan(JOB, 0, 10)
    folder = LocalFolder(tmp_path)
    assert claim(folder, plan) == plan
    assert claim(folder, plan) == plan
    claim(folder, Plan(JOB, 0, 10, chunk=3))  # chunks change nothing
    assert claim(folder, Plan(JOB, 0, 10, wave=3)) == plan  # a run resumes in the waves that it has begun
    for other in (Plan(JOB, 1, 10), Plan(JOB, 0, 11), Plan(Job("core", "intended", 40), 0, 10)):
        with pytest.raises(CannotRun, match="holds another run"):
            claim(folder, other)
    held = json.loads((tmp_path / "plan.json").read_text())
    (tmp_path / "plan.json").write_text(json.dumps({**held, "code": "older"}))
    with pytest.raises(CannotRun, match="its code differs"):
        claim(folder, plan)


def test_the_cause_of_a_spark_error_is_one_line() -> None:
    trouble = "Job aborted\nTraceback:\n  File x\nfencepost_conformance.common.errors.CannotRun: no jar\n\tat java.base"
    assert cause(Exception(trouble)) == "fencepost_conformance.common.errors.CannotRun: no jar"
    assert cause(Exception("\n gone \n at x")) == "gone"
    of_java = "An error occurred\n: org.apache.X: Job aborted\n\tat a.b\nCaused by: c.D: the root\n\tat e.f"
    assert cause(Exception(of_java)) == "c.D: the root"
    assert cause(Exception(of_java.partition("Caused")[0])) == "org.apache.X: Job aborted"
    assert cause(Exception()) == "Exception"


def test_the_processes_of_a_command_serve_one_plan_after_the_other() -> None:
    plans = [Plan(Job("core", "kafka-4.3", 10, False, protocol), 0, 6, chunk=2) for protocol in GroupProtocol]
    seen = []
    with Crew() as crew:
        for plan in plans:
            rows = [row for rows in crew.run(plan, 2) for row in rows]
            assert rows == [row for rows in run_local(plan, 1) for row in rows]
            seen.append({child.pid for child in active_children()})
    assert len(seen[0]) == 2
    assert seen == [seen[0]] * 3
    assert not {child.pid for child in active_children()} & seen[0]


def test_one_jvm_serves_all_jobs_of_a_target() -> None:
    of_one = [Job("kafka:4.3.1", profile, 10) for profile in ("kafka-4.3", "intended")]
    try:
        one, same, other = (kept_checker(job).kafka for job in (*of_one, Job("kafka:4.4.0", "kafka-4.4", 10)))
        assert one is not None
        assert one is same
        assert one is not other
    finally:
        close_kept()
