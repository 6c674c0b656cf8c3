"""Targets: the one that a member moves to, the assignor that computes it, and its input."""

from __future__ import annotations

from collections.abc import Mapping

from fencepost.quirks import quirk

from ...consumer import group_epoch, target
from ...consumer.group import NO_SHARE, ConsumerGroup, ConsumerMember, Share
from ...kernel.step import Step


@quirk("fault_new_instance_has_no_target", of=target.stored)
def new_instance_has_no_target(step: Step, group: ConsumerGroup, member: ConsumerMember) -> Share:
    """Kafka only looks for the member that has the instance id: a member that joins again with an instance id that is
    not in use gets nothing until the next new target (M-HB-07, LIV-16)."""
    instance_id = member.instance_id
    owner = member.member_id if instance_id is None else group.static_members.get(instance_id)
    return NO_SHARE if owner is None else group.target.get(owner, NO_SHARE)


@quirk("old_replacement_rewrites_target", of=target.taken_over)
def takes_over_also_nothing(step: Step, group: ConsumerGroup, predecessor: str, member_id: str) -> Mapping[str, Share]:
    """Before 4.4 a member that replaces another gets the target of its predecessor even if there is none: then its own
    target, if it already has a place, counts as removed (V-127, M-STATIC-15)."""
    return {**group.target, member_id: group.target.get(predecessor, NO_SHARE)}


@quirk("old_replacement_rewrites_target", of=target.target_in_log)
def forgets_own_records(step: Step, group: ConsumerGroup, before: Mapping[str, Share], member_id: str) -> Share | None:
    """Before 4.4 a new target is compared with the group as it was before the request: the target of the replacing
    member is written twice, though it is the same (V-127)."""
    return group.target.get(member_id)


@quirk("fault_absent_partition_fails", of=target.existing)
def absent_too(step: Step, assigned: dict[bytes, tuple[int, ...]]) -> dict[bytes, tuple[int, ...]]:
    """Kafka's assignors get the last target as it is. One that finds a partition which its topic does not have fails,
    and so does every request that needs a target (A-UHET-06, X-UP-05)."""
    return assigned


@quirk("fault_stale_subscription_type", of=group_epoch.is_target_due)
def keeps_subscription_type(step: Step, group: ConsumerGroup) -> bool:
    """Kafka recomputes the subscription type only with an epoch or a look at the topics. A target that was already due
    is computed with the earlier type, which may give partitions to a member that subscribes to nothing (M-TGT-05,
    LIV-13)."""
    return False


@quirk("old_vote_keeps_epoch", of=target.is_other_assignor_preferred)
def votes_wait(step: Step, group: ConsumerGroup, member: ConsumerMember) -> bool:
    """Before 4.4 a vote begins no epoch: the other assignor computes the next target, whenever that is (V-121)."""
    return False


@quirk("fault_tied_vote_bumps", of=target.is_other_assignor_preferred)
def ties_are_drawn_anew(step: Step, group: ConsumerGroup, member: ConsumerMember) -> bool:
    """Kafka reads the current winner of the election from one map, and the next one from another, newly made map. In a
    tie they may have the names in different orders, so heartbeats without news begin epochs for ever (M-HB-15,
    LIV-17)."""
    name, before = group.group_id, target.preferred_assignors(step, group.votes)
    stood = before[0] if len(before) == 1 else step.choices.standing(name, before)
    return stood != target.elected(step, name, target.preferred_assignors(step, target.votes_with(group, member)))


@quirk("fault_absent_assignor_elected", of=target.valid)
def all_votes_count(step: Step, votes: Mapping[str, int]) -> Mapping[str, int]:
    """In Kafka a vote for an assignor that is no longer configured counts too. If that one wins, every request that
    needs a target fails (M-TGT-02, M-HB-12)."""
    return votes
