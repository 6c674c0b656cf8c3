"""A cluster whose executors cannot import the checkout gives the rows of the local engine, even if a worker is killed
meanwhile."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from fencepost_conformance.common.errors import CannotRun
from fencepost_conformance.generate.plan import GroupProtocol
from fencepost_conformance.judge.rows.check import Checker
from fencepost_conformance.judge.rows.job import Job, Row
from fencepost_conformance.run.pipeline.plan import Plan

pytest.importorskip("pyspark", reason="pyspark is not installed; pip install -e '.[spark]'")

import standalone
from standalone import Cluster, Node

from fencepost_conformance import submit
from fencepost_conformance.run.cluster import needs
from fencepost_conformance.run.cluster.folder import HadoopFolder
from fencepost_conformance.run.cluster.place import Place
from fencepost_conformance.run.cluster.session import Running, started
from fencepost_conformance.run.pipeline import spark
from fencepost_conformance.run.pipeline.spark import all_rows, from_spark, run_spark, wave_folder
from fencepost_conformance.run.validate.run import Plan as Files
from fencepost_conformance.run.validate.run import find_traces, validate_traces
from fencepost_conformance.targets.jvm import harness
from fencepost_model.system.checking import check_spark
from fencepost_model.system.manifest import read_manifest

pytestmark = [
    pytest.mark.spark,
    pytest.mark.jvm,
    pytest.mark.skipif(bool(standalone.unavailable()), reason=standalone.unavailable()),
]
ROOT = Path(__file__).parents[2]
WAVE = 24
PATIENCE_S = 240
SMALL = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an interpreter with only the packages that executors need: neither the suite nor the packages of the
    driver."""
    return standalone.python_without(tmp_path_factory.mktemp("python") / "without", "pandas", "typer", "kio")


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with standalone.cluster(tmp_path / "cluster") as made:
        yield made


def place(cluster: Cluster, python: Path, conf: dict[str, str] | None = None, wait_s: int = 120) -> Place:
    settings = {
        "spark.pyspark.python": str(python),
        "spark.executor.memory": "512m",
        "spark.executor.extraJavaOptions": SMALL,
        **(conf or {}),
    }
    return Place(cluster.url, tuple(settings.items()), wait_s=wait_s)


@dataclass(frozen=True, slots=True)
class Killed:
    """A killed worker, and all its processes at that time."""

    worker: Node
    below: list[int]


def all_at_work(running: Running) -> bool:
    """Whether each executor, of one core, has a task."""
    tracker = running.session.sparkContext.statusTracker()
    stages = [tracker.getStageInfo(each) for each in tracker.getActiveStageIds()]
    return any(each is not None and each.numActiveTasks == running.cores for each in stages)


def kill_during(running: Running, waves: Sequence[Path], worker: Node, killed: list[Killed]) -> None:
    """Kill the worker when one of these waves has begun and its executor has a task in Python."""
    deadline = time.monotonic() + PATIENCE_S
    while not (under_way(waves) and len(worker.descendants()) > 2 and all_at_work(running)):
        if time.monotonic() > deadline:
            return
        time.sleep(0.02)
    below = worker.descendants()
    worker.kill()
    killed.append(Killed(worker, below))


def under_way(waves: Sequence[Path]) -> bool:
    return any((wave / "_temporary").exists() for wave in waves)


def alive(pids: list[int]) -> list[int]:
    def lives(pid: int) -> bool:
        try:
            return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
        except OSError:
            return False

    return [pid for pid in pids if lives(pid)]


def until_gone(pids: list[int]) -> list[int]:
    deadline = time.monotonic() + 60
    while (left := alive(pids)) and time.monotonic() < deadline:
        time.sleep(0.2)
    return left


def spark_events(folder: Path) -> list[dict[str, Any]]:
    """Return the events of Spark's own log."""
    (log,) = folder.iterdir()
    return [json.loads(line) for line in log.read_text().splitlines()]


def rows_of(running: Running, plan: Plan, folder: HadoopFolder) -> list[Row]:
    return [from_spark(row.asDict()) for row in all_rows(running.session, plan, folder).orderBy("seed").collect()]


