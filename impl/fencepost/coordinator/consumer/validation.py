"""The checks of a ConsumerGroupHeartbeat that do not need the group (7.3)."""

from __future__ import annotations

from fencepost.protocol.consumer_messages import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    STATIC_LEAVE_EPOCH,
    ConsumerGroupHeartbeatRequest,
)
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import Request
from fencepost.protocol.settings import Settings

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
    return all(character <= " " for character in text)
