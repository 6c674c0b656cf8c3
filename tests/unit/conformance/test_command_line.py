"""Commands in difficult surroundings: the reader of their output closes it, or a component is missing."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from fencepost_conformance.cli import main
from fencepost_conformance.common.errors import CannotRun
from fencepost_conformance.common.processes import worker_processes
from fencepost_conformance.judge.rows.job import Job
from fencepost_conformance.judge.verdict import Verdict
from fencepost_conformance.run.commands import conform
from fencepost_conformance.run.mainjob import Finding, Stage, outcome_of_stages
from fencepost_conformance.run.pipeline.engines import ENGINES
from fencepost_conformance.run.pipeline.plan import Plan
from fencepost_conformance.targets.jvm import harness
from fencepost_conformance.targets.jvm.builds import Build

ROOT = Path(__file__).parents[3]

PROGRAM = "import sys; from fencepost_conformance.cli import main; sys.argv = ['fencepost', *sys.argv[1:]]; main()"
#: a shell that starts a command in the background makes it ignore Ctrl-C; this restores the default. The command
#: reports its progress often, so that a test knows where it is.
ATTENTIVE = (
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    f"from fencepost_conformance.show import console; console.EVERY = 0.1; {PROGRAM}"
)


@pytest.mark.parametrize("words", [["--help"], ["--version"], ["rules"], ["rules", "--json"], ["rules", "--help"]])
def test_a_reader_that_leaves_changes_neither_output_nor_status(words: list[str]) -> None:
    heard = subprocess.run([sys.executable, "-c", PROGRAM, *words], capture_output=True, timeout=60, check=False)
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        running.stdout.close()
        assert running.stderr.read() == ""
        assert running.wait(timeout=60) == heard.returncode < 2


def test_a_run_without_a_broker_loads_neither_connections_nor_clients() -> None:
    """They would add 0.3 s of processor time to each start of ``conform``. The style of pages is in the server too."""
    heavy = {"kio", "hypothesis", "asyncio", "fencepost.remote", "fencepost_consumer", "fencepost_server.server"}
    heavy |= {f"fencepost_server.{name}" for name in ("net", "dispatch", "observe", "security")}
    at_exit = f"import atexit, sys; atexit.register(lambda: print({heavy} & {{*sys.modules}})); "
    words = ["conform", "--traces", "1", "--workers", "1", "--profile", "intended", "--json"]
    done = subprocess.run([sys.executable, "-c", at_exit + PROGRAM, *words], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "set()"


@pytest.mark.parametrize("engine", ENGINES)
def test_a_missing_component_is_reported_before_any_engine_starts(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(build: Build) -> list[str]:
        raise CannotRun(f"install what runs Kafka {build.version}")

    def started(*_: object) -> None:
        raise AssertionError("the engine was started")

    monkeypatch.setattr(harness, "command", missing)
    monkeypatch.setattr("fencepost_conformance.run.pipeline.engines.run_local", started)
    if engine == "spark":
        pytest.importorskip("pyspark", reason="needs PySpark")
        monkeypatch.setattr("fencepost_conformance.run.cluster.session.spark_session", started)
    with pytest.raises(CannotRun, match=r"install what runs Kafka 4\.3\.1"):
        ENGINES[engine](Plan(Job("kafka:4.3.1", "kafka-4.3", 10, False), 0, 4), 2, None, lambda _: None)


@pytest.mark.parametrize("workers", ["1", "2"])
def test_ctrl_c_ends_a_command_and_its_workers_and_reports_the_progress(workers: str) -> None:
    words = ["check", "--size", "large", "--workers", workers]  # most of a minute
    with subprocess.Popen(
        [sys.executable, "-c", ATTENTIVE, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as running:
        assert running.stderr is not None
        for line in running.stderr:
            if not line.startswith("checking: "):  # it names a configuration that is being explored, or was
                break
        os.killpg(running.pid, signal.SIGINT)  # as a terminal does
        said, complained = running.communicate(timeout=120)
    assert running.returncode == 2
    assert re.fullmatch(r"fencepost check: interrupted; \d+ of \d+ configurations checked", complained.splitlines()[-1])
    assert "check: incomplete" in said


@pytest.mark.parametrize(
    "words",
    [
        ["conform", "--traces", "2", "-o", "{}/file/out"],
        ["replay", "1", "--steps", "3", "--html", "{}/none/page.html"],
        ["replay", "1", "--steps", "3", "--svg", "{}/none/picture.svg"],
        ["replay", "1", "--steps", "3", "-o", "{}/none/trace.jsonl"],
        ["diagram", "classic-group", "-o", "{}/none/machine.svg"],
    ],
    ids=lambda words: " ".join(words[:-1]),
)
def test_an_output_that_cannot_be_written_is_reported_in_one_line(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(SystemExit) as ended:
        main([word.format(tmp_path) for word in words])
    assert ended.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"fencepost {words[0]}: ")
    assert str(tmp_path) in line
    assert "Errno" not in line


def test_a_report_that_cannot_be_written_loses_no_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device", str(tmp_path / "report.html"))

    monkeypatch.setattr(conform, "write_report", full)
    with pytest.raises(SystemExit) as ended:
        main(["conform", "--traces", "2", "--steps-per-trace", "5", "-o", str(tmp_path)])
    assert ended.value.code == 2
    output = capsys.readouterr()
    assert "conform: incomplete (4 traces" in output.out
    assert "No space left on device" in output.err


def test_a_worker_that_is_killed_is_reported(tmp_path: Path) -> None:
    with pytest.raises(CannotRun, match="try fewer --workers"), worker_processes(2) as pool:
        pool.submit(signal.raise_signal, signal.SIGKILL).result(timeout=120)


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        (["tests/corpus/alone-java.jsonl.gz", "--per-kind", "1"], 0, "falsified copies of 1 file rejected"),
        (["nosuch"], 2, "falsify: no trace at nosuch"),
    ],
)
def test_falsify_is_run_as_a_module(words: list[str], status: int, message: str) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "fencepost_conformance.run.falsify", *words],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        cwd=ROOT,
    )
    assert (ran.returncode, "Traceback" in ran.stderr) == (status, False)
    assert message in ran.stdout + ran.stderr


@pytest.mark.spark
def test_without_a_jdk_spark_commands_name_the_need(tmp_path: Path) -> None:
    pytest.importorskip("pyspark", reason="needs PySpark")
    (tmp_path / "java").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "java").chmod(0o755)
    surroundings = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    surroundings.pop("JAVA_HOME", None)
    for words in (
        ["validate", "--engine", "spark", "tests/corpus/alone-java.jsonl.gz"],
        ["check", "EagerQuiet", "--engine", "spark"],
    ):
        ran = subprocess.run(
            [sys.executable, "-c", PROGRAM, *words],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            env=surroundings,
            cwd=ROOT,
        )
        assert ran.returncode == 2
        assert "Spark does not start; it needs a JDK of version 17 or later" in ran.stderr
        assert "Traceback" not in ran.stderr


@pytest.mark.parametrize(
    ("verdicts", "interrupted", "status"),
    [
        ([Verdict.PASSED, None], False, 0),
        ([None], False, 2),
        ([Verdict.PASSED, Verdict.BROKEN], False, 2),
        ([Verdict.PASSED, Verdict.UNDECIDED], False, 2),
        ([Verdict.PASSED], True, 2),
        ([Verdict.BROKEN, Verdict.FAILED], True, 1),
    ],
)
def test_the_status_of_the_main_job_follows_from_its_stages(
    verdicts: list[Verdict | None], interrupted: bool, status: int
) -> None:
    findings = [Finding(Stage("a stage", ()), verdict) for verdict in verdicts]
    findings[-1].interrupted = interrupted
    assert outcome_of_stages(findings).status == status


def test_replay_shows_readable_traces_and_names_the_others(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good = [(ROOT / "docs" / "findings" / f"{name}.jsonl").read_text() for name in ("wedged-group", "listed-twice")]
    broken = '{"type": "trace", "version": 1, "kind": "events"}\n{"type": "appended", "at_ms": 1, "offst": 2}\n'
    page, file = tmp_path / "page.html", tmp_path / "three.jsonl"
    file.write_text(broken.join(good))
    with pytest.raises(SystemExit) as ended:
        main(["replay", str(file), "--html", str(page)])
    output = capsys.readouterr()
    assert ended.value.code == 2
    assert f"{file}:{good[0].count(chr(10)) + 2}: appended.offset: Field required" in output.err
    assert page.read_text().count('<section class="trace"') == 2

    file.write_text(broken)
    page.unlink()
    with pytest.raises(SystemExit) as ended:
        main(["replay", str(file), "--html", str(page)])
    assert ended.value.code == 2
    assert not page.exists()
