"""The comparison finds a fault that is put into the core, shrinks it to a few events, and ``replay`` shows it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from fencepost import coordinator
from fencepost.coordinator.routing import APIS
from fencepost.protocol import messages as m
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.profile import Profile
from fencepost.protocol.profiles import INTENDED, KAFKA_4_3, NEWEST_KAFKA
from fencepost.protocol.settings import Settings
from fencepost_conformance.cli import main
from fencepost_conformance.generate.generator import Generated, generate
from fencepost_conformance.judge.rows.check import Checker
from fencepost_conformance.judge.rows.job import Job, TraceOutcome
from fencepost_conformance.judge.shrink.shrinker import Shrunk, kind_of, shrink
from fencepost_conformance.targets.core import Core
from fencepost_conformance.traces.files import EventTrace, read_traces

JOB = Job("core", "kafka-4.3", 150)
MOST_EVENTS = 12


def wrap(monkeypatch: pytest.MonkeyPatch, request: type, change: Callable[..., object]) -> None:
    """Replace the handler of a request by ``change(handler, step, request, body)``."""
    api = APIS[request]
    changed = api._replace(handle=lambda *given: change(api.handle, *given))
    monkeypatch.setitem(APIS, request, changed)


def accept_the_generation_before(handler, step, request, body):  # type: ignore[no-untyped-def]
    group = step.memory.groups.get(body.group_id)
    if group is not None and body.generation_id == group.generation - 1 > 0:
        body = replace(body, generation_id=group.generation)
    handler(step, request, body)


def ignore_the_instance(handler, step, request, body):  # type: ignore[no-untyped-def]
    handler(step, request, replace(body, group_instance_id=None) if body.member_id else body)


def leave_only_the_first(handler, step, request, body):  # type: ignore[no-untyped-def]
    handler(step, request, replace(body, members=body.members[:1]))


def raise_on_empty_lists(handler, step, request, body):  # type: ignore[no-untyped-def]
    if not body.protocols:
        raise RuntimeError("no protocols")
    handler(step, request, body)


FAULTS = {
    "heartbeat of the generation before": (m.HeartbeatRequest, accept_the_generation_before, TraceOutcome.REFUSED),
    "no fencing of instances": (m.SyncGroupRequest, ignore_the_instance, TraceOutcome.REFUSED),
    "batches cut": (m.LeaveGroupRequest, leave_only_the_first, TraceOutcome.REFUSED),
    "an exception": (m.JoinGroupRequest, raise_on_empty_lists, TraceOutcome.RAISED),
}


def first_failure(checker: Checker) -> Generated:
    for seed in range(300):
        trace = generate(seed, KAFKA_4_3, JOB.steps)
        if checker.examine([trace])[0].outcome.failed:
            return trace
    raise AssertionError("the fault was not found")


@pytest.fixture
def checker() -> Iterator[Checker]:
    made = Checker(JOB)
    yield made
    made.close()


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_found_and_shrunk(monkeypatch: pytest.MonkeyPatch, checker: Checker, name: str) -> None:
    request, change, outcome = FAULTS[name]
    wrap(monkeypatch, request, change)
    trace = first_failure(checker)
    small: Shrunk = shrink(trace, lambda candidate: checker.examine([candidate])[0])
    assert small.found.outcome is outcome
    assert kind_of(small.found) == kind_of(checker.examine([trace])[0])
    assert len(small.trace.events) <= MOST_EVENTS
    assert small.trace.events[0].at_ms == 0
    # nothing more can be removed: the shrunk trace fails at its last event
    assert small.found.difference is not None
    assert small.found.difference.event == len(small.trace.events) - 1
    monkeypatch.undo()
    seen, failure = Core().run_until_raised(small.trace.settings, KAFKA_4_3, small.trace.events)
    healthy = replace(small.trace, observations=tuple(seen), failure=failure)
    assert not checker.examine([healthy])[0].outcome.failed, "the trace fails without the fault"


def test_a_trace_that_passes_cannot_be_shrunk(checker: Checker) -> None:
    with pytest.raises(ValueError, match="nothing to shrink"):
        shrink(generate(3, KAFKA_4_3, 40), lambda trace: checker.examine([trace])[0])


def command(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as left:
        main(list(words))
    output = capsys.readouterr()
    return int(left.value.code or 0), output.out, output.err


def test_conform_and_replay_show_a_fault(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    wrap(monkeypatch, m.HeartbeatRequest, accept_the_generation_before)
    out = tmp_path / "run"
    # in this process, which has the fault
    asked = ("conform", "--profile", "kafka-4.3", "--traces", "60", "--steps-per-trace", "150", "--workers", "1")
    status, out_text, _ = command(capsys, *asked, "--json", "-o", str(out))
    result = json.loads(out_text)
    assert (status, result["passed"]) == (1, False)
    failure = result["failures"][0]
    assert failure["outcome"] == "refused"

    page = (out / "report.html").read_text()
    assert '<b class="bad">failed</b>' in page
    assert "HeartbeatResponse(ILLEGAL_GENERATION)" in page
    assert "http" not in page.replace("http-equiv", "")
    suite = ET.parse(out / "junit.xml").getroot()[0]
    assert int(suite.attrib["failures"]) == len(result["groups"])

    _, out_text, _ = command(capsys, *asked)
    (advice,) = re.findall(r"see one: fencepost (replay \d+ .*--steps \d+)", " ".join(out_text.split()))
    assert failure["replay"] == f"fencepost {advice}"
    status, out_text, _ = command(capsys, *advice.split())
    assert status == 1
    assert "✗" in out_text

    (kept,) = read_traces(next((out / "failures").iterdir()))
    assert isinstance(kept, EventTrace)
    assert len(kept.events) <= MOST_EVENTS
    path = next((out / "failures").iterdir())
    status, out_text, _ = command(capsys, "replay", str(path), "--html", str(tmp_path / "r.html"))
    assert status == 1
    assert "✗" in out_text
    assert "C-HB-09" in out_text
    shown_page = (tmp_path / "r.html").read_text()
    assert "refused at event" in shown_page
    assert "data-marked" in shown_page

    status, out_text, _ = command(
        capsys,
        *(
            "replay",
            str(failure["seed"]),
            "--profile",
            "kafka-4.3",
            "--steps",
            "150",
            "--shrink",
            "--json",
            "-o",
            str(tmp_path / "s.jsonl"),
        ),
    )
    assert status == 1
    (shown,) = json.loads(out_text)["traces"]
    assert len(shown["steps"]) <= MOST_EVENTS
    monkeypatch.undo()

    status, out_text, _ = command(capsys, "replay", str(tmp_path / "s.jsonl"), "--json")
    found = json.loads(out_text)["traces"][0]
    # the core is restored, and no longer gives the outcomes in the file
    assert (status, found["verdict"], found["outcome"]) == (1, "failed", "differed")
    assert ErrorCode.ILLEGAL_GENERATION.name in found["difference"]["left"] + found["difference"]["right"]


@pytest.mark.parametrize(
    ("switch", "traces"), [("fault_leave_forgets_parked_sync", 100), ("fault_bad_subscription_is_thrown", 300)]
)
def test_the_core_is_checked_under_intended_by_default(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], switch: str, traces: int
) -> None:
    """A fault planted where Kafka's is fixed shows only under ``intended``, the profile that people embed."""
    begin = coordinator.initial_state
    spoiled = replace(INTENDED, **{switch: True})

    def begun(settings: Settings, profile: Profile, **functions: object) -> object:
        return begin(settings, spoiled if profile is INTENDED else profile, **functions)  # type: ignore[arg-type]

    monkeypatch.setattr(coordinator, "initial_state", begun)
    status, text, _ = command(capsys, "conform", "--traces", str(traces), "--workers", "1", "--json")
    profiles = json.loads(text)["profiles"]
    assert (status, list(profiles)) == (1, [INTENDED.name, NEWEST_KAFKA.name])
    assert profiles[INTENDED.name]["counts"]["failed"] > 0
    assert profiles[NEWEST_KAFKA.name]["counts"]["failed"] == 0


