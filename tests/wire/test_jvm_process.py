"""The process around the harness: missing parts are named, faults are reported, nothing hangs, and no process is left
over."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from jvm_traces import LOADED, RELEASE, join, require_harness, run

from fencepost.protocol.settings import Settings
from fencepost_conformance.common.errors import CannotRun
from fencepost_conformance.targets.jvm import harness, jars
from fencepost_conformance.targets.jvm.process import LineProcess, NoStart, ProcessFault, in_a_line
from fencepost_conformance.targets.kafka_jvm import KafkaJvm


def python(code: str, timeout_s: float = 30.0) -> LineProcess:
    return LineProcess([sys.executable, "-u", "-c", code], timeout_s)


def test_without_java_the_message_names_the_jdk_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("FENCEPOST_CACHE", str(tmp_path))
    with pytest.raises(CannotRun, match="install a JDK, version 17 or later"):
        run(KafkaJvm(RELEASE), LOADED)


def test_an_old_java_is_reported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    old = tmp_path / "bin" / "java"
    old.parent.mkdir()
    old.write_text("#!/bin/sh\necho 'openjdk version \"1.8.0_402\"' >&2\n")
    old.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(CannotRun, match=r'version "1\.8.* this needs a JDK, version 17'):
        jars.java()


def fake_java(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\necho 'openjdk version \"17.0.1\"' >&2\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(folder))


def test_jars_that_cannot_be_fetched(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fake_java(tmp_path / "jdk", monkeypatch)
    monkeypatch.setenv("FENCEPOST_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", "/bin:/nowhere")
    monkeypatch.setattr(jars.shutil, "which", lambda name: None)
    with pytest.raises(CannotRun, match=r"fetch some:thing:1\.0(: check the network| install Maven .* or PySpark)"):
        jars.fetch("some:thing:1.0")
    assert list((tmp_path / "cache" / "jars").iterdir()) == []


def test_a_folder_appears_only_when_it_is_complete(tmp_path: Path) -> None:
    target = tmp_path / "folder"

    def half(folder: Path) -> None:
        (folder / "one").write_text("1")
        raise OSError("the disk is full")

    with pytest.raises(OSError, match="full"):
        jars.publish(target, half)
    assert list(tmp_path.iterdir()) == []

    def late(folder: Path) -> None:
        (folder / "mine").write_text("")
        target.mkdir()
        (target / "theirs").write_text("")

    jars.publish(target, late)
    assert [item.name for item in target.iterdir()] == ["theirs"]


def test_large_exchanges_do_not_block() -> None:
    process = python("import sys\nfor line in sys.stdin: sys.stdout.write(line)")
    line = b"x" * 50_000 + b"\n"
    answers = process.exchange(line * 200, 200)
    assert answers == [line[:-1]] * 200
    process.close()


def test_a_process_that_dies_is_reported_with_its_last_output() -> None:
    process = python("import sys\nsys.stdin.readline()\nsys.exit('out of paper')")
    with pytest.raises(ProcessFault, match=r"it ended.*\n.*out of paper"):
        process.exchange(b"go\n", 1)


def test_a_process_that_hangs_is_ended() -> None:
    process = python("import signal\nprint('up')\nsignal.pause()", 0.5)
    process.read(1)
    with pytest.raises(ProcessFault, match=r"no answer within 0\.5 s"):
        process.exchange(b"go\n", 1)
    assert process.ended()


@pytest.mark.jvm
def test_a_trace_that_the_harness_cannot_run_is_reported_and_the_next_one_runs() -> None:
    require_harness()
    with KafkaJvm(RELEASE) as kafka:
        with pytest.raises(ProcessFault, match=r"could not run a trace: .*UnsupportedVersion"):
            run(kafka, LOADED, join(1, 1, version=99))
        assert len(run(kafka, LOADED, join(1, 1))) == 2
        assert kafka.run_many([]) == []


@pytest.mark.jvm
def test_a_killed_jvm_is_reported_and_replaced() -> None:
    require_harness()
    with KafkaJvm(RELEASE) as kafka:
        run(kafka, LOADED)
        assert kafka.pid is not None
        os.kill(kafka.pid, signal.SIGKILL)
        with pytest.raises(ProcessFault, match="it ended"):
            kafka.run_many([(Settings(), [LOADED, join(1, 1)])] * 50)
        assert len(run(kafka, LOADED, join(1, 1))) == 2


@pytest.mark.jvm
def test_a_trace_that_cannot_be_run_costs_that_trace_only() -> None:
    """The same error, whether the harness reports the failure, or the JVM ends; here the test kills it."""
    require_harness()
    good, bad = (Settings(), [LOADED, join(1, 1)]), (Settings(), [LOADED, join(1, 1, version=99)])
    with KafkaJvm(RELEASE) as kafka:
        found = kafka.run_each([good, bad, good])
        assert isinstance(found[1], ProcessFault)
        assert "UnsupportedVersion" in in_a_line(found[1])
        assert found[0] == found[2] == kafka.run_many([good])[0]
        assert kafka.pid is not None
        os.kill(kafka.pid, signal.SIGKILL)
        assert kafka.run_each([good] * 3) == [found[0]] * 3


@pytest.mark.jvm
def test_a_jvm_that_does_not_start_is_not_a_fault_of_a_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(harness, "command", lambda _: [sys.executable, "-c", "raise SystemExit('no room')"])
    with KafkaJvm(RELEASE) as kafka, pytest.raises(NoStart, match="no room"):
        kafka.run_each([(Settings(), [LOADED])] * 3)


@pytest.mark.jvm
def test_the_jvm_dies_with_its_parent() -> None:
    require_harness()
    code = (
        "import os, signal, sys\n"
        "from fencepost.protocol.events import Load\n"
        "from fencepost.protocol.profiles import KAFKA_4_3\n"
        "from fencepost.protocol.settings import Settings\n"
        "from fencepost_conformance.targets.kafka_jvm import KafkaJvm\n"
        f"kafka = KafkaJvm('{RELEASE}')\n"
        "kafka.run(Settings(), KAFKA_4_3, [Load(0, leader_epoch=1, records=())])\n"
        "print(kafka.pid, flush=True)\n"
        # a child that keeps the pipes open must not keep the JVM alive
        "if os.fork() == 0:\n"
        "    sys.stdin.read()\n"  # until this test closes it
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        parent.wait()
        deadline = time.monotonic() + 90
        while Path(f"/proc/{pid}").exists() and not _is_zombie(pid):
            assert time.monotonic() < deadline, "the JVM outlived its parent"
            time.sleep(0.05)


def _is_zombie(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True
