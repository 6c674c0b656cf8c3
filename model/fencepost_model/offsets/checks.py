"""The checks before a commit, a read or a deletion of offsets (rule book, 6.2-6.5)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from fencepost.protocol.errors import ErrorCode

from ..classic.state import Group
from ..classic.subscription import CONSUMER
from ..consumer.derive import group_topics
from ..consumer.state import ConsumerGroup, Member
from ..machines import COMPLETING, DEAD, EMPTY

if TYPE_CHECKING:
    from ..variant import Variant

AnyGroup: TypeAlias = Group | ConsumerGroup
#: The first version in which a client with an epoch is answered that the group does not exist (O-COMMIT-21, V-129).
KNOWS_NO_GROUP = {False: 9, True: 6}
#: The first version in which a member of the consumer protocol may commit (O-COMMIT-31).
MEMBERS_COMMIT_SINCE = 9


class Committer(NamedTuple):
    """The sender of a commit and its partitions. ``epoch`` is a generation or a member epoch. ``partitions``: (topic
    id, number) of those not refused yet (O-COMMIT-08)."""

    member_id: str
    instance: str | None
    epoch: int
    version: int
    transactional: bool
    partitions: tuple[tuple[bytes, int], ...]


class Checked(NamedTuple):
    """The result of a check. ``error`` None: accepted. ``rules``: those that decided."""

    error: ErrorCode | None
    rules: tuple[str, ...]


def may_commit(variant: Variant, group: AnyGroup | None, by: Committer) -> Checked:
    """Return whether the group accepts a commit (6.2; in a transaction 6.3)."""
    if group is None:
        return _no_group(by)
    return _classic(group, by) if isinstance(group, Group) else _consumer(variant, group, by)


def _no_group(by: Committer) -> Checked:
    if by.epoch < 0:
        return Checked(None, ("O-TXN-03" if by.transactional else "O-COMMIT-20",))
    if by.version >= KNOWS_NO_GROUP[by.transactional]:
        return Checked(ErrorCode.GROUP_ID_NOT_FOUND, ("V-129" if by.transactional else "O-COMMIT-21",))
    return Checked(ErrorCode.ILLEGAL_GENERATION, ("O-TXN-03" if by.transactional else "O-COMMIT-22",))


def _classic(group: Group, by: Committer) -> Checked:
    if group.state == DEAD:
        return Checked(ErrorCode.COORDINATOR_NOT_AVAILABLE, ("O-COMMIT-23",))
    if by.epoch < 0 and group.state == EMPTY:
        return Checked(None, ("O-COMMIT-24",))
    if by.epoch >= 0 or by.member_id or by.instance is not None:
        error = _who(group, by)
        if error is not None:
            return Checked(error, ("O-COMMIT-25",))
        if by.epoch != group.generation:
            return Checked(ErrorCode.ILLEGAL_GENERATION, ("O-COMMIT-25", "O-COMMIT-35"))
    elif not by.transactional:
        return Checked(ErrorCode.UNKNOWN_MEMBER_ID, ("O-COMMIT-26",))
    if by.transactional:
        return Checked(None, ("O-TXN-04",))
    if group.state == COMPLETING:
        return Checked(ErrorCode.REBALANCE_IN_PROGRESS, ("O-COMMIT-27",))
    return Checked(None, ("O-COMMIT-28",))


def _who(group: Group, by: Committer) -> ErrorCode | None:
    """Check the identity, as ``CG.validateMember``: an instance id in the request must be that of the member."""
    ids = {member.member_id for member in group.members}
    if by.instance is not None:
        held = [member.member_id for member in group.members if member.instance == by.instance]
        if not held:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if by.member_id not in held:
            return ErrorCode.FENCED_INSTANCE_ID
    return None if by.member_id in ids else ErrorCode.UNKNOWN_MEMBER_ID


def _consumer(variant: Variant, group: ConsumerGroup, by: Committer) -> Checked:
    if by.epoch < 0 and not group.members:
        return Checked(None, ("O-COMMIT-29",))
    if by.transactional and by.epoch == -1 and not by.member_id and by.instance is None:
        return Checked(None, ("O-TXN-05",))
    member = group.member(by.member_id)
    if member is None:
        return Checked(ErrorCode.UNKNOWN_MEMBER_ID, ("O-COMMIT-30",))
    if not by.transactional and member.classic is None and by.version < MEMBERS_COMMIT_SINCE:
        return Checked(ErrorCode.UNSUPPORTED_VERSION, ("O-COMMIT-31",))
    knows = variant.consumer.stores_assignment_epochs and by.epoch < member.epoch
    if by.epoch != member.epoch and not (knows and _held_since(member, by)):
        rules = ("O-COMMIT-32", *(("O-TXN-05",) if by.transactional else ()))
        known = member.classic is None and (not by.transactional or by.version >= KNOWS_NO_GROUP[True])
        return Checked(ErrorCode.STALE_MEMBER_EPOCH if known else ErrorCode.ILLEGAL_GENERATION, rules)
    return Checked(None, ("O-COMMIT-33",) if by.epoch == member.epoch else ("O-COMMIT-33", "O-COMMIT-36"))


def _held_since(member: Member, by: Committer) -> bool:
    """Return whether the member has had every partition since that epoch, or is giving it up (O-COMMIT-32 b,
    O-COMMIT-42)."""
    held = {(topic, number): epoch for topic, number, epoch in (*member.revoking, *member.assigned)}
    return all(each in held and by.epoch >= held[each] for each in by.partitions)


def may_fetch(variant: Variant, group: AnyGroup | None, member_id: str | None, epoch: int) -> Checked:
    """Return whether the offsets of the group may be read (O-FETCH-03, 04, 05)."""
    if not isinstance(group, ConsumerGroup):
        return Checked(None, ("O-FETCH-03",) if group is None else ("O-FETCH-04",))
    rules = ("O-FETCH-05",)
    if member_id is None and epoch < 0:
        return Checked(None, rules)
    if member_id is None:
        return Checked(variant.offsets.fetch_without_member, rules)
    member = group.member(member_id)
    if member is None:
        return Checked(ErrorCode.UNKNOWN_MEMBER_ID, rules)
    if epoch != member.epoch:
        return Checked(ErrorCode.STALE_MEMBER_EPOCH if member.classic is None else ErrorCode.ILLEGAL_GENERATION, rules)
    return Checked(None, rules)


def may_delete(group: AnyGroup | None) -> Checked:
    """Return whether offsets of the group may be deleted at all (O-DEL-03, 04)."""
    if group is None or (isinstance(group, Group) and group.state == DEAD):
        return Checked(ErrorCode.GROUP_ID_NOT_FOUND, ("O-DEL-03",))
    if isinstance(group, Group) and group.state != EMPTY and group.protocol_type != CONSUMER:
        return Checked(ErrorCode.NON_EMPTY_GROUP, ("O-DEL-04",))
    return Checked(None, ("O-DEL-06",))


def subscribes(group: AnyGroup, topics: frozenset[str] | None, topic: str) -> bool:
    """Return whether the group counts as subscribed to a topic (O-DEL-07, O-DEL-08). ``topics``: those that a classic
    group has read from its members (G-DATA-10), or None."""
    if isinstance(group, ConsumerGroup):
        return topic in group_topics(group.members, group.regexes)
    if group.protocol_type != CONSUMER:
        return False
    if group.state == EMPTY:
        return False
    return topics is None or topic in topics