def test_conform_passes(capsys: pytest.CaptureFixture[str]) -> None:
    status, text, _ = command(capsys, "conform", "--traces", "30", "--json", "--profile", "intended")
    result = json.loads(text)
    assert (status, result["passed"], result["counts"]["traces"]) == (0, True, 30)
    assert result["counts"]["steps"] >= 30 * 60
    assert result["coverage"]["reached"] > 100


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("conform", "--target", "nonsense"), "no target 'nonsense'"),
        (("conform", "--target", "127.0.0.1:1"), "cannot connect to 127.0.0.1:1"),
        (("conform", "--target", "kafka:new"), "no release 'new' of Kafka"),
        (("conform", "--target", "127.0.0.1:9", "--engine", "spark"), "needs --engine local"),
        (("conform", "--profile", "nonsense"), "no profile 'nonsense'"),
        (("conform", "--engine", "abacus"), "no engine 'abacus'"),
        (("replay", "nowhere.jsonl"), "nowhere.jsonl: No such file"),
        (("replay", "1", "--target", "nonsense"), "no target 'nonsense'"),
    ],
)
def test_a_check_that_cannot_run_says_so_in_one_line(
    capsys: pytest.CaptureFixture[str], words: tuple[str, ...], reason: str
) -> None:
    status, text, error = command(capsys, *words)
    assert status == 2
    assert text == ""
    assert reason in error
    assert error.count("\n") == 1


