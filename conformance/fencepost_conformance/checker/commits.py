"""Offset commits, as far as they touch the group (O-COMMIT-20…28).

Offsets themselves are not checked. A commit is checked against the state of the group, and one that is accepted
re-arms the member's session timer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from fencepost.protocol.errors import ErrorCode
from fencepost_model.classic.state import Group
from fencepost_model.machines import COMPLETING, DEAD, EMPTY

OFFSET_COMMIT: Final = 8
#: From this version on a missing group is told as such (O-COMMIT-21, 22).
_GROUP_ID_NOT_FOUND_VERSION: Final = 9
#: Errors that speak of the group and then stand in every row; any other is about one partition.
_OF_GROUP: Final = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.INVALID_GROUP_ID,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.REBALANCE_IN_PROGRESS,
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        ErrorCode.GROUP_ID_NOT_FOUND,
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.STALE_MEMBER_EPOCH,
    }
)
#: Errors of a partition that the broker finds before it asks the coordinator.
_BY_BROKER: Final = frozenset(
    {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.TOPIC_AUTHORIZATION_FAILED}
)


@dataclass(frozen=True, slots=True)
class Commit:
    """Who commits; ``version`` is that of the API. ``topics`` by name, or from v10 on by id, each with partitions."""

    group_id: str
    generation_id: int
    member_id: str
    group_instance_id: str | None
    version: int
    topics: tuple[tuple[str, tuple[int, ...]], ...] = ()


@dataclass(frozen=True, slots=True)
class CommitAnswer:
    """The error that speaks of the group, NONE if the commit was let in."""

    error_code: ErrorCode


def read_commit(version: int, body: Mapping[str, Any]) -> Commit | None:
    """None if the body is not one that the recorder writes, or commits nothing: its answer then tells nothing."""
    if not any(topic.get("partitions") for topic in body.get("topics", ())):
        return None
    group_id = body.get("group_id")
    generation = body.get("generation_id_or_member_epoch", body.get("generation_id", -1))
    if not isinstance(group_id, str) or not isinstance(generation, int):
        return None
    topics = tuple(
        (str(topic.get("topic_id") or topic.get("name")), tuple(row["partition_index"] for row in topic["partitions"]))
        for topic in body["topics"]
    )
    return Commit(group_id, generation, body.get("member_id") or "", body.get("group_instance_id"), version, topics)


def asked_the_group(body: Mapping[str, Any]) -> bool:
    """Whether a commit with this answer got to the coordinator: the broker itself turns unknown topics away, and if
    nothing is left, the group is not asked (O-COMMIT-02 to 04)."""
    codes = {row.get("error_code") for topic in body.get("topics", ()) for row in topic.get("partitions", ())}
    return not codes or not codes <= set(map(int, _BY_BROKER))


def read_commit_answer(body: Mapping[str, Any]) -> CommitAnswer | None:
    codes = {row.get("error_code") for topic in body.get("topics", ()) for row in topic.get("partitions", ())}
    of_group = codes & set(map(int, _OF_GROUP))
    if not codes or (of_group and len(codes) > 1):
        return None
    return CommitAnswer(ErrorCode(of_group.pop()) if of_group else ErrorCode.NONE)


def expected(group: Group | None, commit: Commit) -> tuple[ErrorCode, str]:
    """The error that the group's state calls for, and the rule that says so."""
    generation, member_id, instance = commit.generation_id, commit.member_id, commit.group_instance_id
    if group is None:
        if generation < 0:
            return ErrorCode.NONE, "O-COMMIT-20"
        if commit.version >= _GROUP_ID_NOT_FOUND_VERSION:
            return ErrorCode.GROUP_ID_NOT_FOUND, "O-COMMIT-21"
        return ErrorCode.ILLEGAL_GENERATION, "O-COMMIT-22"
    if group.state == DEAD:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE, "O-COMMIT-23"
    if generation < 0 and group.state == EMPTY:
        return ErrorCode.NONE, "O-COMMIT-24"
    if generation < 0 and not member_id and instance is None:
        return ErrorCode.UNKNOWN_MEMBER_ID, "O-COMMIT-26"
    holders = [member.member_id for member in group.members if member.instance == instance]
    if instance is not None and not holders:
        return ErrorCode.UNKNOWN_MEMBER_ID, "O-COMMIT-25"
    if instance is not None and holders[0] != member_id:
        return ErrorCode.FENCED_INSTANCE_ID, "O-COMMIT-25"
    if all(member.member_id != member_id for member in group.members):
        return ErrorCode.UNKNOWN_MEMBER_ID, "O-COMMIT-25"
    if generation != group.generation:
        return ErrorCode.ILLEGAL_GENERATION, "O-COMMIT-25"
    if group.state == COMPLETING:
        return ErrorCode.REBALANCE_IN_PROGRESS, "O-COMMIT-27"
    return ErrorCode.NONE, "O-COMMIT-28"
