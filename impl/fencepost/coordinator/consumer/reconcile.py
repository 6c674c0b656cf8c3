"""Reconciliation: the member gets as close to its target as it can in this heartbeat (7.6).

First the member loses partitions, then it takes those that are free. No partition is given to two members, since it
counts as held until the record of its holder says otherwise (M-REC-16, M-REC-17). The state of the member says what it
waits for (M-MS-01…04):

* UNREVOKED_PARTITIONS: it has to revoke partitions that are not in its target. It stays at its epoch until its list of
  owned partitions omits them (M-REC-03, M-REC-04).
* UNRELEASED_PARTITIONS: it is at the epoch of the target, and waits for partitions that other members still hold.
* STABLE: it has all that it can have at its epoch. It changes again with a new target, or if it subscribes to less.
* UNKNOWN: the log has a state that this release does not know. The member is fenced unless it says that it owns nothing
  (M-REC-06, M-REC-07).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from fencepost.protocol.consumer_messages import LEAVE_EPOCH, TopicPartitions
from fencepost.protocol.consumer_view import MemberState
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.records import Record

from ..kernel.errors import Rejected
from ..kernel.rules import Rules
from ..kernel.state import next_epoch
from ..kernel.step import Step
from . import records
from .group import ConsumerGroup, ConsumerGroupMember, Holding, Share
from .target import TargetAssignment


class Goal(NamedTuple):
    """The destination of the member: its target, the epoch of that target, and the existing topics that it subscribes
    to now. ``subscribes``: to any name, existing or not.

    ``owned``: the partitions that the member claims to own, None without a claim. ``changed``: its subscription changed
    in this request.
    """

    target: Share
    epoch: int
    topic_ids: frozenset[bytes]
    subscribes: bool
    owned: Iterable[TopicPartitions] | None
    changed: bool


class Reconciled(NamedTuple):
    """The member after reconciliation, and its record if it has changed."""

    member: ConsumerGroupMember
    records: Sequence[Record]


def maybe_reconcile(
    step: Step,
    group: ConsumerGroup,
    member: ConsumerGroupMember,
    target: TargetAssignment,
    owned: Iterable[TopicPartitions] | None,
    *,
    changed: bool,
) -> Reconciled:
    """Bring the member as close to its target as it can get now (M-HB-08). ``owned``: the partitions that it claims to
    own, None without a claim. ``changed``: its subscription changed in this request. Raises ``Rejected``."""
    if not changed and member.reconciled_to(target.epoch):
        return Reconciled(member, ())
    names = group.topics_of(member)
    goal = Goal(target.share, target.epoch, step.topics.ids(names), bool(names), owned, changed)
    after = reconcile(step, group, member, goal)
    if after == member:
        return Reconciled(member, ())
    return Reconciled(after, [records.current_assignment(step.rules, group.group_id, after)])


def reconcile(step: Step, group: ConsumerGroup, member: ConsumerGroupMember, goal: Goal) -> ConsumerGroupMember:
    """The member after this heartbeat (M-REC-01…07). Raises ``Rejected``."""
    match member.state:
        case MemberState.STABLE if member.epoch == goal.epoch:
            return prune(step.rules, member, goal)
        case MemberState.UNREVOKED_PARTITIONS:
            if owns(goal.owned, member.revoking):
                return prune(step.rules, member, goal)  # M-REC-03, M-REC-18
            epoch = next_epoch(member.epoch) if step.rules.revocation_advances_epoch else member.epoch
            return _next(step, group, member, epoch, goal)  # M-REC-04, M-REC-19
        case MemberState.UNKNOWN:
            if goal.owned is None or tuple(goal.owned):
                raise Rejected(ErrorCode.FENCED_MEMBER_EPOCH)  # M-REC-06
            return _next(step, group, member, goal.epoch, goal)
    return _next(step, group, member, member.epoch, goal)


def reachable(rules: Rules, goal: Goal) -> Share:
    """The part of its target that a member can have: the topics that it subscribes to now (M-REC-15)."""
    if rules.whole_target_counts:
        return goal.target
    return {topic_id: partitions for topic_id, partitions in goal.target.items() if topic_id in goal.topic_ids}


def _next(step: Step, group: ConsumerGroup, member: ConsumerGroupMember, epoch: int, goal: Goal) -> ConsumerGroupMember:
    """Revoke first, then take free partitions (M-REC-10…15). ``epoch``: the member's epoch while it revokes."""
    target = reachable(step.rules, goal)
    keep: dict[bytes, dict[int, int]] = {}
    drop: dict[bytes, dict[int, int]] = {}
    for topic_id, held in member.assigned.items():
        wanted = frozenset(target.get(topic_id, ()))
        for partition, assigned_at in held.items():
            kind = keep if partition in wanted else drop
            kind.setdefault(topic_id, {})[partition] = assigned_at
    if drop and owns(goal.owned, drop):
        return _at(member, epoch, MemberState.UNREVOKED_PARTITIONS, keep, drop)  # M-REC-10
    blocked = False
    at_epoch = goal.epoch if step.rules.has_assignment_epochs else 0  # M-PE-06
    for topic_id, partitions in target.items():
        held = member.assigned.get(topic_id, {})
        own = member.revoking.get(topic_id, {})
        for partition in partitions:
            if partition in held:
                continue
            if partition in own or is_free(group, topic_id, partition):  # M-REC-21
                keep.setdefault(topic_id, {})[partition] = at_epoch
            else:
                blocked = True
    state = MemberState.UNRELEASED_PARTITIONS if blocked else MemberState.STABLE
    return _at(member, goal.epoch, state, keep, {})  # M-REC-11…14


