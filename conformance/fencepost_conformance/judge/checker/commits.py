"""How offset commits, plain and in transactions, depend on the group (O-COMMIT-20…28, O-TXN-03, O-TXN-04).

This module checks a commit against the state of the group, and not the offsets. An accepted commit re-arms the
member's session timer, unless it belongs to a transaction (O-TXN-06).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from fencepost.protocol.errors import ErrorCode
from fencepost_model.classic.state import Group
from fencepost_model.machines import COMPLETING, DEAD, EMPTY

OFFSET_COMMIT, TXN_OFFSET_COMMIT = 8, 28
COMMITS: Final = frozenset((OFFSET_COMMIT, TXN_OFFSET_COMMIT))
#: The first version of OffsetCommit that answers GROUP_ID_NOT_FOUND for a missing group (O-COMMIT-21, 22).
_GROUP_ID_NOT_FOUND_VERSION: Final = 9
#: The first version of TxnOffsetCommit that answers COORDINATOR_LOAD_IN_PROGRESS (O-TXN-02).
_TXN_LOADING_VERSION: Final = 2
#: As ``_GROUP_ID_NOT_FOUND_VERSION``, for TxnOffsetCommit (O-TXN-16).
_TXN_GROUP_ID_NOT_FOUND_VERSION: Final = 6
#: Errors of partitions that the broker finds before it asks the group (O-COMMIT-02…04, O-TXN-01).
_BEFORE_THE_GROUP: Final[frozenset[int]] = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    }
)
#: Codes of partitions that the coordinator gives once the group has accepted the commit (O-COMMIT-08, O-COMMIT-09).
_LET_IN: Final[frozenset[int]] = frozenset({ErrorCode.NONE, ErrorCode.OFFSET_METADATA_TOO_LARGE})
#: Errors about the whole group, which then stand in every row; any other is about one partition.
_OF_GROUP: Final[frozenset[int]] = frozenset(
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
        ErrorCode.UNSUPPORTED_VERSION,
    }
)


@dataclass(frozen=True, slots=True)
class Commit:
    """One commit, with the member that sends it. ``version`` is that of the API. ``topics``: by name, or from v10 on by
    id, each with its partitions."""

    group_id: str
    generation_id: int
    member_id: str
    group_instance_id: str | None
    version: int
    topics: tuple[tuple[str, tuple[int, ...]], ...] = ()
    transactional: bool = False


@dataclass(frozen=True, slots=True)
class CommitAnswer:
    """The error about the group, NONE if the group accepted the commit.

    ``left_out``: partitions whose epoch the group did not check: those with too long metadata (O-COMMIT-08), and those
    that the broker rejected before. ``stored``: at least one partition was written.
    """

    error_code: ErrorCode
    left_out: frozenset[tuple[str, int]] = field(default=frozenset(), compare=False)
    stored: bool = field(default=True, compare=False)


def read_commit(version: int, body: Mapping[str, Any], *, transactional: bool = False) -> Commit | None:
    """Read the body of a commit. None if it commits nothing, so that its answer says nothing about the group, or if the
    recorder does not write such a body."""
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
    member_id, instance_id = body.get("member_id") or "", body.get("group_instance_id")
    return Commit(group_id, generation, member_id, instance_id, version, topics, transactional)


def read_commit_answer(body: Mapping[str, Any]) -> CommitAnswer | None:
    """Read the body of an answer to a commit. None if it says nothing about the group, or contradicts itself."""
    codes = _codes(body) - _BEFORE_THE_GROUP
    of_group = codes & _OF_GROUP
    if not codes or (of_group and len(codes) > 1):
        return None
    left_out = frozenset(
        (str(topic.get("topic_id") or topic.get("name")), row["partition_index"])
        for topic in body["topics"]
        for row in topic["partitions"]
        if row["error_code"] in {ErrorCode.OFFSET_METADATA_TOO_LARGE, *_BEFORE_THE_GROUP}
    )
    error = ErrorCode(of_group.pop()) if of_group else ErrorCode.NONE
    return CommitAnswer(error, left_out, ErrorCode.NONE in codes)


def left_the_group(commit: Commit, body: Mapping[str, Any], *, scala: bool = False) -> bool:
    """Whether a commit with this answer never reached the group, or left it unchanged. Either the broker rejected every
    partition before (O-COMMIT-02…04), or the log rejected the records of a transaction (O-COMMIT-40, O-TXN-11).

    The broker lets the transaction coordinator verify a transaction before it writes. If that fails, for example while
    the previous transaction is still ending, Kafka answers COORDINATOR_LOAD_IN_PROGRESS, and the ``scala`` coordinator
    COORDINATOR_NOT_AVAILABLE (D-27)."""
    codes = _codes(body)
    unverified = {ErrorCode.COORDINATOR_LOAD_IN_PROGRESS}
    if commit.version < _TXN_LOADING_VERSION:
        unverified = {ErrorCode.COORDINATOR_NOT_AVAILABLE}
    elif scala:
        unverified.add(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    if commit.transactional and len(codes) == 1 and codes <= unverified:
        return True
    by_log = commit.transactional and not codes & (_OF_GROUP | _LET_IN)
    return bool(codes) and (codes <= _BEFORE_THE_GROUP or by_log)


def _codes(body: Mapping[str, Any]) -> set[int]:
    return {row.get("error_code") for topic in body.get("topics", ()) for row in topic.get("partitions", ())}


#: Stands for the answer to a commit in a transaction that the log has not verified.
UNVERIFIED: Final = CommitAnswer(ErrorCode.INVALID_TXN_STATE)


def reached_the_group(commit: Commit, body: Mapping[str, Any]) -> bool:
    """Whether the Scala coordinator has looked up the group of a commit that ``left_the_group``. It does so before the
    transaction is verified, and creates a missing group (D-24)."""
    return commit.transactional and not _codes(body) <= _BEFORE_THE_GROUP


def expected(group: Group | None, commit: Commit, *, scala: bool = False) -> tuple[ErrorCode, str]:
    """The error that the group's state calls for, and the rule that says so."""
    if scala and group is None and commit.generation_id >= 0:
        if commit.transactional:
            return ErrorCode.UNKNOWN_MEMBER_ID, "D-24"
        return ErrorCode.ILLEGAL_GENERATION, "D-05"
    generation, member_id, instance = commit.generation_id, commit.member_id, commit.group_instance_id
    if commit.transactional:
        return _expected_in_transaction(group, commit)
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
    refused = _validate_member(group, commit)
    if refused is not None:
        return refused, "O-COMMIT-25"
    if group.state == COMPLETING:
        return ErrorCode.REBALANCE_IN_PROGRESS, "O-COMMIT-27"
    return ErrorCode.NONE, "O-COMMIT-28"


