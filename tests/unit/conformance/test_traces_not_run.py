"""A trace that the target cannot run is broken: it has neither passed nor failed, and every report says so."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from fencepost.protocol.events import Event
from fencepost.protocol.profiles import KAFKA_4_3, PROFILES
from fencepost.protocol.settings import Settings
from fencepost_conformance.cli import main
from fencepost_conformance.common.errors import CannotRun
from fencepost_conformance.common.processes import worker_processes
from fencepost_conformance.generate.generator import generate
from fencepost_conformance.judge.diff.job import Side
from fencepost_conformance.judge.diff.run import Runner
from fencepost_conformance.judge.diff.side import CoreLive, Live
from fencepost_conformance.judge.rows import check
from fencepost_conformance.run.pipeline import engines
from fencepost_conformance.targets.core import Core
from fencepost_conformance.targets.jvm.process import NoStart, ProcessFault
from fencepost_conformance.targets.kafka_jvm import KafkaJvm
from fencepost_conformance.traces.observation import Observation

SEEDS, STEPS = range(60), 25
RUN = ["conform", "--target", "kafka:4.3.1", "--steps", str(STEPS), "--traces", str(len(SEEDS)), "--workers", "1"]
EVENTS = {seed: tuple(generate(seed, KAFKA_4_3, STEPS, offsets=None).events) for seed in SEEDS}
WORDS = "java: it ended.\nOut of memory"


class Fake(KafkaJvm):
    """A target that behaves like the core, except for the seeds that it cannot run, and those that it runs
    differently."""

    unrun: frozenset[int] = frozenset()
    otherwise: frozenset[int] = frozenset()
    starts = True

    def run_many(self, traces: Sequence[tuple[Settings, Sequence[Event]]]) -> list[list[Observation]]:
        if not self.starts:
            raise NoStart(WORDS)
        if any(tuple(events) == EVENTS[seed] for seed in self.unrun for _, events in traces):
            raise ProcessFault(WORDS)
        ran = [Core().run_until_raised(settings, KAFKA_4_3, events)[0] for settings, events in traces]
        for at, (_, events) in enumerate(traces):
            if any(tuple(events) == EVENTS[seed] for seed in self.otherwise):
                ran[at] = [Observation() for _ in ran[at]]
        return ran


@pytest.fixture
def kafka(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    monkeypatch.setattr(check, "KafkaJvm", Fake)
    monkeypatch.setattr(engines, "_require_harness", lambda _: None)

    def with_faults(unrun: Sequence[int] = (), otherwise: Sequence[int] = (), *, starts: bool = True) -> None:
        monkeypatch.setattr(Fake, "unrun", frozenset(unrun))
        monkeypatch.setattr(Fake, "otherwise", frozenset(otherwise))
        monkeypatch.setattr(Fake, "starts", starts)

    return with_faults


def run(capsys: pytest.CaptureFixture[str], *more: str) -> tuple[int, dict[str, object]]:
    with pytest.raises(SystemExit) as ended:
        main([*RUN, "--json", *more])
    return int(ended.value.code or 0), json.loads(capsys.readouterr().out)


def test_a_trace_that_could_not_run_is_listed_beside_the_passed_ones(
    kafka: Callable[..., None], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kafka(unrun=(3, 17))
    status, result = run(capsys, "-o", str(tmp_path))
    assert (status, result["passed"], result["status"]) == (2, False, 2)
    assert result["counts"].items() >= {"traces": 60, "broken": 2, "failed": 0}.items()  # type: ignore[attr-defined]
    assert [row["seed"] for row in result["broken"]] == [3, 17]  # type: ignore[attr-defined]
    assert "2 of 60 traces broken (first: seed 3: java: it ended. Out of memory)" in str(result["error"])
    suite = ET.parse(tmp_path / "junit.xml").getroot()[0]
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("3", "0", "2")
    assert suite[0].get("name") == "58 of 60 traces passed"
    page = (tmp_path / "report.html").read_text()
    assert "No verdict (2)" in page
    assert "some traces have no verdict" in page


def test_a_failure_beside_a_broken_trace_decides_the_status(
    kafka: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    kafka(unrun=(3,), otherwise=(5,))
    status, result = run(capsys)
    assert (status, result["passed"]) == (1, False)
    assert result["counts"].items() >= {"traces": 60, "broken": 1, "failed": 1}.items()  # type: ignore[attr-defined]


def test_too_many_in_a_row_end_the_run(
    kafka: Callable[..., None], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(check, "IN_A_ROW", 4)
    kafka(unrun=(1, 2, 3, *range(55, 59)))
    status, result = run(capsys)
    assert status == 2
    assert "4 traces in a row could not be run" in str(result["error"])
    assert result["counts"].items() >= {"traces": 50, "broken": 3}.items()  # type: ignore[attr-defined]


def test_a_target_that_does_not_start_ends_the_run(
    kafka: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    kafka(starts=False)
    status, result = run(capsys)
    assert (status, result["status"]) == (2, 2)
    assert "Out of memory" in str(result["error"])


def test_on_the_terminal(kafka: Callable[..., None], capsys: pytest.CaptureFixture[str]) -> None:
    kafka(unrun=(3,))
    with pytest.raises(SystemExit) as ended:
        main(RUN)
    output = capsys.readouterr()
    assert ended.value.code == 2
    assert "No verdict: 1 trace" in output.out
    assert "seed 3" in output.out
    assert "1 of 60 traces broken" in output.err


def test_replay_reports_it_too(kafka: Callable[..., None], capsys: pytest.CaptureFixture[str]) -> None:
    kafka(unrun=(3,))
    with pytest.raises(SystemExit) as ended:
        main(["replay", "3", "--target", "kafka:4.3.1", "--steps", str(STEPS)])
    assert ended.value.code == 2
    assert "Out of memory" in capsys.readouterr().err


class _Stops(CoreLive):
    """A side whose process ends at some events; ``feeds`` counts all events."""

    feeds = 0
    at: frozenset[int] = frozenset()

    def feed(self, event: Event) -> Observation:
        _Stops.feeds += 1
        if self.feeds in self.at:
            raise ProcessFault(WORDS)
        return super().feed(event)


@pytest.mark.parametrize(("sides", "status"), [("core core", 2), ("core core:kafka-4.2", 1)])
@pytest.mark.parametrize("side", ["one", "other"])
def test_diff_continues_without_a_trace_that_could_not_run(  # noqa: PLR0917 — fixtures
    side: str,
    sides: str,
    status: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    live = Runner._live

    def stopping(self: Runner, place: str, own: Side, settings: Settings) -> Live:
        return _Stops(settings, PROFILES[own.profile]) if place == side else live(self, place, own, settings)

    monkeypatch.setattr(Runner, "_live", stopping)
    monkeypatch.setattr(_Stops, "feeds", 0)
    monkeypatch.setattr(_Stops, "at", frozenset({40, 41}))
    words = [*sides.split(), "--traces", "9", "--steps", "30", "--protocol", "consumer", "--workers", "1", "--json"]
    with pytest.raises(SystemExit) as ended:
        main(["diff", *words, "--no-shrink", "-o", str(tmp_path)])
    own = json.loads(capsys.readouterr().out)
    assert (ended.value.code, own["passed"], own["counts"]["traces"], own["counts"]["broken"]) == (
        status,
        False,
        9,
        2,
    )
    assert [row["seed"] for row in own["broken"]] == [1, 2]
    page = (tmp_path / "report.html").read_text()
    assert "2 of 9 traces broken (first: consumer seed 1: " in page
    assert "No verdict (2)" in page


def test_workers_that_cannot_read_their_work_end_the_run_with_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """As if the program is changed while it runs."""
    module = tmp_path / "of_today.py"
    module.write_text("def work(number): return number\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    import of_today  # type: ignore[import-not-found]  # noqa: PLC0415

    module.write_text("def work(number: return number\n")
    with pytest.raises(CannotRun, match="could not start or continue"), worker_processes(2) as pool:
        list(pool.map(of_today.work, range(8)))
    errors = capfd.readouterr().err
    assert "SyntaxError" in errors
    assert "Traceback" not in errors
    sys.modules.pop("of_today")
