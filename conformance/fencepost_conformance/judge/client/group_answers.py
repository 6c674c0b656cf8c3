"""Random answers of a coordinator to a classic member: as a message, and in the schedule's format."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from random import Random
from typing import Any, Final

from fencepost.member.consumer_protocol import Assignment, Subscription, encode_assignment, encode_subscription
from fencepost.member.partitions import TopicPartition
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages import (
    JoinGroupMember,
    JoinGroupRequest,
    JoinGroupResponse,
    ResponseBody,
    SyncGroupResponse,
)

GROUP_ERRORS: Final = (
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR,
    ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION, ErrorCode.REBALANCE_IN_PROGRESS,
    ErrorCode.FENCED_INSTANCE_ID, ErrorCode.GROUP_AUTHORIZATION_FAILED, ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
    ErrorCode.INVALID_SESSION_TIMEOUT, ErrorCode.GROUP_MAX_SIZE_REACHED, ErrorCode.UNKNOWN_SERVER_ERROR,
)  # fmt: skip


def crowded(seed: int) -> bool:
    """Whether the seed's schedule may have other members for a leader to assign to, and may give the member another id
    than it asked with. Only few seeds do, so that the other seeds keep their old schedules."""
    return seed % 7 == 4


def joined(
    dice: Random, asked: JoinGroupRequest, error: ErrorCode, last: int | None = None, *, crowd: bool = False
) -> JoinGroupResponse:
    """Draw an answer in which the member leads or follows. ``last``: the generation to exceed, None for any;
    ``crowd``: see ``crowded``."""
    member_id = asked.member_id
    if not member_id or (crowd and dice.random() < 0.3):
        member_id = f"m-{dice.randrange(100)}"
    if not asked.member_id and asked.group_instance_id is None and dice.random() < 0.5:
        return JoinGroupResponse(ErrorCode.MEMBER_ID_REQUIRED, member_id=member_id)
    if error is not ErrorCode.NONE:
        return JoinGroupResponse(error)
    chosen = dice.choice(asked.protocols)
    leads = dice.random() < 0.4
    rows = [JoinGroupMember(member_id, group_instance_id=asked.group_instance_id, metadata=chosen.metadata)]
    if crowd and dice.random() < 0.6:
        rows.insert(dice.randrange(2), _other(dice))
    return JoinGroupResponse(
        ErrorCode.NONE,
        generation_id=dice.randrange(1, 9) if last is None else last + dice.randrange(1, 4),
        protocol_type="consumer",
        protocol_name=chosen.name,
        leader=member_id if leads else "other",
        member_id=member_id,
        members=tuple(rows) if leads else (),
        skip_assignment=crowd and leads and asked.group_instance_id is not None and dice.random() < 0.2,
    )


def _other(dice: Random) -> JoinGroupMember:
    """Draw another member of the group, static or not."""
    topics = dice.choice((("a",), ("b",), ("a", "b")))
    instance = dice.choice((None, "a", "z"))
    return JoinGroupMember("other", group_instance_id=instance, metadata=encode_subscription(Subscription(topics)))


def synced(
    dice: Random, topics: Iterable[str], counts: Mapping[str, int], protocol: str | None, error: ErrorCode
) -> SyncGroupResponse:
    """Draw an answer that assigns some of the partitions of its topics."""
    if error is not ErrorCode.NONE:
        return SyncGroupResponse(error)
    every = [TopicPartition(name, index) for name in sorted(topics) or ["a"] for index in range(counts[name])]
    given = tuple(each for each in every if dice.random() < 0.6)
    return SyncGroupResponse(
        error, protocol_type="consumer", protocol_name=protocol, assignment=encode_assignment(Assignment(given))
    )


def in_words(body: ResponseBody) -> dict[str, Any]:
    """Return the answer for the JVM, without its error."""
    match body:
        case JoinGroupResponse():
            return {
                "error": int(body.error_code.value), "generation": body.generation_id,
                "protocol_type": body.protocol_type, "protocol": body.protocol_name,
                "leader": body.leader, "member": body.member_id,
                "members": [[each.member_id, each.group_instance_id, _text(each.metadata)] for each in body.members],
                "skip": body.skip_assignment,
            }  # fmt: skip
        case SyncGroupResponse():
            fields = {"protocol_type": body.protocol_type, "protocol": body.protocol_name}
            return {**fields, "assignment": _text(body.assignment)}
    return {}


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()
