"""Assignments: epochs, the intervals between targets, the targets themselves, and reconciliation."""

from __future__ import annotations

from collections.abc import Mapping

from fencepost.quirks import Next, quirk

from ..consumer import target
from ..consumer.group import NO_SHARE, ConsumerGroup, ConsumerMember, Share
from ..kernel.step import Step

# Epochs: the first one of a group, the events that begin another, and those of partitions


# Intervals that only later releases have, and their bounds


# Reconciliation: the partitions and epochs that a member moves to


# Targets: the one that a member moves to, the assignor that computes it, and its input


@quirk("fault_new_instance_has_no_target", of=target.stored)
def new_instance_has_no_target(_: Next[Share], step: Step, group: ConsumerGroup, member: ConsumerMember) -> Share:
    """Kafka only looks for the member that has the instance id: a member that joins again with an instance id that is
    not in use gets nothing until the next new target (M-HB-07, LIV-16)."""
    instance_id = member.instance_id
    owner = member.member_id if instance_id is None else group.static_members.get(instance_id)
    return NO_SHARE if owner is None else group.target.get(owner, NO_SHARE)


@quirk("old_replacement_rewrites_target", of=target.taken_over)
def takes_over_also_nothing(
    _: Next[Mapping[str, Share]], step: Step, group: ConsumerGroup, predecessor: str, member_id: str
) -> Mapping[str, Share]:
    """Before 4.4 a member that replaces another gets the target of its predecessor even if there is none: then its own
    target, if it already has a place, counts as removed (V-127, M-STATIC-15)."""
    return {**group.target, member_id: group.target.get(predecessor, NO_SHARE)}


@quirk("old_replacement_rewrites_target", of=target.target_in_log)
def forgets_own_records(
    _: Next[Share | None], step: Step, group: ConsumerGroup, before: Mapping[str, Share], member_id: str
) -> Share | None:
    """Before 4.4 a new target is compared with the group as it was before the request: the target of the replacing
    member is written twice, though it is the same (V-127)."""
    return group.target.get(member_id)


@quirk("fault_tied_vote_bumps", of=target.is_other_assignor_preferred)
def ties_are_drawn_anew(_: Next[bool], step: Step, group: ConsumerGroup, member: ConsumerMember) -> bool:
    """Kafka reads the current winner of the election from one map, and the next one from another, newly made map. In a
    tie they may have the names in different orders, so heartbeats without news begin epochs for ever (M-HB-15,
    LIV-17)."""
    name, before = group.group_id, target.preferred_assignors(step, group.votes)
    stood = before[0] if len(before) == 1 else step.choices.standing(name, before)
    return stood != target.elected(step, name, target.preferred_assignors(step, target.votes_with(group, member)))
