"""The search accepts every trace of the model on any network, and rejects every trace that breaks the protocol."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupMember,
    LeaveGroupRequest,
    LeaveGroupResponse,
    Protocol,
)
from fencepost_conformance.judge.checker.check import check_trace
from fencepost_conformance.judge.checker.search import Limits
from fencepost_conformance.run.falsify.falsehoods import KINDS, falsehoods
from fencepost_conformance.traces.convert import wire_body
from fencepost_conformance.traces.lines import ConnectedLine, ReceivedLine, SentLine

from .simulated import Simulation


@pytest.mark.parametrize("seed", range(14))
def test_traces_of_the_model_are_accepted(seed: int) -> None:
    trace = Simulation(seed, clients=2 + seed % 7, latency_ms=(0, 10, 60)[seed % 3]).run()
    verdict = check_trace(trace)
    assert verdict.outcome == "accepted", (verdict.reason, verdict.refusals)
    assert verdict.events > 20


def test_forty_members_are_checked_in_few_steps() -> None:
    trace = Simulation(3, clients=40, length_ms=8_000).run()
    verdict = check_trace(trace, limits=Limits(steps=3_000, second_look=0))
    assert verdict.outcome == "accepted"


@pytest.mark.parametrize("seed", range(3))
def test_falsehoods_are_refused_where_they_begin(seed: int) -> None:
    trace = Simulation(seed, clients=4, static=0.0, crashes=0.0, length_ms=12_000).run()
    assert check_trace(trace).outcome == "accepted"
    for wrong in falsehoods(trace, per_kind=1):
        verdict = check_trace(wrong.trace)
        assert verdict.outcome == "refused", (wrong.kind, wrong.first)
        assert wrong.first <= verdict.refusals[0].line <= wrong.last, wrong.kind


def test_every_kind_of_falsehood_has_a_reason() -> None:
    assert all(make.__doc__ for make in KINDS.values())


def test_a_rejection_names_possible_answers_and_the_reason() -> None:
    trace = Simulation(1, clients=2, static=0.0, crashes=0.0).run()
    wrong = next(each for each in falsehoods(trace) if each.kind == "heartbeat-illegal-generation")
    (refusal,) = check_trace(wrong.trace).refusals
    assert refusal.line == wrong.first
    assert refusal.seen.startswith("Heartbeat v4 of member id ")
    assert refusal.seen.endswith("was answered ILLEGAL_GENERATION")
    assert refusal.allowed == ("NONE",)
    assert "C-HB-12" in refusal.rules


def stranger(at_ms: int, connection: int, error: ErrorCode) -> tuple[ConnectedLine, SentLine, ReceivedLine]:
    """Send a Heartbeat of a stranger, and its answer."""
    common: dict[str, Any] = {
        "at_ms": at_ms,
        "connection": connection,
        "correlation_id": 1,
        "api_key": 12,
        "api_version": 4,
    }
    beat = HeartbeatRequest("g", generation_id=3, member_id="stranger")
    return (
        ConnectedLine(at_ms=at_ms, connection=connection),
        SentLine(**common, client_id="stranger", body=wire_body(beat)),
        ReceivedLine(**common, body=wire_body(HeartbeatResponse(error))),
    )


def test_a_heartbeat_is_answered_none_while_the_coordinator_loads() -> None:
    """Any client gets it, repeatedly, until some answer shows that the coordinator has loaded (C-HB-03)."""
    trace = Simulation(2, clients=3).run()
    loading = stranger(0, 901, ErrorCode.NONE) + stranger(0, 902, ErrorCode.NONE)
    verdict = check_trace(replace(trace, lines=loading + trace.lines))
    assert verdict.outcome == "accepted", (verdict.reason, verdict.refusals)


@pytest.mark.parametrize("after", [1, 4, 40])
def test_a_stranger_is_not_answered_none_by_a_coordinator_that_has_loaded(after: int) -> None:
    """``after``: the number of answers before it (C-HB-05, C-HB-08)."""
    trace = Simulation(2, clients=3).run()
    answered = [at for at, line in enumerate(trace.lines) if isinstance(line, ReceivedLine)]
    at = answered[after - 1] + 1
    late = stranger(trace.lines[at - 1].at_ms, 901, ErrorCode.NONE)
    verdict = check_trace(replace(trace, lines=trace.lines[:at] + late + trace.lines[at:]))
    assert verdict.outcome == "refused"
    assert verdict.refusals[0].line == at + 3
    assert verdict.refusals[0].allowed == ("UNKNOWN_MEMBER_ID",)


def test_a_group_without_any_join_is_known_to_be_missing() -> None:
    """The answer to the first stranger shows that the coordinator has loaded (C-HB-05)."""
    trace = Simulation(2, clients=3).run()
    lines = stranger(0, 901, ErrorCode.UNKNOWN_MEMBER_ID) + stranger(0, 902, ErrorCode.NONE)
    verdict = check_trace(replace(trace, lines=lines + trace.lines))
    assert verdict.outcome == "refused"
    assert verdict.refusals[0].line == len(lines)


def test_a_group_that_was_alive_is_not_explained_by_loading() -> None:
    """The first Heartbeat has two explanations; the second has only one, that the group was alive before."""
    trace = Simulation(2, clients=3).run()
    at = next(at for at, line in enumerate(trace.lines) if isinstance(line, ReceivedLine)) + 1
    late = stranger(trace.lines[at - 1].at_ms, 902, ErrorCode.NONE)
    lines = stranger(0, 901, ErrorCode.NONE) + trace.lines[:at] + late + trace.lines[at:]
    verdict = check_trace(replace(trace, lines=lines))
    assert (verdict.outcome, verdict.line) == ("undecided", 3)


def test_a_leave_that_waits_for_the_log_takes_effect_before_its_answer() -> None:
    """The log is slow: the record of the new group is written 4 s later. The answer to the leave waits for it
    (F-RT-07), and the errors of JoinGroup do not (F-RT-20)."""
    trace = Simulation(2, clients=3).run()
    join = JoinGroupRequest(
        "slow",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        member_id="",
        protocol_type="connect",
        protocols=(Protocol("range", b""),),
    )
    required = JoinGroupResponse(ErrorCode.MEMBER_ID_REQUIRED, member_id="m")
    unknown = JoinGroupResponse(ErrorCode.UNKNOWN_MEMBER_ID, member_id="m")
    lines = (
        wire(SentLine, 0, 1, 11, 9, join),
        wire(ReceivedLine, 0, 1, 11, 9, required),
        wire(SentLine, 10, 2, 13, 2, LeaveGroupRequest("slow", (LeaveGroupMember("m"),))),
        wire(SentLine, 1_000, 3, 11, 9, replace(join, member_id="m")),
        wire(ReceivedLine, 1_001, 3, 11, 9, unknown),
        wire(ReceivedLine, 4_100, 2, 13, 2, LeaveGroupResponse(ErrorCode.NONE)),
    )
    verdict = check_trace(replace(trace, lines=lines), limits=Limits(second_look=0))
    assert verdict.outcome == "accepted", (verdict.reason, verdict.refusals)


def wire(kind: Any, at_ms: int, connection: int, key: int, version: int, body: Any) -> Any:  # noqa: PLR0917
    return kind(
        at_ms=at_ms,
        connection=connection,
        correlation_id=1,
        api_key=key,
        api_version=version,
        body=wire_body(body),
        **({"client_id": "m"} if kind is SentLine else {}),
    )
