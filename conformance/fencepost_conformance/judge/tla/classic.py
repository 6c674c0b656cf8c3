"""The trace of a classic group as data of the module ``TraceClassic``.

This only rewrites the lines of one group. Which answers are possible is decided by the specification alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages import (
    DescribeGroupsRequest,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)
from fencepost.protocol.settings import Settings

from ..checker.commits import Commit, CommitAnswer
from ..checker.history import Event, History, Listing, Op, member_ids
from .text import Data, Tokens

#: Clocks of a broker and of a recorder differ by at most this; a timer may seem to fire so much too early.
_TOLERANCE_MS: Final = 20
_NOT_HERE: Final = (
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
)
_NO_MEMBER: Final = (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID)
#: The errors that each function of the specification can give.
_ERRORS: Final[dict[type, tuple[ErrorCode, ...]]] = {
    JoinGroupRequest: (*_NO_MEMBER, ErrorCode.MEMBER_ID_REQUIRED, ErrorCode.GROUP_MAX_SIZE_REACHED),
    SyncGroupRequest: (*_NO_MEMBER, ErrorCode.ILLEGAL_GENERATION, ErrorCode.REBALANCE_IN_PROGRESS),
    HeartbeatRequest: (*_NO_MEMBER, ErrorCode.ILLEGAL_GENERATION, ErrorCode.REBALANCE_IN_PROGRESS),
    Commit: (*_NO_MEMBER, ErrorCode.ILLEGAL_GENERATION, ErrorCode.REBALANCE_IN_PROGRESS),
    LeaveGroupRequest: _NO_MEMBER,
}
_APIS: Final = {
    JoinGroupRequest: "JoinGroup",
    SyncGroupRequest: "SyncGroup",
    HeartbeatRequest: "Heartbeat",
    Commit: "OffsetCommit",
    LeaveGroupRequest: "LeaveGroup",
}


@dataclass(frozen=True, slots=True)
class Inexpressible(Exception):
    """An event that the specification does not have; ``line`` counts the lines of the trace after its header."""

    line: int
    why: str


def group_events(history: History) -> list[Event]:
    """The events that TLC reads: those of requests that the group's state decides. Raises Inexpressible."""
    return [event for event in history.events if _is_read(event)]


def _is_read(event: Event) -> bool:
    body = event.op.body
    if isinstance(body, Commit):  # without a member it is not the group that decides (O-COMMIT-22)
        if body.transactional or body.generation_id < 0:
            return False
    elif isinstance(body, DescribeGroupsRequest | Listing):
        return False
    elif type(body) not in _APIS:
        raise Inexpressible(event.line, f"{type(body).__name__.removesuffix('Request')}, which the specification lacks")
    if event.answered:
        for code in _codes(event.op):
            if code not in (ErrorCode.NONE, *_ERRORS[type(body)], *_NOT_HERE):
                named = getattr(code, "name", code)
                raise Inexpressible(event.line, f"{_APIS[type(body)]} answered {named}, which the specification lacks")
    return True


def _codes(op: Op) -> Iterator[object]:
    yield getattr(op.answer, "error_code", "a code that Kafka lacks")
    if isinstance(op.answer, LeaveGroupResponse):
        yield from (row.error_code for row in op.answer.members)