def _validate_member(group: Group, commit: Commit) -> ErrorCode | None:
    """``ClassicGroup.validateMember``, and the check of the generation that follows it."""
    member_id, instance = commit.member_id, commit.group_instance_id
    holders = [member.member_id for member in group.members if member.instance == instance]
    if instance is not None and not holders:
        return ErrorCode.UNKNOWN_MEMBER_ID
    if instance is not None and holders[0] != member_id:
        return ErrorCode.FENCED_INSTANCE_ID
    if all(member.member_id != member_id for member in group.members):
        return ErrorCode.UNKNOWN_MEMBER_ID
    return ErrorCode.ILLEGAL_GENERATION if commit.generation_id != group.generation else None


def _expected_in_transaction(group: Group | None, commit: Commit) -> tuple[ErrorCode, str]:
    if group is None:
        if commit.generation_id < 0:
            return ErrorCode.NONE, "O-TXN-03"
        if commit.version >= _TXN_GROUP_ID_NOT_FOUND_VERSION:
            return ErrorCode.GROUP_ID_NOT_FOUND, "O-TXN-16"
        return ErrorCode.ILLEGAL_GENERATION, "O-TXN-03"
    if group.state == DEAD:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE, "O-COMMIT-23"
    nobody = not commit.member_id and commit.group_instance_id is None
    if commit.generation_id < 0 and (nobody or group.state == EMPTY):
        return ErrorCode.NONE, "O-TXN-04"
    return _validate_member(group, commit) or ErrorCode.NONE, "O-TXN-04"
