"""The checks of commits and fetches: topics and authorization first (O-COMMIT-01…04), then the members that may commit,
and those that may read (6.2, O-FETCH-03…05).

A commit is checked before the coordinator handles it. After that each topic has both name and id. An answer names
topics as the request did, and contains each topic once, with the refused ones first; if nothing was refused, it has the
order of the request.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import Request, Topic
from fencepost.protocol.offset_messages import (
    ZERO_ID,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from fencepost.protocol.view import GroupState

from ..classic import membership
from ..classic.group import ClassicGroup, schedule_classic_session_timeout
from ..consumer.group import ConsumerGroup, ConsumerGroupMember
from ..groups import known
from ..kernel.errors import Rejected
from ..kernel.state import Group
from ..kernel.step import Step
from ..kernel.topics import TopicImage

#: The result of each partition: its number and an error.
Results = list[tuple[int, ErrorCode]]


@dataclass(frozen=True, slots=True)
class Admitted:
    """The part of a commit that the coordinator handles: ``topics``, each with name and id. ``refused``: the results of
    the rest, as (name, id, results). ``by_id``: whether the request names topics by id."""

    topics: tuple[OffsetCommitRequestTopic, ...]
    refused: tuple[tuple[str, bytes, Results], ...]
    by_id: bool

    def answer(self, results: Sequence[Results]) -> tuple[OffsetCommitResponseTopic, ...]:
        """The rows of the whole request. ``results``: those of ``topics``."""
        asked = [(topic.name, topic.topic_id, each) for topic, each in zip(self.topics, results, strict=True)]
        if not self.refused:
            return tuple(self._row(*row) for row in asked)
        return tuple(self._row(*row) for row in merged([*self.refused, *asked], self.by_id))

    def failed(self, error: ErrorCode) -> tuple[OffsetCommitResponseTopic, ...]:
        """The rows if the coordinator gives this error for everything it handles (O-COMMIT-05…07)."""
        return self.answer([[(each.partition_index, error) for each in topic.partitions] for topic in self.topics])

    def _row(self, name: str, topic_id: bytes, results: Results) -> OffsetCommitResponseTopic:
        rows = tuple([_result(index, error) for index, error in results])
        if self.by_id:
            return OffsetCommitResponseTopic(topic_id=topic_id, partitions=rows)
        return OffsetCommitResponseTopic(name=name, partitions=rows)


@lru_cache(maxsize=4_096)
def _result(index: int, error: ErrorCode) -> OffsetCommitResponsePartition:
    """The row of one partition; nearly all commits have the same rows."""
    return OffsetCommitResponsePartition(index, error)


def admit(request: Request, image: TopicImage, topics: Iterable[OffsetCommitRequestTopic], *, by_id: bool) -> Admitted:
    """Split a commit, by names or, since 4.1, by ids (O-COMMIT-02, O-COMMIT-03, V-03, O-TXN-01)."""
    admitted = []
    refused: list[tuple[str, bytes, Results]] = []
    for topic in topics:
        known = resolved(image, topic.name, topic.topic_id, by_id=by_id)
        error = _refusal(request, known, topic.name, by_id=by_id)
        if known is None or error is not None:
            assert error is not None
            rows = [(each.partition_index, error) for each in topic.partitions]
            refused.append((topic.name, topic.topic_id, rows))
            continue
        there, missing = _parted(topic.partitions, known.partitions)
        if missing:
            refused.append((known.name, known.topic_id, missing))
        if there:
            admitted.append(OffsetCommitRequestTopic(name=known.name, topic_id=known.topic_id, partitions=there))
    return Admitted(tuple(admitted), tuple(merged(refused, by_id)), by_id)


def resolved(image: TopicImage, name: str, topic_id: bytes, *, by_id: bool) -> Topic | None:
    """The topic that a request names, by id or name; None if it does not exist."""
    if not by_id:
        return image.by_name.get(name)
    return None if topic_id == ZERO_ID else image.by_id.get(topic_id)


def _refusal(request: Request, known: Topic | None, name: str, *, by_id: bool) -> ErrorCode | None:
    """Why a whole topic is refused. The order of the checks: id, authorization, name (O-COMMIT-02)."""
    if by_id and known is None:
        return ErrorCode.UNKNOWN_TOPIC_ID
    if (name if known is None else known.name) in request.denied_topics:
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if known is None else None


def _parted(
    partitions: tuple[OffsetCommitRequestPartition, ...], count: int
) -> tuple[tuple[OffsetCommitRequestPartition, ...], Results]:
    """The partitions that the topic has, and the results for the others (O-COMMIT-03)."""
    if all(0 <= each.partition_index < count for each in partitions):
        return partitions, []
    there = tuple(each for each in partitions if 0 <= each.partition_index < count)
    missing = [
        (each.partition_index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        for each in partitions
        if not 0 <= each.partition_index < count
    ]
    return there, missing


def merged(rows: Iterable[tuple[str, bytes, Results]], by_id: bool) -> list[tuple[str, bytes, Results]]:
    """Each topic once, at the place of its first row."""
    found: dict[str | bytes, tuple[str, bytes, Results]] = {}
    for name, topic_id, results in rows:
        key = topic_id if by_id else name
        known = found.get(key)
        found[key] = (name, topic_id, results if known is None else known[2] + results)
    return list(found.values())


#: From this version of OffsetCommit on, members of the consumer protocol may use it, and a missing group has a separate
#: error (O-COMMIT-21, O-COMMIT-31).
COMMITS_BY_EPOCH_SINCE = 9
#: The generation or epoch of a sender that is not a member.
NO_EPOCH = -1


class Committer(NamedTuple):
    """The sender of a commit: a generation or member epoch (below 0: none), a member id, an instance id."""

    epoch: int
    member_id: str
    instance_id: str | None

    @property
    def nobody(self) -> bool:
        """Whether none of the three names a member."""
        return self.epoch < 0 and not self.member_id and self.instance_id is None


class Older(NamedTuple):
    """A member that commits with an epoch older than its current one; each partition is then checked (O-COMMIT-32)."""

    member: ConsumerGroupMember
    epoch: int

    def check(self, topic_id: bytes, partition: int) -> None:
        """The member must have had the partition since that epoch (O-COMMIT-41). Raises ``Rejected``."""
        since = self.member.assigned.get(topic_id, {}).get(partition)
        if since is None:
            since = self.member.revoking.get(topic_id, {}).get(partition)
        if since is None or self.epoch < since:
            raise Rejected(stale(self.member))  # O-COMMIT-41


def may_commit(step: Step, group: Group, who: Committer, version: int) -> Older | None:
    """Whether the sender may commit to an existing group (O-COMMIT-23…33). A sender that is not a member may only if
    the group has no members (O-COMMIT-38). A classic member may also while others join (O-COMMIT-35), and its session
    starts again. Returns None unless each partition must be checked. Raises ``Rejected``."""
    group = known(group)
    if isinstance(group, ConsumerGroup):
        return _member_may_commit(step, group, who, version)
    if who.epoch < 0 and group.state is GroupState.EMPTY:
        return None  # O-COMMIT-24
    if who.nobody:
        raise Rejected(ErrorCode.UNKNOWN_MEMBER_ID)  # O-COMMIT-26
    _require_generation(group, who)
    if group.state is GroupState.COMPLETING_REBALANCE:
        raise Rejected(ErrorCode.REBALANCE_IN_PROGRESS)  # O-COMMIT-27
    schedule_classic_session_timeout(step, group, group.members[who.member_id])  # O-COMMIT-28
    return None


def may_commit_in_transaction(step: Step, group: Group, who: Committer) -> Older | None:
    """The same for a commit within a transaction: the sender need not be a member, whatever the state of the group, and
    no session starts again (O-TXN-04…06). Raises ``Rejected``."""
    group = known(group)
    if isinstance(group, ConsumerGroup):
        if who.epoch < 0 and not group.members:
            return None
        if who.nobody and who.epoch == NO_EPOCH:
            return None
        member = group.members.get(who.member_id)
        if member is None:
            raise Rejected(ErrorCode.UNKNOWN_MEMBER_ID)
        return at_epoch(step, member, who.epoch)
    if not who.nobody and (who.epoch >= 0 or group.state is not GroupState.EMPTY):
        _require_generation(group, who)
    return None


def _require_generation(group: ClassicGroup, who: Committer) -> None:
    """O-COMMIT-25."""
    error = membership.invalid(group, who.member_id, who.instance_id)
    if error is None and who.epoch != group.generation:
        error = ErrorCode.ILLEGAL_GENERATION
    if error is not None:
        raise Rejected(error)


def _member_may_commit(step: Step, group: ConsumerGroup, who: Committer, version: int) -> Older | None:
    if who.epoch < 0 and not group.members:
        return None  # O-COMMIT-29
    member = group.members.get(who.member_id)
    if member is None:
        raise Rejected(ErrorCode.UNKNOWN_MEMBER_ID)  # O-COMMIT-30
    if member.classic is None and version < COMMITS_BY_EPOCH_SINCE:
        raise Rejected(ErrorCode.UNSUPPORTED_VERSION)  # O-COMMIT-31
    return at_epoch(step, member, who.epoch)


def at_epoch(step: Step, member: ConsumerGroupMember, epoch: int) -> Older | None:
    """The current epoch of the member allows every commit, an older one only partitions that it has kept since
    (O-COMMIT-13, O-COMMIT-32, O-COMMIT-33, O-COMMIT-36, O-COMMIT-42). Raises ``Rejected``."""
    if epoch == member.epoch:
        return None
    if epoch > member.epoch or not step.rules.has_assignment_epochs:
        raise Rejected(stale(member))
    return Older(member, epoch)


def stale(member: ConsumerGroupMember) -> ErrorCode:
    """The error for a wrong epoch, in the member's own protocol (O-COMMIT-32, O-FETCH-05)."""
    return ErrorCode.STALE_MEMBER_EPOCH if member.classic is None else ErrorCode.ILLEGAL_GENERATION


def may_read(step: Step, group: Group, member_id: str | None, epoch: int) -> None:
    """Whether the sender may read the offsets of an existing group. Any sender may read those of a classic group
    (O-FETCH-04); for a consumer group, a member at its epoch, or a sender that does not claim to be a member
    (O-FETCH-05). Raises ``Rejected``."""
    if not isinstance(group, ConsumerGroup) or (member_id is None and epoch < 0):
        return
    if member_id is None:
        raise Rejected(step.rules.error_without_member_id)  # an epoch alone identifies no member (O-FETCH-05)
    member = group.members.get(member_id)
    if member is None:
        raise Rejected(ErrorCode.UNKNOWN_MEMBER_ID)
    if epoch != member.epoch:
        raise Rejected(stale(member))
