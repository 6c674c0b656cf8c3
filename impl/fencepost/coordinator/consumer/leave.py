"""Members that go: by themselves, for a while, or because they were silent too long (7.9)."""

from __future__ import annotations

from collections.abc import Sequence

from fencepost.protocol.consumer_messages import (
    STATIC_LEAVE_EPOCH,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import TimerKey, TimerKind
from fencepost.protocol.records import Record

from .. import operations
from ..errors import InternalError
from ..mixed import downgrade
from ..state import TimerRan
from ..work import Step
from . import membership, metadata, records, subscription, timers
from .errors import Refused
from .state import NOTHING, ConsumerGroup, ConsumerMember, held


def leave(step: Step, body: ConsumerGroupHeartbeatRequest) -> ConsumerGroupHeartbeatResponse:
    """M-LEAVE-01, M-LEAVE-02, M-RSP-04. Raises ``Refused``."""
    group = step.consumer_group(body.group_id)
    if group is None:
        raise Refused(ErrorCode.GROUP_ID_NOT_FOUND)
    if body.instance_id is not None:
        member = membership.held_by(group, body.instance_id, body.member_id)
    elif body.member_id in group.members:
        member = group.members[body.member_id]
    else:
        raise Refused(ErrorCode.UNKNOWN_MEMBER_ID)
    if body.instance_id is not None and body.member_epoch == STATIC_LEAVE_EPOCH:
        _go_for_a_while(step, group, member)
    else:
        fence(step, group, [member])
    return ConsumerGroupHeartbeatResponse(ErrorCode.NONE, member_id=body.member_id, member_epoch=body.member_epoch)


def _go_for_a_while(step: Step, group: ConsumerGroup, member: ConsumerMember) -> None:
    """M-LEAVE-05, M-PE-04, M-PE-07: what it has stays its own, for every epoch; its timers run on (M-TMR-09)."""
    gone = member._replace(epoch=STATIC_LEAVE_EPOCH, assigned=held(member.assigned.items(), 0), revoking=NOTHING)
    step.write([records.current_assignment(group.group_id, gone, step.profile)])


def fence(step: Step, group: ConsumerGroup, members: Sequence[ConsumerMember]) -> None:
    """M-LEAVE-03, M-LEAVE-04, F-ORD-07, X-DOWN-01. Raises ``InternalError``, and ``Refused`` by a downgrade."""
    name = group.group_id
    leaving = frozenset(member.member_id for member in members)
    if downgrade.is_due(step, group, leaving):
        downgrade.by_departure(step, group, leaving)
        return
    written: list[Record] = []
    for member in members:
        written += records.removed_member(name, member.member_id)
    counts = subscription.without_members(group, members)
    unused = [regex for regex in sorted(group.by_regex) if regex not in counts.by_regex]
    written += [records.regular_expression(name, regex, None) for regex in unused]
    facts = metadata.look(step, group, counts.by_topic)
    written += facts.before
    written.append(records.group_epoch(name, group.epoch + 1, facts.hash))
    if len(leaving) == len(group.members) and not step.profile.old_emptied_group_keeps_target_epoch:
        written.append(records.target_epoch(name, group.epoch + 1, records.NO_TIMESTAMP))
    step.write(written)
    for member in members:
        timers.unwatch(step, name, member.member_id)


def fired(step: Step, key: TimerKey, epoch: int) -> None:
    """M-TMR-01…03, M-LEAVE-07; a timer of somebody who is gone does nothing (M-TMR-09, M-TMR-10). ``epoch``: the one
    that it was set with."""
    group = step.consumer_group(key.group_id)
    member = None if group is None else group.members.get(key.member_id)
    if group is not None and member is not None and _too_late(key, member, epoch):
        try:
            fence(step, group, [member])
        except InternalError:
            timers.retry(step, key, epoch)
            return
        except Refused:
            pass  # X-DOWN-09: Kafka takes it for a group that is gone
    operations.timer_done(step, TimerRan(key, epoch))


def _too_late(key: TimerKey, member: ConsumerMember, epoch: int) -> bool:
    return key.kind is not TimerKind.CONSUMER_REBALANCE or member.epoch == epoch
