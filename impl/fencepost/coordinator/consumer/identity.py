"""Which member a heartbeat speaks for, and whether its epoch lets it (M-FENCE-*, M-STATIC-*)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from fencepost.protocol.consumer_messages import JOIN_EPOCH, STATIC_LEAVE_EPOCH, TopicPartitions
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.profile import Profile

from ..kernel.errors import Refused
from ..kernel.step import Step
from .group import ConsumerGroup, ConsumerMember, Holding


class Found(NamedTuple):
    """The member as it is now, or new; ``replaced`` is the static member whose place it takes (M-STATIC-03)."""

    member: ConsumerMember
    replaced: ConsumerMember | None = None


class Claim(NamedTuple):
    """Who a heartbeat says that it is, and what it owns (None: not said)."""

    member_id: str
    epoch: int
    owned: Iterable[TopicPartitions] | None


def require_room(step: Step, group: ConsumerGroup, member_id: str, instance_id: str | None) -> None:
    """M-VAL-25, M-VAL-28, M-VAL-30: who takes the place of a static member needs no other. Raises ``Refused``."""
    if len(group.members) < step.settings.group_consumer_max_size or member_id in group.members:
        return
    if instance_id not in group.static_members or step.profile.old_full_group_refuses_statics:
        raise Refused(ErrorCode.GROUP_MAX_SIZE_REACHED)


def find_dynamic(group: ConsumerGroup, claim: Claim, profile: Profile) -> Found:
    """M-FENCE-01…07. Raises ``Refused``; the member stays as it is (M-FENCE-08)."""
    member_id, epoch, _ = claim
    member = group.members.get(member_id)
    if member is None:
        if epoch != JOIN_EPOCH:
            raise Refused(ErrorCode.UNKNOWN_MEMBER_ID)
        return Found(ConsumerMember(member_id))
    _check_epoch(member, claim, profile)
    return Found(member)


def find_static(group: ConsumerGroup, instance_id: str, claim: Claim, profile: Profile) -> Found:
    """M-STATIC-01…06, M-STATIC-15. Raises ``Refused``."""
    member_id, epoch, _ = claim
    mapped = group.static_members.get(instance_id)
    holder = None if mapped is None else group.members.get(mapped)
    if epoch != JOIN_EPOCH:
        member = held_by(group, instance_id, member_id)
        _check_epoch(member, claim, profile)
        return Found(member)
    if mapped is None:
        return Found(group.members.get(member_id) or ConsumerMember(member_id))  # M-STATIC-01
    if holder is None:
        raise Refused(ErrorCode.UNKNOWN_MEMBER_ID)  # M-STATIC-13
    if holder.epoch != STATIC_LEAVE_EPOCH and holder.classic is None:
        if mapped == member_id and not profile.fault_static_rejoin_unreleased:
            return Found(holder)  # M-STATIC-02 mended: as M-FENCE-07
        raise Refused(ErrorCode.UNRELEASED_INSTANCE_ID)
    if mapped != member_id and member_id in group.members and not profile.fault_replacement_merges_members:
        raise Refused(ErrorCode.UNRELEASED_INSTANCE_ID)  # M-STATIC-15 mended: it has a place of its own
    return _replacing(holder, member_id)


def find_joining(group: ConsumerGroup, member_id: str, instance_id: str | None, *, fresh: bool) -> Found:
    """The member that a JoinGroup speaks for; ``fresh``: it came without an id and has been given this one.

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
    """The member of the instance, which must be the one that asks (M-STATIC-04, M-STATIC-05, M-LEAVE-02)."""
    mapped = group.static_members.get(instance_id)
    member = None if mapped is None else group.members.get(mapped)
    if member is None:
        raise Refused(ErrorCode.UNKNOWN_MEMBER_ID)
    if member.member_id != member_id:
        raise Refused(ErrorCode.FENCED_INSTANCE_ID)
    return member


def _check_epoch(member: ConsumerMember, claim: Claim, profile: Profile) -> None:
    """M-FENCE-03…07; an epoch that was never stored is one that is too new (F-CONS-05)."""
    epoch = claim.epoch
    if epoch == JOIN_EPOCH and not profile.old_known_member_at_zero_fenced:
        return
    if epoch > member.epoch:
        raise Refused(ErrorCode.FENCED_MEMBER_EPOCH)
    if epoch < member.epoch and (epoch != member.previous_epoch or not _within(claim.owned, member.assigned)):
        raise Refused(ErrorCode.FENCED_MEMBER_EPOCH)


def _within(owned: Iterable[TopicPartitions] | None, assigned: Holding) -> bool:
    if owned is None:
        return False
    return all(number in assigned.get(row.topic_id, {}) for row in owned for number in row.partitions)
