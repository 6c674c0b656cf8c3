"""Requests that the coordinator rejects before it looks at the group (M-VAL-05…15)."""

from __future__ import annotations

from fencepost.protocol.consumer_messages import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    STATIC_LEAVE_EPOCH,
    ConsumerGroupHeartbeatRequest,
)
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.settings import Settings


def _blank(text: str) -> bool:
    """Whether a text is blank for Java's ``trim``, which removes the characters up to the space and no others."""
    return all(character <= " " for character in text)


def invalid(settings: Settings, version: int, body: ConsumerGroupHeartbeatRequest) -> tuple[ErrorCode, str] | None:
    """The error and the rule, None for a request that reaches the group. Checks in the order of the rules."""
    epoch = body.member_epoch
    bad = ErrorCode.INVALID_REQUEST
    if not settings.consumer_protocol_enabled:
        return ErrorCode.UNSUPPORTED_VERSION, "M-VAL-01"
    if _blank(body.member_id) and (version >= 1 or epoch > JOIN_EPOCH or epoch == LEAVE_EPOCH):
        return bad, "M-VAL-09"
    if _blank(body.group_id):
        return bad, "M-VAL-05"
    if body.instance_id is not None and _blank(body.instance_id):
        return bad, "M-VAL-06"
    if body.rack_id is not None and _blank(body.rack_id):
        return bad, "M-VAL-07"
    if epoch == JOIN_EPOCH:
        if body.rebalance_timeout_ms == -1:
            return bad, "M-VAL-10"
        if body.topic_partitions is None or body.topic_partitions:
            return bad, "M-VAL-11"
        if body.subscribed_topic_names is None and body.subscribed_topic_regex is None:
            return bad, "M-VAL-12"
    elif epoch == STATIC_LEAVE_EPOCH and body.instance_id is None:
        return bad, "M-VAL-13"
    elif epoch < STATIC_LEAVE_EPOCH:
        return bad, "M-VAL-14"
    if body.server_assignor is not None and body.server_assignor not in settings.group_consumer_assignors:
        return ErrorCode.UNSUPPORTED_ASSIGNOR, "M-VAL-15"
    return None
