"""Assignments: epochs, the intervals between targets, the targets themselves, and reconciliation."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from fencepost.protocol.consumer_records import AssignedPartitions, ConsumerGroupTargetAssignmentMetadataValue
from fencepost.protocol.records import Record
from fencepost.quirks import HasQuirks, Next, quirk

from ...consumer import departure, describe, group, group_epoch, reconcile, records, regex, replay, target
from ...consumer.group import NO_SHARE, ConsumerGroup, ConsumerMember, Holding, Resolution, Share, held
from ...kernel import group_configs
from ...kernel.numbers import next_epoch
from ...kernel.replay import Replay
from ...kernel.step import Step

# Epochs: the first one of a group, the events that begin another, and those of partitions


@quirk("old_epochs_start_at_zero", of=group.first_epoch)
def starts_at_zero(_: Next[int], subject: HasQuirks) -> int:
    """Before 4.3 a new group is at epoch 0 (V-30)."""
    return 0


@quirk("old_epochs_start_at_zero", of=group_epoch.is_new_epoch_due)
def leaves_zero(_: Next[bool], step: Step, group: ConsumerGroup, required: bool) -> bool:
    """Before 4.3 the first member begins an epoch, whatever it subscribes to (V-31)."""
    return required or group.epoch == 0


@quirk("old_emptied_group_keeps_target_epoch", of=departure.emptied)
def target_stays_behind(_: Next[list[Record]], step: Step, group: ConsumerGroup) -> list[Record]:
    """Before 4.4 no target record is written when the last members go: the epoch of the target stays (V-122)."""
    return []


@quirk("old_no_assignment_epochs", of=reconcile.granted_at)
def granted_at_no_epoch(_: Next[int], step: Step, goal: reconcile.Goal) -> int:
    """Before 4.3 a member holds a set of partitions without epochs; here each has the epoch 0 (V-53)."""
    return 0


@quirk("old_no_assignment_epochs", of=records.holding_rows)
def rows_without_epochs(
    _: Next[tuple[AssignedPartitions, ...]], subject: HasQuirks, holding: Holding
) -> tuple[AssignedPartitions, ...]:
    """Before 4.3 records contain partitions but no epochs (V-53, V-74)."""
    return tuple(AssignedPartitions(topic_id, tuple(sorted(holding[topic_id]))) for topic_id in sorted(holding))


@quirk("old_no_assignment_epochs", of=replay.holding)
def holding_without_epochs(
    _: Next[Holding], subject: Replay, rows: tuple[AssignedPartitions, ...], epoch: int
) -> Holding:
    """A release before 4.3 does not know the field in which a later one has written assignment epochs (V-74)."""
    return held(((row.topic_id, row.partitions) for row in rows), 0)


# Intervals that only later releases have, and their bounds


@quirk("old_no_assignment_interval", of=target.allowed)
def computes_at_once(_: Next[bool], step: Step, group: ConsumerGroup) -> bool:
    """Before 4.3 there is no interval between two targets (V-38)."""
    return True


@quirk("old_no_assignment_interval", of=target.computed_at)
def computed_at_no_time(_: Next[int], step: Step) -> int:
    """Before 4.3 the record of a target has no time (V-40)."""
    return records.NO_TIMESTAMP


@quirk("old_no_assignment_interval", of=replay.assignment_timestamp)
def reads_no_time(_: Next[int], replayed: Replay, value: ConsumerGroupTargetAssignmentMetadataValue) -> int:
    """A release before 4.3 does not know the field in which a later one has written a time (V-40, V-73)."""
    return records.NO_TIMESTAMP


@quirk("old_no_periodic_regex_refresh", of=regex.outdated)
def never_outdated(_: Next[bool], step: Step, last: Resolution | None) -> bool:
    """4.0 resolves a regex again only when topics are created (V-10)."""
    return False


@quirk("old_group_config_unclamped", of=group_configs.within_bounds)
def beyond_bounds(_: Next[int], step: Step, value: int, low: int, high: int) -> int:
    """Before 4.3 the setting of a group counts as it is stored, whatever the broker allows (V-12)."""
    return value


# Reconciliation: the partitions and epochs that a member moves to


@quirk("old_revocation_advances_epoch", of=reconcile.epoch_after_revocation)
def one_epoch_further(_: Next[int], step: Step, member: ConsumerMember) -> int:
    """Up to 4.1 a confirmed revocation moves the member on by one epoch, wherever the target is (V-52)."""
    return next_epoch(member.epoch)


@quirk("old_whole_target", of=reconcile.reachable)
def whole_target(_: Next[Share], step: Step, goal: reconcile.Goal) -> Share:
    """Up to 4.1 the whole target counts, whatever the member subscribes to now (V-50)."""
    return goal.target


@quirk("old_whole_target", of=reconcile.prune)
def nothing_is_pruned(
    _: Next[ConsumerMember], step: Step, member: ConsumerMember, goal: reconcile.Goal
) -> ConsumerMember:
    """Up to 4.1 a member keeps what it no longer subscribes to until a target is computed without it (V-51)."""
    return member


@quirk("old_prune_keeps_previous_epoch", of=reconcile.previous_epoch)
def previous_epoch_stays(_: Next[int], step: Step, member: ConsumerMember) -> int:
    """In 4.2 pruning leaves the previous epoch as it was: an answer that was lost before is still forgiven (V-51)."""
    return member.previous_epoch


@quirk("old_describe_without_pending", of=describe.shown_as_assigned)
def without_pending(
    _: Next[Mapping[bytes, Collection[int]]], step: Step, member: ConsumerMember
) -> Mapping[bytes, Collection[int]]:
    """Before 4.3 a description leaves out partitions to be revoked, though the member may still own them (V-16)."""
    return member.assigned


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


@quirk("fault_absent_partition_fails", of=target.existing)
def absent_too(
    _: Next[dict[bytes, tuple[int, ...]]], step: Step, assigned: dict[bytes, tuple[int, ...]]
) -> dict[bytes, tuple[int, ...]]:
    """Kafka's assignors get the last target as it is. One that finds a partition which its topic does not have fails,
    and so does every request that needs a target (A-UHET-06, X-UP-05)."""
    return assigned


@quirk("fault_stale_subscription_type", of=group_epoch.is_target_due)
def keeps_subscription_type(_: Next[bool], step: Step, group: ConsumerGroup) -> bool:
    """Kafka recomputes the subscription type only with an epoch or a look at the topics. A target that was already due
    is computed with the earlier type, which may give partitions to a member that subscribes to nothing (M-TGT-05,
    LIV-13)."""
    return False


@quirk("old_vote_keeps_epoch", of=target.is_other_assignor_preferred)
def votes_wait(_: Next[bool], step: Step, group: ConsumerGroup, member: ConsumerMember) -> bool:
    """Before 4.4 a vote begins no epoch: the other assignor computes the next target, whenever that is (V-121)."""
    return False


@quirk("fault_tied_vote_bumps", of=target.is_other_assignor_preferred)
def ties_are_drawn_anew(_: Next[bool], step: Step, group: ConsumerGroup, member: ConsumerMember) -> bool:
    """Kafka reads the current winner of the election from one map, and the next one from another, newly made map. In a
    tie they may have the names in different orders, so heartbeats without news begin epochs for ever (M-HB-15,
    LIV-17)."""
    name, before = group.group_id, target.preferred_assignors(step, group.votes)
    stood = before[0] if len(before) == 1 else step.choices.standing(name, before)
    return stood != target.elected(step, name, target.preferred_assignors(step, target.votes_with(group, member)))


@quirk("fault_absent_assignor_elected", of=target.valid)
def all_votes_count(_: Next[Mapping[str, int]], step: Step, votes: Mapping[str, int]) -> Mapping[str, int]:
    """In Kafka a vote for an assignor that is no longer configured counts too. If that one wins, every request that
    needs a target fails (M-TGT-02, M-HB-12)."""
    return votes
