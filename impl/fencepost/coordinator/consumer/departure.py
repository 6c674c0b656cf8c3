"""Members are fenced: they leave for ever, or their timer fired (7.9)."""

from __future__ import annotations

from collections.abc import Sequence

from fencepost.protocol.rebalances import RebalanceCause
from fencepost.protocol.records import Record

from ..kernel.state import next_epoch
from ..kernel.step import Step
from . import group_epoch, records, reports, timers
from .consumer_appliers import write_records
from .group import ConsumerGroup, ConsumerMember, without_members


def fence_members(step: Step, group: ConsumerGroup, members: Sequence[ConsumerMember], cause: RebalanceCause) -> None:
    """Remove members from the group: their partitions become free, and the others get a new epoch (M-LEAVE-03,
    M-LEAVE-04, F-ORD-07). Raises ``InternalError``."""
    name = group.group_id
    leaving = frozenset(member.member_id for member in members)
    written: list[Record] = []
    for member in members:
        written += records.removed_member(name, member.member_id)
    counts = without_members(group, members)
    unused = [regex for regex in sorted(group.by_regex) if regex not in counts.by_regex]
    written += [records.regular_expression(name, regex, None) for regex in unused]
    topics = group_epoch.look_at_topics(step, group, counts.by_topic.counts)
    written += topics.before
    epoch = next_epoch(group.epoch)
    written.append(records.group_epoch(name, epoch, topics.hash))
    if len(leaving) == len(group.members) and step.rules.empty_group_has_target_epoch:
        written.append(records.target_epoch(name, epoch, records.NO_TIMESTAMP))  # there is no member for a target
    write_records(step, written)  # F-ORD-07
    reports.started(step, name, epoch, cause)
    reports.maybe_ended(step, name)
    for member in members:
        timers.cancel_timers(step, name, member.member_id)
