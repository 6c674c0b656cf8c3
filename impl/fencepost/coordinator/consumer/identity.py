"""The member that a heartbeat comes from, and whether its epoch is accepted (M-FENCE-*, M-STATIC-*)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from fencepost.protocol.consumer_messages import JOIN_EPOCH, STATIC_LEAVE_EPOCH, TopicPartitions
from fencepost.protocol.errors import ErrorCode
from fencepost.quirks import varies

from ..kernel.errors import Refused
from ..kernel.step import Step
from .group import ConsumerGroup, ConsumerMember, Holding


class Found(NamedTuple):
    """The current member, or a new one. ``replaced`` is the static member whose place it takes (M-STATIC-03)."""

    member: ConsumerMember
    replaced: ConsumerMember | None = None


class Claim(NamedTuple):
    """The identity that a heartbeat claims, and the partitions that it claims to own (None: no claim)."""

    member_id: str
    epoch: int
    owned: Iterable[TopicPartitions] | None


def require_room(step: Step, group: ConsumerGroup, member_id: str, instance_id: str | None) -> None:
    """A full group accepts no member that has no place in it yet (M-VAL-25, M-VAL-30). Raises ``Refused``."""
    if len(group.members) < step.settings.group_consumer_max_size:
        return
    if member_id not in group.members and not has_a_place(step, group, instance_id):
        raise Refused(ErrorCode.GROUP_MAX_SIZE_REACHED)


@varies
def has_a_place(step: Step, group: ConsumerGroup, instance_id: str | None) -> bool:
    """Whether a member with an unknown id needs no other place, but that of its instance (M-VAL-28)."""
    return instance_id in group.static_members


def find_dynamic(step: Step, group: ConsumerGroup, claim: Claim) -> Found:
    """The member of this id, or a new one (M-FENCE-01…07). Raises ``Refused``; the member stays as it is
    (M-FENCE-08)."""
    member_id, epoch, _ = claim
    member = group.members.get(member_id)
    if member is None:
        if epoch != JOIN_EPOCH:
            raise Refused(ErrorCode.UNKNOWN_MEMBER_ID)
        return Found(ConsumerMember(member_id))
    check_epoch(step, member, claim)
    return Found(member)


def find_static(step: Step, group: ConsumerGroup, instance_id: str, claim: Claim) -> Found:
    """The member of this instance, a new one, or one that takes its place (M-STATIC-01…06, M-STATIC-15). Raises
    ``Refused``."""
    member_id, epoch, _ = claim
    mapped = group.static_members.get(instance_id)
    holder = None if mapped is None else group.members.get(mapped)
    if epoch != JOIN_EPOCH:
        member = held_by(group, instance_id, member_id)
        check_epoch(step, member, claim)
        return Found(member)
    if mapped is None:
        return Found(group.members.get(member_id) or ConsumerMember(member_id))  # M-STATIC-01
    if holder is None:
        raise Refused(ErrorCode.UNKNOWN_MEMBER_ID)  # M-STATIC-13
    if holder.epoch != STATIC_LEAVE_EPOCH and holder.classic is None:
        if comes_back(step, holder, member_id):
            return Found(holder)
        raise Refused(ErrorCode.UNRELEASED_INSTANCE_ID)
    if not may_take_place(step, group, holder, member_id):
        raise Refused(ErrorCode.UNRELEASED_INSTANCE_ID)
    return _replacing(holder, member_id)


@varies
def comes_back(step: Step, holder: ConsumerMember, member_id: str) -> bool:
    """Whether the holder of an instance itself joins with it: it is accepted like any member that joins again
    (M-STATIC-02, M-FENCE-07)."""
    return holder.member_id == member_id


@varies
def may_take_place(step: Step, group: ConsumerGroup, holder: ConsumerMember, member_id: str) -> bool:
    """Whether this id may take the place of a static member that has left for a while: the same id, or one without a
    place, since the partitions of that place would lose their owner (M-STATIC-15)."""
    return holder.member_id == member_id or member_id not in group.members


def find_joining(group: ConsumerGroup, member_id: str, instance_id: str | None, *, fresh: bool) -> Found:
    """The member of a JoinGroup. ``fresh``: the request had no id and got this one.

    X-JOIN-06…08, X-JOIN-12. Raises ``Refused``.
    """
    if instance_id is None:
        return Found(group.members.get(member_id) or ConsumerMember(member_id))
    if fresh and instance_id not in group.static_members:
        return Found(ConsumerMember(member_id))
    if not fresh:
        return Found(held_by(group, instance_id, member_id))
    holder = group.members.get(group.static_members[instance_id])
    if holder is None:
        raise Refused(ErrorCode.UNKNOWN_MEMBER_ID)  # M-STATIC-13
    return _replacing(holder, member_id)


def _replacing(holder: ConsumerMember, member_id: str) -> Found:
    """M-STATIC-03."""
    return Found(holder._replace(member_id=member_id, epoch=JOIN_EPOCH, previous_epoch=JOIN_EPOCH), holder)


def held_by(group: ConsumerGroup, instance_id: str, member_id: str) -> ConsumerMember:
    """The member of the instance, which must be the sender (M-STATIC-04, M-STATIC-05, M-LEAVE-02)."""
    mapped = group.static_members.get(instance_id)
    member = None if mapped is None else group.members.get(mapped)
    if member is None:
        raise Refused(ErrorCode.UNKNOWN_MEMBER_ID)
    if member.member_id != member_id:
        raise Refused(ErrorCode.FENCED_INSTANCE_ID)
    return member


@varies
def check_epoch(step: Step, member: ConsumerMember, claim: Claim) -> None:
    """A known member may join again at any time; otherwise its epoch must be accepted (M-FENCE-03…07)."""
    if claim.epoch != JOIN_EPOCH:
        require_in_step(member, claim)


def require_in_step(member: ConsumerMember, claim: Claim) -> None:
    """The epoch must be that of the member, or the one before if the answer with the new one may have been lost
    (M-FENCE-03…06); an epoch that was never stored is too new (F-CONS-05). Raises ``Refused``."""
    epoch = claim.epoch
    if epoch > member.epoch:
        raise Refused(ErrorCode.FENCED_MEMBER_EPOCH)
    if epoch < member.epoch and (epoch != member.previous_epoch or not _within(claim.owned, member.assigned)):
        raise Refused(ErrorCode.FENCED_MEMBER_EPOCH)


def _within(owned: Iterable[TopicPartitions] | None, assigned: Holding) -> bool:
    if owned is None:
        return False
    return all(number in assigned.get(row.topic_id, {}) for row in owned for number in row.partitions)
