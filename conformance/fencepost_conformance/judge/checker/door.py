"""Answers that do not depend on the group: the broker gives them before a request reaches it."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from fencepost.protocol.consumer_messages import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedConsumerGroup,
)
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages import (
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    RequestBody,
    ResponseBody,
    SyncGroupRequest,
    SyncGroupResponse,
)
from fencepost.protocol.settings import Settings
from fencepost_model.classic.state import Group

from .answers import SYNC_PROTOCOL, seen
from .coordination import NOT_HERE, is_absent
from .history import Answer

#: The trace does not show the rights of callers, so the checker accepts this error for every request.
_DENIED: Final = ErrorCode.GROUP_AUTHORIZATION_FAILED
_DENIED_BY: Final[dict[type, str]] = {
    JoinGroupRequest: "C-JOIN-02",
    SyncGroupRequest: "C-SYNC-02",
    HeartbeatRequest: "C-HB-01",
    LeaveGroupRequest: "C-LEAVE-01",
    DeleteGroupsRequest: "C-ADM-09",
}


def _invalid(settings: Settings, version: int, body: RequestBody) -> tuple[ResponseBody, str] | None:
    if isinstance(body, JoinGroupRequest):
        answer = JoinGroupResponse(ErrorCode.INVALID_GROUP_ID, member_id=body.member_id)
        if not body.group_id:
            return answer, "C-JOIN-04"
        limits = settings.group_min_session_timeout_ms, settings.group_max_session_timeout_ms
        if not limits[0] <= body.session_timeout_ms <= limits[1]:
            return replace(answer, error_code=ErrorCode.INVALID_SESSION_TIMEOUT), "C-JOIN-05"
    elif isinstance(body, SyncGroupRequest):
        if version >= SYNC_PROTOCOL and (body.protocol_type is None or body.protocol_name is None):
            return SyncGroupResponse(ErrorCode.INCONSISTENT_GROUP_PROTOCOL), "C-SYNC-01"
        if not body.group_id:
            return SyncGroupResponse(ErrorCode.INVALID_GROUP_ID), "C-SYNC-03"
    elif not isinstance(body, DeleteGroupsRequest) and not getattr(body, "group_id", "-"):
        leaves = hasattr(body, "members")
        error = ErrorCode.INVALID_GROUP_ID
        return (LeaveGroupResponse(error), "C-LEAVE-02") if leaves else (HeartbeatResponse(error), "C-HB-02")
    return None


#: A coordinator answers every Heartbeat so while it loads (C-HB-03).
_BEAT_WHILE_LOADING: Final = HeartbeatResponse(ErrorCode.NONE)


#: The Scala coordinator answers every SyncGroup so while it loads (D-01).
_SYNC_WHILE_LOADING: Final = SyncGroupResponse(ErrorCode.REBALANCE_IN_PROGRESS)


def while_loading(answer: Answer, *, scala: bool = False) -> bool:
    """Whether a broker that is not, or not yet, the coordinator may give this answer (F-RT-01, F-RT-02, C-HB-03,
    D-01)."""
    if scala and answer == _SYNC_WHILE_LOADING:
        return True
    return answer == _BEAT_WHILE_LOADING or getattr(answer, "error_code", None) in NOT_HERE


#: The errors that ConsumerGroupDescribe may give for a group without members of the consumer protocol.
_NOT_DESCRIBED: Final = frozenset(
    {ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.INVALID_GROUP_ID, ErrorCode.GROUP_AUTHORIZATION_FAILED}
)


def _no_consumer_group(settings: Settings, body: ConsumerGroupDescribeRequest, answer: Answer | None) -> Answer:
    """The answer to ConsumerGroupDescribe for a group that is not a consumer group.

    Admin clients send it for every group, to find out its type."""
    if not settings.consumer_protocol_enabled:  # G-CFG-29
        return ConsumerGroupDescribeResponse(
            tuple(DescribedConsumerGroup(ErrorCode.UNSUPPORTED_VERSION, group_id=name) for name in body.group_ids)
        )
    if isinstance(answer, ConsumerGroupDescribeResponse) and all(
        row.error_code in _NOT_DESCRIBED and not row.members for row in answer.groups
    ):
        return answer
    rows = (DescribedConsumerGroup(ErrorCode.GROUP_ID_NOT_FOUND, group_id=group_id) for group_id in body.group_ids)
    return ConsumerGroupDescribeResponse(tuple(rows))


def at_the_door(
    settings: Settings,
    group: Group | None,
    version: int,
    body: RequestBody,
    answer: Answer | None,
    *,
    away: bool,
    loading: bool,
    scala: bool = False,
    deleting: bool = False,
) -> tuple[Answer, str] | None:
    """The answer that a request gets before it reaches the group, and the rule; None if it reaches the group.

    ``answer`` is that of the trace. Only it can show that a client lacks a right, or that the broker was not yet the
    coordinator. The latter is possible only while there is no group, and if the coordinator may be ``away``
    (``Coordination.may_be_away``). ``loading``: no earlier answer shows that the broker is the coordinator. ``scala``:
    the coordinator is that of Kafka up to 3.9. ``deleting``: a DeleteGroups of this group is under way.
    """
    error = getattr(answer, "error_code", None)
    denied = error is _DENIED or (
        isinstance(answer, DeleteGroupsResponse) and any(row.error_code is _DENIED for row in answer.results)
    )
    if answer is not None and denied:
        return answer, _DENIED_BY[type(body)]
    absent = answer is not None and (is_absent(answer) or error is ErrorCode.COORDINATOR_NOT_AVAILABLE)
    if away and absent and answer is not None and group is None:
        return answer, "F-RT-02"
    if away and loading and group is None and isinstance(body, HeartbeatRequest) and answer == _BEAT_WHILE_LOADING:
        return answer, "C-HB-03"
    if scala and deleting and answer is not None and error is ErrorCode.COORDINATOR_NOT_AVAILABLE:
        return answer, "D-11"
    if scala and away and loading and group is None and answer == _SYNC_WHILE_LOADING:
        return _SYNC_WHILE_LOADING, "D-01"
    if isinstance(body, ConsumerGroupDescribeRequest):
        return _no_consumer_group(settings, body, answer), "M-DESC-01"
    invalid = _invalid(settings, version, body)
    return None if invalid is None else (seen(version, invalid[0]), invalid[1])
