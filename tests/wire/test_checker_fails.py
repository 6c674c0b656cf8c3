"""An exception of the checker, or of the player, breaks one trace, and not the run."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from served import Served

from fencepost_conformance.cli import main
from fencepost_conformance.judge.checker import check
from fencepost_conformance.judge.checker.check import check_trace
from fencepost_conformance.run.pipeline import over_wire, stage
from fencepost_conformance.traces.files import WireTrace, read_traces

FAILS = 7  #: the seed of the trace on which the checker fails


def failing(trace: WireTrace, *args: Any, **named: Any) -> Any:
    if trace.seed == FAILS:
        raise KeyError("planted\nhere")
    return check_trace(trace, *args, **named)


@contextmanager
def threads(count: int) -> Iterator[ThreadPoolExecutor]:
    """Replaces the worker processes, which would not see a planted fault."""
    with ThreadPoolExecutor(count) as pool:
        yield pool


def ended(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, dict[str, Any]]:
    with pytest.raises(SystemExit) as left:
        main([*words, "--json"])
    assert isinstance(left.value.code, int)
    return left.value.code, json.loads(capsys.readouterr().out)


def test_a_trace_on_which_the_checker_fails_is_broken(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(over_wire, "worker_processes", threads)
    monkeypatch.setattr(over_wire, "check_trace", failing)
    with Served("--setting", "group.initial.rebalance.delay.ms=0", topics=()) as served:
        words = ("conform", "--target", served.bootstrap, "--traces", "3", "--seed", "6", "--steps-per-trace", "12")
        status, result = ended(capsys, *words, "-o", str(tmp_path))
    assert (status, result["verdict"]) == (2, "incomplete")
    assert (result["counts"]["passed"], result["counts"]["broken"]) == (2, 1)
    (broken,) = result["broken"]
    assert f"seed {FAILS}" in broken["what"]
    assert broken["why"].startswith("the checker itself failed at test_checker_fails.py:")
    assert broken["why"].endswith("KeyError: 'planted\\nhere'")
    (kept,) = read_traces(tmp_path / "broken" / f"seed-{FAILS}.jsonl")
    assert isinstance(kept, WireTrace)
    assert kept.lines

    monkeypatch.setattr(check, "check_trace", failing)
    status, result = ended(capsys, "validate", str(tmp_path / "broken"))
    assert (status, result["counts"]["broken"]) == (2, 1)


async def fails(*_: Any) -> Any:
    raise RuntimeError("planted\nthere")


@pytest.mark.parametrize("late", [True, pytest.param(False, marks=pytest.mark.all)])
def test_a_trace_on_which_the_player_fails_is_broken(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, *, late: bool
) -> None:
    """``late``: when a client acts; otherwise before any request is sent."""
    play = over_wire.play

    async def failing_once(place: Any, seed: int, *args: Any, **named: Any) -> Any:
        with monkeypatch.context() as planted:
            if seed == FAILS and late:
                planted.setattr(stage, "_client", fails)
            elif seed == FAILS:
                planted.setattr(stage, "cast_for", fails)
            return await play(place, seed, *args, **named)

    monkeypatch.setattr(over_wire, "play", failing_once)
    with Served("--setting", "group.initial.rebalance.delay.ms=0", topics=()) as served:
        words = ("conform", "--target", served.bootstrap, "--traces", "2", "--seed", "6", "--steps-per-trace", "6")
        status, result = ended(capsys, *words, "--concurrency", "1", "-o", str(tmp_path))
    assert (status, result["verdict"]) == (2, "incomplete")
    assert (result["counts"]["passed"], result["counts"]["broken"]) == (1, 1)
    (broken,) = result["broken"]
    assert f"seed {FAILS}" in broken["what"]
    assert broken["why"].startswith("the player itself failed at test_checker_fails.py:")
    assert broken["why"].endswith("RuntimeError: planted there")
    (kept,) = read_traces(tmp_path / "broken" / f"seed-{FAILS}.jsonl")
    assert isinstance(kept, WireTrace)
    assert bool(kept.lines) == late
