"""Intervals that only later releases have, and their bounds."""

from __future__ import annotations

from fencepost.protocol.consumer_records import ConsumerGroupTargetAssignmentMetadataValue
from fencepost.quirks import quirk

from ...consumer import records, regex, replay, target
from ...consumer.group import ConsumerGroup, Resolution
from ...kernel import group_configs
from ...kernel.replay import Replay
from ...kernel.step import Step


@quirk("old_no_assignment_interval", of=target.allowed)
def computes_at_once(step: Step, group: ConsumerGroup) -> bool:
    """Before 4.3 there is no interval between two targets (V-38)."""
    return True


@quirk("old_no_assignment_interval", of=target.computed_at)
def computed_at_no_time(step: Step) -> int:
    """Before 4.3 the record of a target has no time (V-40)."""
    return records.NO_TIMESTAMP


@quirk("old_no_assignment_interval", of=replay.assignment_timestamp)
def reads_no_time(replayed: Replay, value: ConsumerGroupTargetAssignmentMetadataValue) -> int:
    """A release before 4.3 does not know the field in which a later one has written a time (V-40, V-73)."""
    return records.NO_TIMESTAMP


@quirk("old_no_periodic_regex_refresh", of=regex.outdated)
def never_outdated(step: Step, last: Resolution | None) -> bool:
    """4.0 resolves a regex again only when topics are created (V-10)."""
    return False


@quirk("old_group_config_unclamped", of=group_configs.within_bounds)
def beyond_bounds(step: Step, value: int, low: int, high: int) -> int:
    """Before 4.3 the setting of a group counts as it is stored, whatever the broker allows (V-12)."""
    return value