def classic_data(history: History, settings: Settings) -> dict[str, Data]:
    """The definitions of module ``TraceData``, by name. Raises Inexpressible."""
    events = group_events(history)
    signs = {at_ms for _, at_ms in history.coordination.signs}
    signs |= {event.at_ms for event in events if event.answered and _is_turned_away(event.op)}
    ops = [event.op for event in events if not event.answered]
    metadata, assignments = Tokens("metadata"), Tokens("assignment")
    requests: dict[str, Data] = {_name(op): _request(op, metadata, assignments) for op in ops}
    answers: dict[str, Data] = {
        _name(event.op): {"number": number, "answer": _answer(event.op, metadata, assignments)}
        for number, event in enumerate(events, 1)
        if event.answered
    }
    lines: tuple[Data, ...] = tuple(
        {
            "type": "received" if event.answered else "sent",
            "request": _name(event.op),
            "line": event.line,
            "time": event.at_ms,
        }
        for event in events
    )
    joins = [op.body for op in ops if isinstance(op.body, JoinGroupRequest)]
    rebalance = [_rebalance_timeout(each) for each in joins]
    delay = settings.group_initial_rebalance_delay_ms
    longest = max(rebalance, default=0)
    windows = -(-max(longest - delay, 0) // delay) if delay else 0
    given = {
        op.answer.member_id
        for op in ops
        if isinstance(op.body, JoinGroupRequest) and isinstance(op.answer, JoinGroupResponse) and not op.body.member_id
    }
    ids = member_ids(op.answer for op in ops) | {getattr(op.body, "member_id", "") for op in ops}
    ids |= {row.member_id for op in ops if isinstance(op.body, LeaveGroupRequest) for row in op.body.members}
    ids -= {""}
    return {
        "TraceLines": lines,
        "TraceRequests": requests,
        "TraceAnswers": answers,
        "TraceIds": frozenset(ids),
        "TraceGivenIds": frozenset(given - {""}),
        "TraceIdOrder": (*sorted(ids), *requests),
        "TraceSigns": frozenset(signs),
        "TraceMaxSize": settings.group_max_size,
        "TraceDelayWindows": windows,
        "InitialDelay": delay,
        "LastDelay": max(longest - delay, 0) % delay or delay if delay else 0,
        "SessionTimeout": min((each.session_timeout_ms for each in joins), default=0),
        "RebalanceTimeout": min(rebalance, default=0),
        "Tolerance": _TOLERANCE_MS,
    }


def _rebalance_timeout(join: JoinGroupRequest) -> int:
    """In ms; version 0 has none, and its session timeout stands for it (G-WIRE-01)."""
    return join.session_timeout_ms if join.rebalance_timeout_ms < 0 else join.rebalance_timeout_ms


def _is_turned_away(op: Op) -> bool:
    return getattr(op.answer, "error_code", None) in _NOT_HERE


def _name(op: Op) -> str:
    return f"line_{op.line}"


def _request(op: Op, metadata: Tokens, assignments: Tokens) -> Data:
    body = op.body
    found: dict[str, Data] = {
        "api": _APIS[type(body)],
        "number": op.id,
        "version": op.version,
        "connection": op.connection,
        "memberId": getattr(body, "member_id", ""),
        "instanceId": getattr(body, "group_instance_id", None) or "",
        "generation": getattr(body, "generation_id", -1),
    }
    if isinstance(body, JoinGroupRequest):
        found["metadata"] = tuple({"name": each.name, "metadata": metadata[each.metadata]} for each in body.protocols)
    if isinstance(body, SyncGroupRequest):
        found["assignment"] = frozenset(
            _Row({"memberId": each.member_id, "partitions": _partitions(each.assignment, assignments)})
            for each in body.assignments
        )
    if isinstance(body, LeaveGroupRequest):
        found["rows"] = tuple(
            {"memberId": each.member_id, "instanceId": each.group_instance_id or ""} for each in body.members
        )
    return found


class _Row(dict[str, Data]):
    """A record that can be in a set."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(self))


def _partitions(assignment: bytes, assignments: Tokens) -> frozenset[Data]:
    """An assignment as a set: of nothing if it has no bytes, else of one name for its bytes."""
    return frozenset({assignments[assignment]}) if assignment else frozenset()


def _answer(op: Op, metadata: Tokens, assignments: Tokens) -> Data:
    answer = op.answer
    found: dict[str, Data] = {"api": _APIS[type(op.body)], "error": answer.error_code.name, "memberId": ""}  # type: ignore[union-attr]
    match answer:
        case JoinGroupResponse():
            found |= {
                "memberId": answer.member_id,
                "generation": answer.generation_id,
                "leader": answer.leader,
                "protocol": answer.protocol_name or "",
                "skipAssignment": answer.skip_assignment,
                "members": frozenset(
                    _Row({"memberId": each.member_id, "metadata": metadata[each.metadata]}) for each in answer.members
                ),
            }
        case SyncGroupResponse():
            found["assignment"] = _partitions(answer.assignment, assignments)
        case LeaveGroupResponse():
            found["errors"] = tuple(row.error_code.name for row in answer.members) or (answer.error_code.name,)
            if not answer.members:  # before version 3 the error is that of the only row
                found["error"] = "NONE"
        case HeartbeatResponse() | CommitAnswer():
            pass
    return found
