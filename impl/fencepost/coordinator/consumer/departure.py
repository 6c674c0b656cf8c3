"""Members that leave: permanently, for a while, or because their timer fired (7.9)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from fencepost.protocol.consumer_messages import (
    STATIC_LEAVE_EPOCH,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import TimerKey, TimerKind
from fencepost.protocol.rebalances import RebalanceCause, RebalanceReason
from fencepost.protocol.records import Record
from fencepost.quirks import varies

from ..kernel import operations
from ..kernel.causes import identities
from ..kernel.errors import InternalError, Refused
from ..kernel.numbers import next_epoch
from ..kernel.step import Step
from . import access, identity, metadata, records, reports, subscription, timers
from .group import NOTHING, ConsumerGroup, ConsumerMember, held

#: Removes members from a group. Raises ``InternalError``, and ``Refused`` if they cannot be removed.
Fence: TypeAlias = Callable[[Step, ConsumerGroup, Sequence[ConsumerMember], RebalanceCause], None]


def leave(step: Step, body: ConsumerGroupHeartbeatRequest, fence: Fence) -> ConsumerGroupHeartbeatResponse:
    """A member leaves, permanently or for a while (M-LEAVE-01, M-LEAVE-02, M-RSP-04). Raises ``Refused``."""
    group = access.find(step, body.group_id)
    if group is None:
        raise Refused(ErrorCode.GROUP_ID_NOT_FOUND)
    if body.instance_id is not None:
        member = identity.held_by(group, body.instance_id, body.member_id)
    elif body.member_id in group.members:
        member = group.members[body.member_id]
    else:
        raise Refused(ErrorCode.UNKNOWN_MEMBER_ID)
    cause = RebalanceCause(RebalanceReason.MEMBER_LEFT, identities([member]))
    if body.instance_id is not None and body.member_epoch == STATIC_LEAVE_EPOCH:
        _go_for_a_while(step, group, member)
    else:
        fence(step, group, [member], cause)
    return ConsumerGroupHeartbeatResponse(ErrorCode.NONE, member_id=body.member_id, member_epoch=body.member_epoch)


def _go_for_a_while(step: Step, group: ConsumerGroup, member: ConsumerMember) -> None:
    """M-LEAVE-05, M-PE-04, M-PE-07: the member keeps its partitions, for every epoch, and its timers continue to run
    (M-TMR-09). One record says so (F-ORD-11)."""
    gone = member._replace(epoch=STATIC_LEAVE_EPOCH, assigned=held(member.assigned.items(), 0), revoking=NOTHING)
    access.write(step, [records.current_assignment(step, group.group_id, gone)])  # F-ORD-11


def fence(step: Step, group: ConsumerGroup, members: Sequence[ConsumerMember], cause: RebalanceCause) -> None:
    """Remove members from the group: their partitions become free, and the others get a new epoch (M-LEAVE-03,
    M-LEAVE-04, F-ORD-07). Raises ``InternalError``."""
    name = group.group_id
    leaving = frozenset(member.member_id for member in members)
    written: list[Record] = []
    for member in members:
        written += records.removed_member(name, member.member_id)
    counts = subscription.without_members(group, members)
    unused = [regex for regex in sorted(group.by_regex) if regex not in counts.by_regex]
    written += [records.regular_expression(name, regex, None) for regex in unused]
    facts = metadata.look(step, group, counts.by_topic.counts)
    written += facts.before
    epoch = next_epoch(group.epoch)
    written.append(records.group_epoch(name, epoch, facts.hash))
    if len(leaving) == len(group.members):
        written += emptied(step, group)
    access.write(step, written)  # F-ORD-07
    reports.started(step, name, epoch, cause)
    reports.maybe_ended(step, name)
    for member in members:
        timers.unwatch(step, name, member.member_id)


@varies
def emptied(step: Step, group: ConsumerGroup) -> list[Record]:
    """The records for the departure of the last members: there is no member for a target, so the epoch of the target
    follows that of the group (M-LEAVE-04, F-ORD-07)."""
    return [records.target_epoch(group.group_id, next_epoch(group.epoch), records.NO_TIMESTAMP)]


def fired(step: Step, key: TimerKey, epoch: int, fence: Fence) -> None:
    """A timer of a member has fired: the member was silent or slow for too long, and is fenced (M-TMR-01…03,
    M-LEAVE-07). A timer of a member that is gone does nothing (M-TMR-09, M-TMR-10). ``epoch``: the epoch at which the
    timer was set."""
    group = access.find(step, key.group_id)
    member = None if group is None else group.members.get(key.member_id)
    if group is not None and member is not None and _too_late(key, member, epoch):
        try:
            fence(step, group, [member], reports.expired(step, group, member, key.kind))
        except InternalError:
            timers.retry(step, key, epoch)
            return
        except Refused:
            pass  # X-DOWN-09: Kafka treats the group as gone
    operations.timer_done(step, timers.TimerRan(key, epoch))


def _too_late(key: TimerKey, member: ConsumerMember, epoch: int) -> bool:
    return key.kind is not TimerKind.CONSUMER_REBALANCE or member.epoch == epoch
