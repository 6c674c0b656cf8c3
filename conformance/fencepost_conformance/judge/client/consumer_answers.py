"""Random answers of a coordinator to a KIP-848 heartbeat: as a message, and in the schedule's format."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from random import Random
from typing import Any, Final

from fencepost.protocol.consumer_messages import ConsumerGroupHeartbeatResponse, TopicPartitions
from fencepost.protocol.errors import ErrorCode

_PASSING: Final = (
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR,
    ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.TOPIC_AUTHORIZATION_FAILED,
)  # fmt: skip
_FATAL: Final = (
    ErrorCode.GROUP_AUTHORIZATION_FAILED, ErrorCode.INVALID_REQUEST, ErrorCode.GROUP_MAX_SIZE_REACHED,
    ErrorCode.UNSUPPORTED_ASSIGNOR, ErrorCode.UNSUPPORTED_VERSION, ErrorCode.UNRELEASED_INSTANCE_ID,
    ErrorCode.FENCED_INSTANCE_ID, ErrorCode.INVALID_REGULAR_EXPRESSION, ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.UNKNOWN_SERVER_ERROR, ErrorCode.GROUP_ID_NOT_FOUND,
)  # fmt: skip


def beaten(
    dice: Random,
    answered_epoch: int,
    topics: Collection[str],
    numbers: Mapping[str, tuple[int, int]],
    intervals_ms: tuple[int, ...] = (3_000, 3_000, 5_000),
) -> tuple[ConsumerGroupHeartbeatResponse, dict[str, Any]]:
    """Draw the answer to a heartbeat with this epoch. ``numbers``: number and partition count of each topic. The
    coordinator may name another id than the member chose; the member ignores it (N-HB-01)."""
    chance = dice.random()
    error = dice.choice(_FATAL) if chance < 0.02 else dice.choice(_PASSING) if chance < 0.2 else ErrorCode.NONE
    epoch, assignment = 0, None
    if error is ErrorCode.NONE:
        epoch = answered_epoch if answered_epoch < 0 else max(answered_epoch, 1) + dice.choice((0, 0, 1))
        if answered_epoch >= 0 and dice.random() < (0.9 if answered_epoch == 0 else 0.4):
            assignment = _assignment(dice, topics, numbers)
    named = ("m", "m", "n", None)[epoch % 4] if error is ErrorCode.NONE else None  # no extra draw
    body = ConsumerGroupHeartbeatResponse(
        error,
        member_id=named,
        member_epoch=epoch,
        heartbeat_interval_ms=dice.choice(intervals_ms) if error is ErrorCode.NONE else 0,
        assignment=None if assignment is None else _rows(assignment),
    )
    return body, {
        "error": int(error.value), "member": named, "epoch": epoch, "interval": body.heartbeat_interval_ms,
        "assignment": None if assignment is None else [[key, list(each)] for key, each in assignment.items()],
    }  # fmt: skip


def _assignment(
    dice: Random, topics: Collection[str], numbers: Mapping[str, tuple[int, int]]
) -> dict[int, tuple[int, ...]]:
    rows = {numbers[name][0]: numbers[name][1] for name in sorted(topics) or ["a"]}
    drawn = {number: tuple(each for each in range(count) if dice.random() < 0.6) for number, count in rows.items()}
    return {number: each for number, each in drawn.items() if each}


def _rows(assignment: dict[int, tuple[int, ...]]) -> tuple[TopicPartitions, ...]:
    return tuple(TopicPartitions(topic_id(number), each) for number, each in assignment.items())


def topic_id(number: int) -> bytes:
    """Return the id of a topic: its number in every byte."""
    return bytes([number] * 16)
