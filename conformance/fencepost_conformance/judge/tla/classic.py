"""The trace of a classic group as data of the module ``TraceClassic``.

This only rewrites the lines of one group. Which answers are possible is decided by the specification alone.
"""

from __future__ import annotations

from collections.abc import Iterator
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
from .text import NOT_HERE, TOLERANCE_MS, Constants, Data, Inexpressible, Row, Tokens, lines_of, name_of, signs_of

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
            if code not in (ErrorCode.NONE, *_ERRORS[type(body)], *NOT_HERE):
                named = getattr(code, "name", code)
                raise Inexpressible(event.line, f"{_APIS[type(body)]} answered {named}, which the specification lacks")
    return True


def _codes(op: Op) -> Iterator[object]:
    yield getattr(op.answer, "error_code", "a code that Kafka lacks")
    if isinstance(op.answer, LeaveGroupResponse):
        yield from (row.error_code for row in op.answer.members)


def classic_data(history: History, settings: Settings, prefix: str) -> tuple[dict[str, Data], Constants]:
    """The trace of the group as a record of ``TraceData``, and the constants for it. The names of its requests begin
    with the prefix. Raises Inexpressible."""
    events = group_events(history)
    ops = [event.op for event in events if not event.answered]
    metadata, assignments = Tokens("metadata"), Tokens("assignment")
    requests: dict[str, Data] = {name_of(prefix, op): _request(op, metadata, assignments) for op in ops}
    answers: dict[str, Data] = {
        name_of(prefix, event.op): {"number": number, "answer": _answer(event.op, metadata, assignments)}
        for number, event in enumerate(events, 1)
        if event.answered
    }
    lines = lines_of(events, prefix)
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
    data: dict[str, Data] = {
        "lines": lines,
        "requests": requests,
        "answers": answers,
        "ids": frozenset(ids),
        "given": frozenset(given - {""}),
        "signs": signs_of(history, events),
        "initialDelay": delay,
        "lastDelay": max(longest - delay, 0) % delay or delay if delay else 0,
        "sessionTimeout": min((each.session_timeout_ms for each in joins), default=0),
        "rebalanceTimeout": min(rebalance, default=0),
        "tolerance": TOLERANCE_MS,
    }
    constants: Constants = (
        ("MemberIds", ("m",)),  # the ids are those of the trace
        ("Partitions", ("p",)),  # assignments are names
        ("MaxSize", settings.group_max_size),
        ("DelayWindows", windows),
    )
    return data, constants


def _rebalance_timeout(join: JoinGroupRequest) -> int:
    """In ms; version 0 has none, and its session timeout stands for it (G-WIRE-01)."""
    return join.session_timeout_ms if join.rebalance_timeout_ms < 0 else join.rebalance_timeout_ms


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
            Row({"memberId": each.member_id, "partitions": _partitions(each.assignment, assignments)})
            for each in body.assignments
        )
    if isinstance(body, LeaveGroupRequest):
        found["rows"] = tuple(
            {"memberId": each.member_id, "instanceId": each.group_instance_id or ""} for each in body.members
        )
    return found


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
                    Row({"memberId": each.member_id, "metadata": metadata[each.metadata]}) for each in answer.members
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