#: long traces, so that a wave takes longer than killing a worker
QUICK = Job("core", "kafka-4.3", 900)
WITH_KAFKA = Job("kafka:4.3.1", "kafka-4.3", 300, True, GroupProtocol.MIXED)


@pytest.mark.all
@pytest.mark.parametrize("job", [pytest.param(QUICK, id="core"), pytest.param(WITH_KAFKA, id="kafka")])
def test_a_killed_worker_costs_its_tasks_only(
    job: Job, cluster: Cluster, python: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = Plan(job, first=5, count=3 * WAVE, chunk=2, wave=WAVE)
    if job is WITH_KAFKA:
        try:
            harness.command("4.3.1")
        except CannotRun as reason:
            pytest.skip(str(reason))
    monkeypatch.setattr(spark, "_WAVE", WAVE // 2)  # one for each of the two cores
    _, *later = plan.waves()
    log = tmp_path / "log"
    log.mkdir()
    rows = tmp_path / "rows"
    victim = cluster.workers[0]
    killed: list[Killed] = []
    events = {"spark.eventLog.enabled": "true", "spark.eventLog.dir": log.as_uri()}
    events |= {"spark.eventLog.compress": "false", "spark.eventLog.rolling.enabled": "false"}
    builds = [harness.Build("4.3.1")] if job is WITH_KAFKA else []
    finished: list[int] = []
    with started(place(cluster, python, events), needs.TRACES, builds) as running:
        assert running.cores == 2
        folder = HadoopFolder(running.session, rows.as_uri())
        waves = [rows / wave_folder(each) for each in later]
        killer = threading.Thread(target=kill_during, args=(running, waves, victim, killed))
        killer.start()
        summary = run_spark(running, plan, folder, finished.append)
        killer.join()
        found = rows_of(running, plan, folder)
        again = run_spark(running, plan, folder, finished.append)
    (lost,) = killed

    with closing(Checker(job)) as checker:
        expected = checker.check(range(plan.first, plan.first + plan.count))
    assert found == expected
    assert summary == again
    assert (summary.traces, sum(finished)) == (plan.count, 2 * plan.count)
    assert len(lost.below) >= (4 if builds else 3)  # the executor, PySpark's daemon, its worker (, Kafka)
    assert until_gone(lost.below) == []

    awaited = spark_events(log)
    ends = [each for each in awaited if each["Event"] == "SparkListenerTaskEnd"]
    failed = [each for each in ends if each["Task End Reason"]["Reason"] != "Success"]
    assert 1 <= len(failed) <= 2  # the executor had one core, and may get one more task while it ends
    assert len({each["Task Info"]["Executor ID"] for each in failed}) == 1
    stages = [each["Stage Info"] for each in awaited if each["Event"] == "SparkListenerStageSubmitted"]
    making = {each["Stage ID"] for each in stages if each["Stage Name"].startswith("parquet")}
    done = Counter(each["Stage ID"] for each in ends if each not in failed and each["Stage ID"] in making)
    assert [*done.values()] == [8, 8, 8]  # four tasks for each core and wave, each done once
    assert {each["Stage Attempt ID"] for each in ends if each["Stage ID"] in making} == {0}


@pytest.mark.all
def test_packages_that_executors_lack_are_reported_in_one_line(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    lacking = standalone.python_without(tmp_path_factory.mktemp("python") / "lacking", "xxhash", "re2")
    said = rf"on the executor at \S+ \({lacking}\) Python lacks xxhash and google-re2: pip"
    with (
        standalone.cluster(tmp_path / "cluster", workers=1) as made,
        pytest.raises(CannotRun, match=said),
        started(place(made, lacking), needs.TRACES),
    ):
        pass


@pytest.mark.all
def test_executors_that_cannot_run_are_reported_and_recordings_are_read_where_they_are(
    tmp_path: Path, python: Path
) -> None:
    with standalone.cluster(tmp_path / "cluster", workers=1) as made:
        nowhere = tmp_path / "nowhere" / "python3"
        with (
            pytest.raises(CannotRun, match=rf"cannot run {nowhere}: .*No such file"),
            started(place(made, nowhere), needs.TRACES),
        ):
            pass
        big = place(made, python, {"spark.executor.memory": "64g"}, wait_s=2)
        with pytest.raises(CannotRun, match=r"provided no executor within 2 s .*64g"), started(big, needs.TRACES):
            pass
        corpus = [ROOT / "tests" / "corpus" / f"alone-{client}.jsonl.gz" for client in ("java", "aiokafka")]
        hidden = tmp_path / "traces" / "below"
        hidden.mkdir(parents=True)
        (hidden / "one.jsonl.gz").write_bytes(corpus[0].read_bytes())
        (hidden / "two.jsonl").write_text("{}\n")
        (hidden / "notes.txt").write_text("no trace")
        files = find_traces([str(each) for each in corpus])
        here = place(made, python)
        verdicts, *_ = validate_traces(Files(files, "spark", place=here, urls=((tmp_path / "traces").as_uri(),)))
    alone, *_ = validate_traces(Files(files))
    assert [(each.path, each.outcome) for each in verdicts[:2]] == [(each.path, each.outcome) for each in alone]
    assert [(each.path.rpartition("/")[2], each.outcome) for each in verdicts[2:]] == [
        ("one.jsonl.gz", "accepted"),
        ("two.jsonl", "broken"),
    ]


@pytest.mark.all
def test_exploring_survives_a_killed_worker(cluster: Cluster, python: Path) -> None:
    entry = next(each for each in read_manifest(ROOT / "spec") if each.name == "SameGeneration")
    victim = cluster.workers[0]

    def kill_at(_: int, depth: int) -> None:
        if depth == 3:
            victim.kill()

    with started(place(cluster, python), needs.GRAPHS) as running:
        row = check_spark(entry, running.session, workers=running.cores, copies=2, watch=kill_at)
    assert victim.process.poll() is not None
    assert (row.wrong, row.violated, row.depth) == ([], ["EveryJoinPhaseEndsInANewGeneration"], 7)


@pytest.mark.all
def test_spark_submit_gives_the_master(cluster: Cluster, python: Path, tmp_path: Path) -> None:
    program = Path(submit.__file__)
    # the executors' interpreter lacks the suite; the driver's interpreter, the same one here, must have it
    settings = {**dict(place(cluster, python).conf), "spark.pyspark.driver.python": sys.executable}
    words = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    command = [standalone.SPARK_HOME / "bin" / "spark-submit", "--master", cluster.url, *words, program]
    command += ["conform", "--engine", "spark", "--profile", "kafka-4.3", "--traces", "20", "--json"]
    environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"}
    environment.pop("PYSPARK_GATEWAY_PORT", None)

    def run(*more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*command, *more],
            env=environment,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )

    done = run("--rows", (tmp_path / "rows").as_uri())
    assert done.returncode == 0, done.stdout
    *_, last = done.stdout.splitlines()  # spark-submit joins the two streams of the program
    assert json.loads(last)["counts"]["traces"] == 20
    assert (tmp_path / "rows" / "kafka-4.3-classic" / "plan.json").exists()
    refused = run()
    assert refused.returncode == 2
    assert "on a cluster each machine writes its own rows" in refused.stdout


@pytest.mark.slow
def test_a_silent_master_is_given_up(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        master = f"spark://127.0.0.1:{silent.getsockname()[1]}"
        words = ["conform", "--engine", "spark", "--master", master, "--rows", tmp_path.as_uri(), "--wait", "5"]
        environment = {**os.environ, "FENCEPOST_CACHE": str(tmp_path / "cache")}
        done = subprocess.run(
            [sys.executable, "-m", "fencepost_conformance.cli", *words],
            env=environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
    assert done.returncode == 2
    (line,) = done.stderr.strip().splitlines()
    assert f"{master} gave no session within 5 s (--wait)" in line
    assert (tmp_path / "cache" / "spark.log").exists()
