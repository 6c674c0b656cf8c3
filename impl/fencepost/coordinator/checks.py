"""The checks of a request before its group is read, in Kafka's order.

Each function takes the state, the request and its body, and returns the error, or None if the request may be handled.
The error of a JoinGroup comes with the member id for its response (the last column of 3.1).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

from fencepost.protocol.consumer_messages import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    STATIC_LEAVE_EPOCH,
    ConsumerGroupDescribeRequest,
    ConsumerGroupHeartbeatRequest,
)
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import Request
from fencepost.protocol.messages import HeartbeatRequest, JoinGroupRequest, LeaveGroupRequest, SyncGroupRequest
from fencepost.protocol.settings import Settings

from .kernel.state import CoordinatorState, not_serving

#: From this version on SyncGroup must contain protocol type and protocol name (C-SYNC-01).
PROTOCOL_NAMED_SINCE = 5


class CheckFailed(NamedTuple):
    """The error of a check, and the member id for the response to a JoinGroup."""

    error: ErrorCode
    member_id: str = ""


Check: TypeAlias = Callable[[CoordinatorState, Request, Any], CheckFailed | None]


def of_join(state: CoordinatorState, request: Request, body: JoinGroupRequest) -> CheckFailed | None:
    """Check a JoinGroup request (C-JOIN-02…07)."""
    if body.group_id in request.denied:
        return CheckFailed(ErrorCode.GROUP_AUTHORIZATION_FAILED)  # C-JOIN-02
    if not state.running:
        return CheckFailed(ErrorCode.COORDINATOR_NOT_AVAILABLE, body.member_id)  # C-JOIN-03
    if not body.group_id:
        return CheckFailed(ErrorCode.INVALID_GROUP_ID, body.member_id)  # C-JOIN-04
    low, high = state.settings.group_min_session_timeout_ms, state.settings.group_max_session_timeout_ms
    if not low <= body.session_timeout_ms <= high:
        return CheckFailed(ErrorCode.INVALID_SESSION_TIMEOUT, body.member_id)  # C-JOIN-05
    return _is_served(state)


def of_sync(state: CoordinatorState, request: Request, body: SyncGroupRequest) -> CheckFailed | None:
    """Check a SyncGroup request (C-SYNC-01…04)."""
    if request.version >= PROTOCOL_NAMED_SINCE and (body.protocol_type is None or body.protocol_name is None):
        return CheckFailed(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)  # C-SYNC-01
    return of_one_group(state, request, body)


def of_one_group(
    state: CoordinatorState, request: Request, body: SyncGroupRequest | HeartbeatRequest | LeaveGroupRequest
) -> CheckFailed | None:
    """Heartbeat and LeaveGroup: authorization, a running coordinator, a name (G-WIRE-27)."""
    if body.group_id in request.denied:
        return CheckFailed(ErrorCode.GROUP_AUTHORIZATION_FAILED)  # C-SYNC-02, C-HB-01, C-LEAVE-01
    if not state.running:
        return CheckFailed(ErrorCode.COORDINATOR_NOT_AVAILABLE)  # C-SYNC-03, C-HB-02, C-LEAVE-02
    if not body.group_id:
        return CheckFailed(ErrorCode.INVALID_GROUP_ID)
    return _is_served(state)


def of_consumer_heartbeat(
    state: CoordinatorState, request: Request, body: ConsumerGroupHeartbeatRequest
) -> CheckFailed | None:
    """ConsumerGroupHeartbeat: authorization, a running coordinator, and the fields (M-VAL-01…15)."""
    error = unauthorized(request, body, state.settings)
    if error is None and not state.running:
        error = ErrorCode.COORDINATOR_NOT_AVAILABLE  # M-VAL-03
    if error is None and state.rules.fields_checked_first:  # by any coordinator, whether it leads or not (M-VAL-04)
        error = invalid(request.version, body, state.settings)
    return _is_served(state) if error is None else CheckFailed(error)


def of_consumer_describe(
    state: CoordinatorState, request: Request, body: ConsumerGroupDescribeRequest
) -> CheckFailed | None:
    """ConsumerGroupDescribe: the protocol must be enabled (G-CFG-29)."""
    if not state.settings.consumer_protocol_enabled:
        return CheckFailed(ErrorCode.UNSUPPORTED_VERSION)  # G-CFG-29
    return of_several_groups(state, request, body)


def of_several_groups(state: CoordinatorState, request: Request, body: object) -> CheckFailed | None:
    """DescribeGroups, ListGroups and DeleteGroups: only the coordinator is checked here."""
    if not state.running:
        return CheckFailed(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    return _is_served(state)


def of_offsets(state: CoordinatorState, request: Request, body: object) -> CheckFailed | None:
    """Requests about offsets: their handlers make all checks, since some parts may still be answered (O-COMMIT-04)."""
    return None


def _is_served(state: CoordinatorState) -> CheckFailed | None:
    error = not_serving(state)
    return None if error is None else CheckFailed(error)


#: The characters that Java's ``trim`` removes.
_TRIMMED = "".join(map(chr, range(ord(" ") + 1)))
#: From this version on the client generates the member id (G-WIRE-40).
MEMBER_ID_GIVEN_SINCE = 1


def unauthorized(request: Request, body: ConsumerGroupHeartbeatRequest, settings: Settings) -> ErrorCode | None:
    """The error if the caller may not do this to the group and its topics (M-VAL-01, M-VAL-02)."""
    if not settings.consumer_protocol_enabled:  # X-ROLL-01
        return ErrorCode.UNSUPPORTED_VERSION
    if body.group_id in request.denied:
        return ErrorCode.GROUP_AUTHORIZATION_FAILED
    if not request.denied_topics.isdisjoint(body.subscribed_topic_names or ()):
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return None


def invalid(version: int, body: ConsumerGroupHeartbeatRequest, settings: Settings) -> ErrorCode | None:
    """The error of a heartbeat's own fields, the first that applies (M-VAL-05…07, M-VAL-09…15, in the order of the
    rows). So no dynamic member leaves with epoch −2 (M-LEAVE-06)."""
    epoch = body.member_epoch
    needs_id = version >= MEMBER_ID_GIVEN_SINCE or epoch > 0 or epoch == LEAVE_EPOCH
    if (
        (needs_id and _blank(body.member_id))
        or _blank(body.group_id)
        or (body.instance_id is not None and _blank(body.instance_id))
        or (body.rack_id is not None and _blank(body.rack_id))
        or (epoch == JOIN_EPOCH and _incomplete(body))
        or (epoch == STATIC_LEAVE_EPOCH and body.instance_id is None)  # M-VAL-13
        or epoch < STATIC_LEAVE_EPOCH
    ):
        return ErrorCode.INVALID_REQUEST
    if body.server_assignor is not None and body.server_assignor not in settings.group_consumer_assignors:
        return ErrorCode.UNSUPPORTED_ASSIGNOR
    return None


def _incomplete(body: ConsumerGroupHeartbeatRequest) -> bool:
    """M-VAL-10…12."""
    return (
        body.rebalance_timeout_ms == -1
        or body.topic_partitions is None
        or len(body.topic_partitions) > 0
        or (body.subscribed_topic_names is None and body.subscribed_topic_regex is None)
    )


def _blank(text: str) -> bool:
    """As with Java's ``trim``: characters up to the space are removed."""
    return not text or (text[0] <= " " and not text.strip(_TRIMMED))