def test_replay_writes_and_reads_itf(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "t.itf.json"
    assert command(capsys, "replay", "7", "--steps", "30", "-o", str(path), "--json")[0] == 0
    status, text, _ = command(capsys, "replay", str(path), "--json")
    assert (status, len(json.loads(text)["traces"][0]["steps"])) == (0, 30)
    path.write_text("[]")
    status, _, error = command(capsys, "replay", str(path))
    assert (status, "not an ITF trace" in error) == (2, True)


def test_replay_names_a_broken_line(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "b.jsonl"
    path.write_text('{"type":"trace","version":1,"kind":"events"}\n{"type":"unload"}\n')
    status, _, error = command(capsys, "replay", str(path))
    assert (status, f"{path}:2: " in error) == (2, True)


def test_replay_shows_a_wire_trace(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "w.jsonl"
    lines = (
        '{"type":"trace","version":1,"kind":"wire"}',
        '{"type":"connected","at_ms":0,"connection":1,"client":"here:1"}',
        '{"type":"sent","at_ms":1,"connection":1,"correlation_id":3,"api_key":12,"api_version":4,"client_id":"app","body":'
        '{"group_id":"g","generation_id":1,"member_id":"m","group_instance_id":null}}',
        '{"type":"received","at_ms":2,"connection":1,"correlation_id":3,"api_key":12,"api_version":4,"body":{"error_code":27}}',
        '{"type":"disconnected","at_ms":3,"connection":1,"by":"client"}',
    )  # fmt: skip
    path.write_text("\n".join(lines))
    status, text, _ = command(capsys, "replay", str(path), "--html", str(tmp_path / "w.html"))
    assert status == 2  # whether the group was alive before is unknown
    assert "Heartbeat v4 g member m generation 1" in text
    assert "REBALANCE_IN_PROGRESS" in (tmp_path / "w.html").read_text()


def test_a_known_group_of_failures_is_accepted(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An accepted failure, with its reason, changes exit status, JUnit and JSON; an entry that no failure met is
    reported."""
    wrap(monkeypatch, m.HeartbeatRequest, accept_the_generation_before)
    words = ["conform", "--profile", "kafka-4.3", "--traces", "60", "--steps", "100", "--workers", "1"]

    def run(*more: str) -> tuple[int, dict[str, Any], ET.Element]:
        with pytest.raises(SystemExit) as ended:
            main([*words, "--json", "-o", str(tmp_path / "out"), *more])
        suite = ET.parse(tmp_path / "out" / "junit.xml").getroot()[0]
        return int(ended.value.code or 0), json.loads(capsys.readouterr().out), suite

    def known(*keys: str) -> tuple[str, str]:
        (tmp_path / "known.txt").write_text("".join(f"{key} -- we know\n" for key in keys))
        return "--known", str(tmp_path / "known.txt")

    status, result, suite = run()
    keys = [group["key"] for group in result["groups"]]
    failed = result["counts"]["failed"]
    assert (status, result["passed"], suite.get("failures")) == (1, False, str(len(keys)))
    assert keys
    status, result, suite = run(*known(*keys, "Heartbeat: never met"))
    assert (status, result["passed"], suite.get("failures"), suite.get("tests")) == (0, True, "0", "1")
    assert suite[0].get("name") == f"60 of 60 traces passed ({failed} with accepted differences)"
    assert (result["counts"]["failed"], result["counts"]["known"]) == (0, failed)
    assert result["never_met"] == ["Heartbeat: never met"]
    assert {group["known"] for group in result["groups"]} == {"we know"}
    status, result, suite = run(*known(*keys[1:], "Heartbeat: never met"))
    assert (status, result["passed"]) == (1, False)
    assert suite.get("failures") == "1"
