"""Members leave a consumer group: permanently, for a while, or because their timer fired (7.9). This may turn the group
into a classic one (X-DOWN-01)."""

from __future__ import annotations

from collections.abc import Sequence

from fencepost.protocol.consumer_messages import (
    STATIC_LEAVE_EPOCH,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import TimerKey, TimerKind
from fencepost.protocol.rebalances import RebalanceCause, RebalanceReason, identities

from ..consumer import departure, members, records, reports, timers
from ..consumer.consumer_appliers import write_records
from ..consumer.group import NOTHING, ConsumerGroup, ConsumerMember, find_consumer_group, held
from ..kernel import operations
from ..kernel.errors import InternalError, Rejected
from ..kernel.step import Step
from . import downgrade


def consumer_group_leave(step: Step, body: ConsumerGroupHeartbeatRequest) -> ConsumerGroupHeartbeatResponse:
    """A member leaves, permanently or for a while (M-LEAVE-01, M-LEAVE-02, M-RSP-04). Raises ``Rejected``."""
    group = find_consumer_group(step, body.group_id)
    if group is None:
        raise Rejected(ErrorCode.GROUP_ID_NOT_FOUND)
    if body.instance_id is not None:
        member = members.static_member(group, body.instance_id, body.member_id)
    elif body.member_id in group.members:
        member = group.members[body.member_id]
    else:
        raise Rejected(ErrorCode.UNKNOWN_MEMBER_ID)
    cause = RebalanceCause(RebalanceReason.MEMBER_LEFT, identities([member]))
    if body.instance_id is not None and body.member_epoch == STATIC_LEAVE_EPOCH:
        _go_for_a_while(step, group, member)
    else:
        fence_members(step, group, [member], cause)
    return ConsumerGroupHeartbeatResponse(ErrorCode.NONE, member_id=body.member_id, member_epoch=body.member_epoch)


def _go_for_a_while(step: Step, group: ConsumerGroup, member: ConsumerMember) -> None:
    """M-LEAVE-05, M-PE-04, M-PE-07: the member keeps its partitions, for every epoch, and its timers continue to run
    (M-TMR-09). One record says so (F-ORD-11)."""
    gone = member._replace(epoch=STATIC_LEAVE_EPOCH, assigned=held(member.assigned.items(), 0), revoking=NOTHING)
    write_records(step, [records.current_assignment(step.rules, group.group_id, gone)])  # F-ORD-11


def fence_members(step: Step, group: ConsumerGroup, fenced: Sequence[ConsumerMember], cause: RebalanceCause) -> None:
    """Remove the members in one change of the group: by a downgrade if only classic ones remain, otherwise by one bump
    (M-LEAVE-03, X-DOWN-01). Raises ``InternalError``; a downgrade may also raise ``Rejected``."""
    leaving = frozenset(member.member_id for member in fenced)
    if downgrade.is_due(step, group, leaving):
        downgrade.by_departure(step, group, leaving, cause)
    else:
        departure.fence_members(step, group, fenced, cause)


def timer_fired(step: Step, key: TimerKey, epoch: int) -> None:
    """A timer of a member has fired: the member was silent or slow for too long, and is fenced (M-TMR-01…03,
    M-LEAVE-07). A timer of a member that is gone does nothing (M-TMR-09, M-TMR-10). ``epoch``: the epoch at which the
    timer was set."""
    group = find_consumer_group(step, key.group_id)
    member = None if group is None else group.members.get(key.member_id)
    if group is not None and member is not None and _too_late(key, member, epoch):
        try:
            fence_members(step, group, [member], reports.expired(step, group, member, key.kind))
        except InternalError:
            timers.retry(step, key, epoch)
            return
        except Rejected:
            pass  # X-DOWN-09: Kafka treats the group as gone
    operations.timer_done(step, timers.TimerRan(key, epoch))


def _too_late(key: TimerKey, member: ConsumerMember, epoch: int) -> bool:
    return key.kind is not TimerKind.CONSUMER_REBALANCE or member.epoch == epoch
