"""The command line where its surroundings do not play along: a reader that leaves, a component that is missing."""

from __future__ import annotations

import subprocess
import sys

import pytest

from fencepost_conformance.console import CannotRun
from fencepost_conformance.jvm import harness
from fencepost_conformance.pipeline.engines import ENGINES
from fencepost_conformance.pipeline.job import Job
from fencepost_conformance.pipeline.plan import Plan

PROGRAM = "import sys; from fencepost_conformance.cli import main; sys.argv = ['fencepost', *sys.argv[1:]]; main()"


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


@pytest.mark.parametrize("engine", ENGINES)
def test_a_missing_component_is_told_before_any_engine_starts(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(version: str) -> list[str]:
        raise CannotRun(f"install what runs Kafka {version}")

    def started(*_: object) -> None:
        raise AssertionError("the engine was started")

    monkeypatch.setattr(harness, "command", missing)
    monkeypatch.setattr("fencepost_conformance.pipeline.engines.run_local", started)
    if engine == "spark":
        spark = pytest.importorskip("fencepost_conformance.pipeline.spark", reason="needs PySpark")
        monkeypatch.setattr(spark, "spark_session", started)
    with pytest.raises(CannotRun, match=r"install what runs Kafka 4\.3\.1"):
        ENGINES[engine](Plan(Job("kafka:4.3.1", "kafka-4.3", 10, False), 0, 4), 2, None, lambda _: None)
