"""The parts of ``fencepost bench serve``: each ends within its limit, has a line of progress, and is skipped with the
reason if it cannot run."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from fencepost_conformance.common.errors import BrokerFault, CannotRun
from fencepost_conformance.run.bench import serve
from fencepost_conformance.run.bench.parts import Parts
from fencepost_conformance.run.bench.served import Server

#: Ends after every limit here; without a limit the test fails instead of hanging.
STUCK = [sys.executable, "-c", "import time; time.sleep(20)"]


def raising(error: Exception) -> None:
    raise error


def test_each_part_has_a_line_of_progress(capsys: pytest.CaptureFixture[str]) -> None:
    parts = Parts("serve", 60)
    assert parts.run("one", 60, lambda: 1) == 1
    assert parts.run("two", 60, lambda: raising(CannotRun("Go is not installed\nmore"))) is None
    progress = capsys.readouterr().err.splitlines()
    assert progress == ["serve: one: 0.0 s", "serve: two: skipped: Go is not installed"]


def test_a_late_part_is_interrupted_and_the_next_one_runs(capsys: pytest.CaptureFixture[str]) -> None:
    parts = Parts("serve", 60)
    began = time.monotonic()
    assert parts.run("stuck", 0.2, lambda: subprocess.run(STUCK, check=True)) is None
    assert time.monotonic() - began < 10
    assert parts.run("next", 60, lambda: "done") == "done"
    assert parts.skipped == {"serve: stuck": "did not end within 0.2 s"}
    assert "serve: stuck: skipped: did not end within 0.2 s" in capsys.readouterr().err
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_a_late_part_closes_what_it_has_opened() -> None:
    closed = []

    @contextmanager
    def server() -> Iterator[None]:
        try:
            yield
        finally:
            closed.append(True)

    def work() -> None:
        with server():
            time.sleep(20)

    Parts("serve", 60).run("stuck", 0.1, work)
    assert closed == [True]


def test_no_part_runs_after_the_end_of_the_whole() -> None:
    parts = Parts("serve", 0.2)
    parts.run("first", 60, lambda: time.sleep(20))
    parts.run("second", 60, lambda: pytest.fail("it ran"))
    assert parts.skipped == {
        "serve: first": "did not end within 0.2 s",
        "serve: second": "not begun: the 0.2 s of the whole benchmark were over",
    }


def test_other_errors_are_not_hidden() -> None:
    with pytest.raises(ZeroDivisionError):
        Parts("serve", 60).run("broken", 60, lambda: 1 // 0)


def test_a_generator_that_hangs_and_a_broker_that_fails_are_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    """The whole benchmark with servers that do nothing: each load takes too long, and still there is a result."""
    left = []

    @contextmanager
    def server(*_: object, name: str = "fencepost", **__: object) -> Iterator[Server]:
        yield Server(name, "127.0.0.1:1", 1, 0.0)
        left.append(name)

    monkeypatch.setattr(serve, "_built", lambda: Path("/bin/generator"))
    monkeypatch.setattr(serve, "kafka", lambda: raising(BrokerFault("kafka has no memory\nits log")))
    monkeypatch.setattr(serve, "kfake", lambda: server(name="kfake"))
    monkeypatch.setattr(serve, "fencepost", server)
    monkeypatch.setattr(serve, "starts", lambda rounds: raising(CannotRun("no port")))
    monkeypatch.setattr(serve, "_filled", lambda *_: iter(()))
    monkeypatch.setattr(serve, "_variants", lambda *_: iter(()))
    monkeypatch.setattr(serve, "RATES", (serve.Load("rates", "", 0.05),))
    monkeypatch.setattr(serve, "LATENCIES", ())
    monkeypatch.setattr(serve, "run", lambda *_: subprocess.run(STUCK, check=True))
    found = serve.serve()
    rounds = {f"serve: {name}: rates, round {n}" for name in ("fencepost", "kfake") for n in (1, 2, 3)}
    assert {part for part, why in found.skipped.items() if why == "did not end within 0.05 s"} == rounds
    assert {part for part in found.skipped if part not in rounds} == {
        "serve: Kafka 4.4.0: start",
        "serve: starts of the port",
    }
    assert (found.rows, left) == ([], ["kfake", "fencepost"])
