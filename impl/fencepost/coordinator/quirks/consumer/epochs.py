"""Epochs: the first one of a group, the events that begin another, and the epoch at which a member got a partition."""

from __future__ import annotations

from fencepost.protocol.consumer_records import AssignedPartitions
from fencepost.protocol.records import Record
from fencepost.quirks import HasQuirks, quirk

from ...consumer import departure, group, group_epoch, reconcile, records, replay
from ...consumer.group import ConsumerGroup, Holding, held
from ...kernel.replay import Replay
from ...kernel.step import Step


@quirk("old_epochs_start_at_zero", of=group.first_epoch)
def starts_at_zero(subject: HasQuirks) -> int:
    """Before 4.3 a new group is at epoch 0 (V-30)."""
    return 0


@quirk("old_epochs_start_at_zero", of=group_epoch.is_new_epoch_due)
def leaves_zero(step: Step, group: ConsumerGroup, required: bool) -> bool:
    """Before 4.3 the first member begins an epoch, whatever it subscribes to (V-31)."""
    return required or group.epoch == 0


@quirk("old_emptied_group_keeps_target_epoch", of=departure.emptied)
def target_stays_behind(step: Step, group: ConsumerGroup) -> list[Record]:
    """Before 4.4 no target record is written when the last members go: the epoch of the target stays (V-122)."""
    return []


@quirk("old_no_assignment_epochs", of=reconcile.granted_at)
def granted_at_no_epoch(step: Step, goal: reconcile.Goal) -> int:
    """Before 4.3 a member holds a set of partitions without epochs; here each has the epoch 0 (V-53)."""
    return 0


@quirk("old_no_assignment_epochs", of=records.holding_rows)
def rows_without_epochs(subject: HasQuirks, holding: Holding) -> tuple[AssignedPartitions, ...]:
    """Before 4.3 records contain partitions but no epochs (V-53, V-74)."""
    return tuple(AssignedPartitions(topic_id, tuple(sorted(holding[topic_id]))) for topic_id in sorted(holding))


@quirk("old_no_assignment_epochs", of=replay.holding)
def holding_without_epochs(subject: Replay, rows: tuple[AssignedPartitions, ...], epoch: int) -> Holding:
    """A release before 4.3 does not know the field in which a later one has written assignment epochs (V-74)."""
    return held(((row.topic_id, row.partitions) for row in rows), 0)
