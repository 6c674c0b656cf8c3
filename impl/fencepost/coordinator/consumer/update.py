"""The effects of a member that joins or stays on its group, for both protocols (7.4, X-JOIN-11).

A ConsumerGroupHeartbeat and a JoinGroup to a consumer group differ in how they find the member and in the values that
they have. From the updated member on both continue in the same way: its metadata, the epoch of the group, the target,
and the reconciliation of the member. Each step returns its records; nothing is written before all steps have passed.
"""

from __future__ import annotations

from collections.abc import Iterable

from fencepost.protocol.consumer_messages import TopicPartitions
from fencepost.protocol.records import Record
from fencepost.quirks import varies

from ..kernel.numbers import next_epoch
from ..kernel.step import Step
from . import metadata, reconcile, records, subscription
from .group import ConsumerGroup, ConsumerMember
from .target import Epochs, Target


def replacement(step: Step, group: ConsumerGroup, member: ConsumerMember, replaced: ConsumerMember) -> list[Record]:
    """A static member takes over the place of the one with its instance id (M-STATIC-10, F-ORD-10)."""
    name, old_id = group.group_id, replaced.member_id
    return [
        *records.removed_member(name, old_id),
        records.member_metadata(name, member),
        records.target_member(name, member.member_id, group.target.get(old_id, {})),
        records.current_assignment(step, name, member),
    ]  # F-ORD-10


def metadata_of(group: ConsumerGroup, old: ConsumerMember, new: ConsumerMember) -> list[Record]:
    """The record of the member with the values of its heartbeat; values that are not sent stay (M-HB-02)."""
    return [] if new == old else [records.member_metadata(group.group_id, new)]


def bumped(
    step: Step, group: ConsumerGroup, old: ConsumerMember, new: ConsumerMember, written: list[Record], *, bump: bool
) -> Epochs:
    """Bump the epoch of the group if the request requires it or the topics have changed (M-HB-04, M-HB-05). ``bump``:
    the request requires it, whatever the topics are now (M-HB-03)."""
    epoch, kind = group.epoch, group.subscription_type
    look = bump or group.refresh_due(step.at_ms)
    if not look and not target_due(step, group):
        return Epochs(epoch, kind, written)
    counts = subscription.with_member(group, old, new)
    came = new.member_id not in group.members and new.instance_id not in group.static_members
    kind = subscription.type_of(counts.by_regex, counts.by_topic, len(group.members) + came)  # M-TGT-05
    if not look:
        return Epochs(epoch, kind, written)
    facts = metadata.look(step, group, counts.by_topic.counts)
    written += facts.before
    if bump or facts.differ:
        epoch = next_epoch(epoch)
        written.append(records.group_epoch(group.group_id, epoch, facts.hash))
    metadata.note(step, group, epoch)
    written += metadata.superseded(step, group)
    return Epochs(epoch, kind, written)


@varies
def target_due(step: Step, group: ConsumerGroup) -> bool:
    """Whether a target is due from an earlier request; then it is computed with the current subscriptions (M-TGT-05,
    M-TGT-06)."""
    return group.assignment_epoch < group.epoch


def reconciled(
    step: Step,
    group: ConsumerGroup,
    member: ConsumerMember,
    goal: Target,
    owned: Iterable[TopicPartitions] | None,
    *,
    changed: bool,
) -> ConsumerMember:
    """The member as close to its target as it can get now (M-HB-08). ``changed``: its subscription changed in this
    request. Raises ``Refused``."""
    if not changed and member.reconciled_to(goal.epoch):
        return member
    names = group.topics_of(member)
    wish = reconcile.Goal(goal.share, goal.epoch, step.topics.ids(names), bool(names), owned, changed)
    return reconcile.reconcile(step, group, member, wish)
