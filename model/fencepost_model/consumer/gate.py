"""Answers to KIP-848 requests before a group is looked up (rule book, 7.3): rights, fields, the partition's state."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fencepost.protocol.consumer_messages import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    STATIC_LEAVE_EPOCH,
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    DescribedConsumerGroup,
)
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import Request
from fencepost.protocol.settings import Settings

if TYPE_CHECKING:
    from ..variant import Variant

_SPACE = "".join(chr(code) for code in range(0x21))


def refused_heartbeat(
    settings: Settings, variant: Variant, error: ErrorCode | None, request: Request, body: ConsumerGroupHeartbeatRequest
) -> tuple[ConsumerGroupHeartbeatResponse, tuple[str, ...]] | None:
    """Return the answer and its rule, or None. ``error``: that of a partition which is not active."""
    found = _heartbeat(settings, variant, error, request, body)
    return None if found is None else (ConsumerGroupHeartbeatResponse(found[0]), (found[1],))


def _heartbeat(
    settings: Settings, variant: Variant, error: ErrorCode | None, request: Request, body: ConsumerGroupHeartbeatRequest
) -> tuple[ErrorCode, str] | None:
    if not settings.consumer_protocol_enabled:
        return ErrorCode.UNSUPPORTED_VERSION, "M-VAL-01"
    if body.group_id in request.denied:
        return ErrorCode.GROUP_AUTHORIZATION_FAILED, "M-VAL-02"
    if any(name in request.denied_topics for name in body.subscribed_topic_names or ()):
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED, "M-VAL-02"
    not_active = None if error is None else (error, "M-VAL-04")
    wrong = _fields(settings, request.version, body)
    return wrong or not_active if variant.consumer.checks_fields_first else not_active or wrong


def _blank(text: str | None) -> bool:
    return text is not None and not text.strip(_SPACE)


def _fields(settings: Settings, version: int, body: ConsumerGroupHeartbeatRequest) -> tuple[ErrorCode, str] | None:
    epoch = body.member_epoch
    rows = (
        ("M-VAL-09", _blank(body.member_id) and (version >= 1 or epoch > JOIN_EPOCH or epoch == LEAVE_EPOCH)),
        ("M-VAL-05", _blank(body.group_id)),
        ("M-VAL-06", _blank(body.instance_id)),
        ("M-VAL-07", _blank(body.rack_id)),
        ("M-VAL-10", epoch == JOIN_EPOCH and body.rebalance_timeout_ms == -1),
        ("M-VAL-11", epoch == JOIN_EPOCH and (body.topic_partitions is None or bool(body.topic_partitions))),
        (
            "M-VAL-12",
            epoch == JOIN_EPOCH and body.subscribed_topic_names is None and body.subscribed_topic_regex is None,
        ),
        ("M-VAL-13", epoch == STATIC_LEAVE_EPOCH and body.instance_id is None),
        ("M-VAL-14", epoch < STATIC_LEAVE_EPOCH),
    )
    for rule, wrong in rows:
        if wrong:
            return ErrorCode.INVALID_REQUEST, rule
    if body.server_assignor is not None and body.server_assignor not in settings.group_consumer_assignors:
        return ErrorCode.UNSUPPORTED_ASSIGNOR, "M-VAL-15"
    return None


def refused_describe(
    settings: Settings, error: ErrorCode | None, request: Request, body: ConsumerGroupDescribeRequest
) -> tuple[ConsumerGroupDescribeResponse, tuple[str, ...]] | None:
    """Return the answer if no group can be described at all."""
    if not settings.consumer_protocol_enabled:
        rows = tuple(
            DescribedConsumerGroup(ErrorCode.UNSUPPORTED_VERSION, group_id=group_id) for group_id in body.group_ids
        )
        return ConsumerGroupDescribeResponse(rows), ("M-VAL-01",)
    if error is None:
        return None
    rows = tuple(
        refused_row(request, group_id) or DescribedConsumerGroup(error, group_id=group_id)
        for group_id in body.group_ids
    )
    return ConsumerGroupDescribeResponse(rows), ("M-DESC-01",)


def refused_row(request: Request, group_id: str) -> DescribedConsumerGroup | None:
    """Return the row of a group that is refused (M-DESC-01, C-ADM-06), or None."""
    if group_id in request.denied:
        return DescribedConsumerGroup(ErrorCode.GROUP_AUTHORIZATION_FAILED, group_id=group_id)
    if not group_id:
        return DescribedConsumerGroup(ErrorCode.INVALID_GROUP_ID, group_id="")
    return None