def is_free(group: ConsumerGroup, topic_id: bytes, partition: int) -> bool:
    """Whether no member holds the partition: it has no epoch, or -1 (M-PE-01)."""
    epochs = group.partition_epochs.get(topic_id)
    return epochs is None or epochs.get(partition, -1) == -1


def prune(rules: Rules, member: ConsumerGroupMember, goal: Goal) -> ConsumerGroupMember:
    """A member that stays at its epoch loses at once the topics that it no longer subscribes to (M-REC-25)."""
    if rules.whole_target_counts or not goal.changed:
        return member
    gone = {topic_id: held for topic_id, held in member.assigned.items() if topic_id not in goal.topic_ids}
    unrecorded = member.previous_epoch == LEAVE_EPOCH  # in a group that was converted at generation 0 (X-UP-05)
    if not gone and (goal.subscribes or member.revoking or unrecorded):
        return member
    left = {topic_id: held for topic_id, held in member.assigned.items() if topic_id not in gone}
    revoking = {topic_id: dict(held) for topic_id, held in member.revoking.items()}
    for topic_id, held in gone.items():
        revoking[topic_id] = {**revoking.get(topic_id, {}), **held}
    previous = member.epoch if rules.pruning_moves_previous_epoch else member.previous_epoch
    if revoking and owns(goal.owned, revoking):
        return member._replace(
            state=MemberState.UNREVOKED_PARTITIONS, previous_epoch=previous, assigned=left, revoking=revoking
        )
    return member._replace(previous_epoch=previous, assigned=left)


def _at(
    member: ConsumerGroupMember, epoch: int, state: MemberState, assigned: Holding, revoking: Holding
) -> ConsumerGroupMember:
    return member._replace(epoch=epoch, previous_epoch=member.epoch, state=state, assigned=assigned, revoking=revoking)


def owns(owned: Iterable[TopicPartitions] | None, holding: Mapping[bytes, Mapping[int, int]]) -> bool:
    """Whether the member may still own some of these (M-REC-18)."""
    if owned is None:
        return True
    return any(number in holding.get(row.topic_id, {}) for row in owned for number in row.partitions)
