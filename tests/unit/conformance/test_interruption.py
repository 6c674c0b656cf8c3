"""SIGTERM and Ctrl-C: no started process survives, and the results so far are reported."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from fencepost_conformance.common.errors import CannotRun
from fencepost_conformance.common.interruption import Interruption, interruptible
from fencepost_conformance.judge.rows.job import Job
from fencepost_conformance.run.commands import conform as conform_command
from fencepost_conformance.run.pipeline import engines
from fencepost_conformance.run.pipeline.local import run_local
from fencepost_conformance.run.pipeline.plan import Plan
from fencepost_conformance.targets.jvm import jars

PROGRAM = "import sys; from fencepost_conformance.cli import main; sys.argv = ['fencepost', *sys.argv[1:]]; main()"
#: a shell that starts a command in the background makes it ignore Ctrl-C; this restores the default. The command
#: reports its progress often, so that a test need not wait for it.
ATTENTIVE = (
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    f"from fencepost_conformance.show import console; console.EVERY = 0.1; {PROGRAM}"
)


def start(words: list[str], scratch: Path) -> subprocess.Popen[str]:
    """Start the command in a separate session with a separate temporary folder."""
    scratch.mkdir(exist_ok=True)
    return subprocess.Popen(
        [sys.executable, "-c", ATTENTIVE, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "TMPDIR": str(scratch)},
    )


def of_session(leader: int) -> dict[int, str]:
    """Return the live processes of the session: pid to command line."""
    found = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                stat = (folder / "stat").read_text()
                words = (folder / "cmdline").read_text().replace("\0", " ")
            except OSError:
                continue  # it has ended meanwhile
            state, _, _, session = stat.rpartition(")")[2].split()[:4]
            if int(session) == leader and state != "Z":
                found[int(folder.name)] = words
    return found


def until(wanted: Callable[[], object], within_s: float) -> bool:
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline:
        if wanted():
            return True
        time.sleep(0.05)
    return False


def has_jars(artifact: str) -> bool:
    return (jars.cache_root() / "jars" / artifact).is_dir()


#: commands that start JVMs, the number of JVMs, and the jars that must be present, because they would be fetched first
WITH_JVM = {
    "workers": (["conform", "--target", "kafka:4.3.1", "--traces", "100000", "--workers", "2"], 2,
                "kafka-group-coordinator-4.3.1"),
    "broker": (["conform", "--target", "broker:4.3.1", "--traces", "1000"], 1,
               "kafka_2.13-4.3.1+slf4j-simple-1.7.36"),
}  # fmt: skip


@pytest.mark.jvm
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="counts processes in /proc")
@pytest.mark.parametrize("kind", WITH_JVM)
def test_sigterm_leaves_no_process_and_no_folder(kind: str, tmp_path: Path) -> None:
    words, count, artifact = WITH_JVM[kind]
    if not has_jars(artifact):
        pytest.skip(f"needs {artifact} in the cache")
    scratch = tmp_path / "scratch"
    with start([*words, "--json"], scratch) as running:

        def jvms() -> list[str]:
            return [command for command in of_session(running.pid).values() if "java" in command.split(" ")[0]]

        assert until(lambda: len(jvms()) >= count, 40), of_session(running.pid)
        time.sleep(0.5)
        os.kill(running.pid, signal.SIGTERM)
        said, complained = running.communicate(timeout=120)
        assert until(lambda: not of_session(running.pid), 10), of_session(running.pid)
    assert running.returncode == 2
    assert "Traceback" not in complained, complained
    assert re.search(r"interrupted; [\d,]+ of [\d,]+ traces done", complained + said)
    assert not [each.name for each in scratch.iterdir() if each.name.startswith("fencepost")]


@pytest.mark.parametrize(
    ("number", "workers"), [(signal.SIGINT, "2"), (signal.SIGTERM, "1")], ids=["SIGINT", "SIGTERM"]
)
def test_an_interrupted_conform_reports_and_keeps_its_results(
    number: signal.Signals, workers: str, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    words = ["conform", "--profile", "intended", "--traces", "1000000", "--workers", workers, "-o", str(out), "--json"]
    with start(words, tmp_path / "scratch") as running:
        assert running.stderr is not None
        for line in running.stderr:  # it prints every few seconds
            if re.search(r": [1-9][\d,]* of 1,000,000", line):
                break
        os.killpg(running.pid, number)
        if number is signal.SIGTERM:  # as ``timeout`` does
            os.kill(running.pid, number)
        said, complained = running.communicate(timeout=120)
    assert running.returncode == 2, complained
    notice = re.search(r"interrupted; ([\d,]+) of 1,000,000 traces done", complained + said)
    assert notice, (said, complained)
    result = json.loads(said.splitlines()[0])
    done = result["counts"]["traces"]
    assert done == int(notice[1].replace(",", "")) > 0
    assert (result["passed"], result["stopped"]) == (False, "interrupted")
    assert result["error"] == notice[0]
    kept = json.loads((out / "summary.json").read_text())
    assert (kept["counts"]["traces"], kept["stopped"]) == (done, "interrupted")
    assert "some traces have no verdict: interrupted" in (out / "report.html").read_text()
    assert 'errors="1"' in (out / "junit.xml").read_text()


def test_failures_before_an_interruption_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The target differs, and the interruption comes in the second chunk."""
    plan = Plan(Job("core", "intended", 12), 0, 100)

    def cut_short(plan: Plan, workers: int):  # type: ignore[no-untyped-def]
        from dataclasses import replace  # noqa: PLC0415

        rows = next(iter(run_local(plan, 1)))
        yield [replace(row, outcome="differed", event=3, field="replies", left="a", right="b") for row in rows[:3]]
        raise KeyboardInterrupt

    monkeypatch.setattr(engines, "run_local", cut_short)
    summary = engines.ENGINES["local"](plan, 1, None, lambda _: None)
    assert (summary.traces, summary.tally.failed, summary.stopped) == (3, 3, "interrupted")
    conform_command.write_report(tmp_path, summary, 1.0)
    assert sorted(path.name for path in (tmp_path / "failures").iterdir()) == [f"seed-{n}.jsonl" for n in range(3)]
    assert (tmp_path / "report.html").read_text().count('class="trace"') == 3


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="counts processes in /proc")
def test_sigterm_ends_the_command_that_the_main_job_is_at(tmp_path: Path) -> None:
    program = """
from pathlib import Path
from fencepost_conformance.common.interruption import listen_to_sigterm
from fencepost_conformance.run.mainjob import Stage, run_stage
listen_to_sigterm()
words = ("conform", "--profile", "intended", "--traces", "1000000", "--workers", "1")
found = run_stage(Stage("a stage", words), Path.cwd())
print(found.word, found.result["counts"]["traces"], found.result["error"], sep="|")
"""
    with subprocess.Popen(
        [sys.executable, "-c", program],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as running:
        assert running.stderr is not None
        for line in running.stderr:
            if re.search(r": [1-9][\d,]* of 1,000,000", line):
                break
        os.kill(running.pid, signal.SIGTERM)
        said, _ = running.communicate(timeout=120)
        assert until(lambda: not of_session(running.pid), 10), of_session(running.pid)
    verdict, done, error = said.strip().split("|")
    assert (verdict, int(done) > 0) == ("interrupted", True)
    assert error.startswith("interrupted; ")


def test_the_block_ends_and_not_the_command() -> None:
    with interruptible() as cut:
        raise KeyboardInterrupt
    assert cut.happened
    assert cut.reason("3 of 5 done") == "interrupted; 3 of 5 done"
    assert Interruption().reason("all") is None
    with pytest.raises(CannotRun), interruptible():
        raise CannotRun("another end")


def test_an_interruption_on_its_way_is_not_logged() -> None:
    program = """
import logging
from fencepost_conformance.common.interruption import Terminated, listen_to_sigterm
listen_to_sigterm()
for name in ("", "py4j.clientserver"):
    log = logging.getLogger(name)
    try:
        try:
            raise Terminated
        finally:
            raise BrokenPipeError
    except BrokenPipeError:
        log.exception("an interruption")
    try:
        raise ValueError
    except ValueError:
        log.exception("a mistake")
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert (ran.stderr.count("a mistake"), ran.stderr.count("an interruption")) == (2, 0)


def test_an_interrupted_validate_reports_its_results(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from fencepost_conformance.cli import main  # noqa: PLC0415
    from fencepost_conformance.run.validate import run  # noqa: PLC0415

    corpus = Path(__file__).parents[2] / "corpus"
    files = [str(corpus / f"alone-{client}.jsonl.gz") for client in ("java", "aiokafka", "confluent-kafka")]
    look = run.check_one
    looked: list[Path] = []

    def interrupted(path: Path, *rest: object, **more: object):  # type: ignore[no-untyped-def]
        if len(looked) == 2:
            raise KeyboardInterrupt
        looked.append(path)
        return look(path, *rest, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(run, "check_one", interrupted)
    with pytest.raises(SystemExit) as ended:
        main(["validate", *files, "--workers", "1", "--json"])
    output = capsys.readouterr()
    result = json.loads(output.out.splitlines()[0])
    assert ended.value.code == 2
    assert (result["counts"]["passed"], result["passed"]) == (2, False)
    assert result["error"] == "interrupted; 2 traces checked"
