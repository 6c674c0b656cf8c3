"""The bundled corpus: its content, that it is accepted, and that every falsified copy of it is rejected."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest

from fencepost_conformance.common.errors import CannotRun
from fencepost_conformance.judge.checker.check import check_file, check_trace
from fencepost_conformance.judge.checker.search import Limits
from fencepost_conformance.run.falsify.falsehoods import KINDS, falsehoods
from fencepost_conformance.traces.files import WireTrace, read_traces
from fencepost_conformance.traces.lines import ReceivedLine, SentLine
from tools.corpus.produce import takes
from tools.corpus.scenarios import ALL, SCENARIOS

CORPUS = Path(__file__).parents[1] / "corpus"
FILES = sorted(CORPUS.glob("*.jsonl.gz"))
#: The number of kinds of falsification for each trace; the next trace takes the next kinds.
KINDS_PER_TRACE = 3
#: A trace whose falsified copies take a third of the time of all.
LONG = "full-confluent-kafka"


def read(path: Path) -> WireTrace:
    (trace,) = read_traces(path)
    assert isinstance(trace, WireTrace)
    return trace


def test_the_corpus_is_broad_and_small() -> None:
    names = {path.name.removesuffix(".jsonl.gz") for path in FILES}
    assert len(names) >= 180
    assert sum(name.startswith("consumer-") for name in names) >= 40
    assert sum(name.startswith(("roll-", "mixed-")) for name in names) >= 20
    assert sum(path.stat().st_size for path in FILES) < 5_000_000
    for library in ALL:
        assert sum(name.endswith(library) for name in names) >= 20, library
    played = {scenario.title for scenario in SCENARIOS.values()}
    assert all(any(name.startswith(title) for title in played) for name in names)
    missing = {title for title in played if not any(name.startswith(title) for name in names)}
    assert not missing


def test_a_name_without_a_trace_is_reported() -> None:
    assert {take.library for take in takes(["alone-"], java=False)} == set(ALL) - {"java"}
    with pytest.raises(CannotRun, match="no trace begins with 'alnoe'"):
        takes(["alone-", "alnoe"])


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name.removesuffix(".jsonl.gz"))
def test_the_model_could_have_produced_it(path: Path) -> None:
    """Among them are groups that rolled from one protocol to the other and back (X-ROLL-02)."""
    provenance = dict(read(path).provenance)
    assert {"broker", "client", "scenario", "assignors", "started_at"} <= provenance.keys()
    (verdict,) = check_file(path)
    assert verdict.outcome == "accepted", (verdict.reason, verdict.refusals)
    assert verdict.events >= 10


@pytest.mark.parametrize(
    "number",
    [
        pytest.param(number, marks=[pytest.mark.all] if path.name.startswith(LONG) else [])
        for number, path in enumerate(FILES)
    ],
)
def test_no_falsified_copy_is_accepted(number: int) -> None:
    trace = read(FILES[number])
    kinds = list(KINDS)
    first = number * KINDS_PER_TRACE % len(kinds)
    tried = list(islice(falsehoods(trace, 1, kinds[first:] + kinds[:first]), KINDS_PER_TRACE))
    assert len(tried) == KINDS_PER_TRACE
    for wrong in tried:
        verdict = check_trace(wrong.trace)
        assert verdict.outcome == "refused", (wrong.kind, wrong.first)
        assert wrong.first <= verdict.refusals[0].line <= wrong.last, (wrong.kind, verdict.refusals[0])


@pytest.mark.parametrize("name", ["mixed-at-once-java", "mixed-freeze-java", "roll-up-mixed"])
def test_a_member_that_rejoins_excuses_no_lost_offset(name: str) -> None:
    """A JoinGroup with a member id can remove a group, but only an empty one, and then it is rejected (C-JOIN-15)."""
    for wrong in falsehoods(read(CORPUS / f"{name}.jsonl.gz"), kinds=["fetched-nothing-after-a-commit"]):
        assert check_trace(wrong.trace).outcome == "refused", wrong.first


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_falsehood_is_refused_somewhere(kind: str) -> None:
    """The sample above leaves some kinds out."""
    mixed = kind.startswith(("consumer", "mixed", "described"))
    files = [path for path in FILES if path.name.startswith(("mixed", "roll", "consumer")) is mixed]
    files.sort(key=lambda path: path.name.startswith("consumer"))  # first the kinds of both protocols
    wrong = next(each for path in files for each in falsehoods(read(path), 1, (kind,)))
    verdict = check_trace(wrong.trace)
    assert verdict.outcome == "refused"
    assert wrong.first <= verdict.refusals[0].line <= wrong.last


def test_a_session_of_the_consumer_protocol_does_not_run_out_too_soon() -> None:
    trace = read(CORPUS / "consumer-crash-java.jsonl.gz")
    longer = replace(trace.settings, group_consumer_session_timeout_ms=60_000)
    (refusal,) = check_trace(replace(trace, settings=longer)).refusals
    assert "INV-KIP-01" in refusal.rules


def test_a_revocation_is_not_waited_for_forever() -> None:
    """The slow member is fenced when its rebalance timeout of 6 s is over; with 60 s it would not be."""
    trace = read(CORPUS / "consumer-too-slow-member-java.jsonl.gz")
    lines = [
        line.model_copy(update={"body": {**line.body, "rebalance_timeout_ms": 60_000}})
        if isinstance(line, SentLine) and line.body.get("rebalance_timeout_ms") == 6_000
        else line
        for line in trace.lines
    ]
    (refusal,) = check_trace(replace(trace, lines=tuple(lines))).refusals
    assert refusal.rules


def _crash() -> WireTrace:
    return read(CORPUS / "crash-kafka-python.jsonl.gz")


def test_a_session_does_not_run_out_too_soon() -> None:
    trace = _crash()
    lines = [
        line.model_copy(update={"body": {**line.body, "session_timeout_ms": 60_000}})
        if isinstance(line, SentLine) and line.api_key == 11 and line.client_id == "two"
        else line
        for line in trace.lines
    ]
    verdict = check_trace(WireTrace(trace.settings, trace.profile, tuple(lines)))
    assert verdict.outcome == "refused"
    assert verdict.refusals[0].allowed == ("NONE",)
    assert "REBALANCE_IN_PROGRESS" in verdict.refusals[0].seen


def test_a_session_does_not_last_forever() -> None:
    trace = _crash()
    answer = [
        line
        for line in trace.lines
        if isinstance(line, ReceivedLine) and line.api_key == 12 and line.body["error_code"] == 27
    ][-1]
    asked = next(
        at
        for at, line in enumerate(trace.lines)
        if isinstance(line, SentLine)
        and (line.connection, line.correlation_id) == (answer.connection, answer.correlation_id)
    )
    late = tuple(
        line.model_copy(update={"at_ms": line.at_ms + 20_000}) if at >= asked else line
        for at, line in enumerate(trace.lines)
    )
    moved = WireTrace(trace.settings, trace.profile, late)
    assert check_trace(moved, limits=Limits(slack_ms=60_000)).outcome == "accepted"
    (refusal,) = check_trace(moved).refusals
    assert any("UNKNOWN_MEMBER_ID" in answer for answer in refusal.allowed)


def test_a_member_that_a_timer_may_have_removed_has_its_generation_or_is_unknown() -> None:
    """Before the last of these heartbeats, a timer of the classic group may have removed the member (X-TMR-02). The
    answer is NONE or UNKNOWN_MEMBER_ID then, and never ILLEGAL_GENERATION."""
    copies = list(falsehoods(read(CORPUS / "roll-cooperative-java.jsonl.gz"), None))
    copies = [each for each in copies if each.kind == "mixed-heartbeat-generation"]
    assert len(copies) == 3
    for copy in copies:
        verdict = check_trace(copy.trace)
        assert [refusal.line for refusal in verdict.refusals[:1]] == [copy.first]
