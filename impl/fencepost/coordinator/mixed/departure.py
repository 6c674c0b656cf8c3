"""Members leave a consumer group: by a heartbeat, by LeaveGroup (9.4), or because their timer fired (7.9).

Members of both protocols leave in the same way, all members of a request in one change of the group. This may turn the
group into a classic one (X-DOWN-01).
"""

from __future__ import annotations

from collections.abc import Sequence

from fencepost.protocol.consumer_messages import (
    STATIC_LEAVE_EPOCH,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import Request, TimerKey, TimerKind
from fencepost.protocol.messages import LeaveGroupMember, LeaveGroupMemberResponse, LeaveGroupRequest
from fencepost.protocol.rebalances import RebalanceCause, RebalanceReason, identities
from fencepost.protocol.records import Record

from ..classic.leave import cause_of
from ..consumer import group_epoch, records, reports, timers
from ..consumer.consumer_appliers import write_records
from ..consumer.group import NOTHING, ConsumerGroup, ConsumerGroupMember, find_consumer_group, held, without_members
from ..consumer.members import static_member
from ..kernel import operations
from ..kernel.errors import InternalError, Rejected
from ..kernel.replies import error_response, leave_response
from ..kernel.state import next_epoch
from ..kernel.step import Step
from . import downgrade


def consumer_group_leave(step: Step, body: ConsumerGroupHeartbeatRequest) -> ConsumerGroupHeartbeatResponse:
    """A member leaves, permanently or for a while (M-LEAVE-01, M-LEAVE-02, M-RSP-04). Raises ``Rejected``."""
    group = find_consumer_group(step, body.group_id)
    if group is None:
        raise Rejected(ErrorCode.GROUP_ID_NOT_FOUND)
    if body.instance_id is not None:
        member = static_member(group, body.instance_id, body.member_id)
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


def _go_for_a_while(step: Step, group: ConsumerGroup, member: ConsumerGroupMember) -> None:
    """M-LEAVE-05, M-PE-04, M-PE-07: the member keeps its partitions, for every epoch, and its timers continue to run
    (M-TMR-09). One record says so (F-ORD-11)."""
    gone = member._replace(epoch=STATIC_LEAVE_EPOCH, assigned=held(member.assigned.items(), 0), revoking=NOTHING)
    write_records(step, [records.current_assignment(step.rules, group.group_id, gone)])  # F-ORD-11


def classic_group_leave(step: Step, request: Request, body: LeaveGroupRequest, group: ConsumerGroup) -> None:
    """Remove the named members, of either protocol, and answer for each entry (X-LEAVE-01…06, F-ORD-14)."""
    leaving: dict[str, ConsumerGroupMember] = {}
    rows = []
    for entry in body.members:
        error = ErrorCode.NONE
        try:
            member = _named_member(group, entry)
            leaving[member.member_id] = member
        except Rejected as rejected:
            error = rejected.error
        rows.append(
            LeaveGroupMemberResponse(entry.member_id, group_instance_id=entry.group_instance_id, error_code=error)
        )
    try:
        if leaving:
            members = list(leaving.values())
            cause = cause_of(body, identities(members))
            fence_members(step, group, members, cause)  # one bump for all (M-EPOCH-05)
    except Rejected as rejected:
        step.reply(request.id, error_response(request, rejected.error))  # X-DOWN-09
        return
    except InternalError:
        step.reply(request.id, error_response(request, ErrorCode.UNKNOWN_SERVER_ERROR))
        return
    operations.done(step, request, reply=leave_response(request.version, tuple(rows)))


def _named_member(group: ConsumerGroup, entry: LeaveGroupMember) -> ConsumerGroupMember:
    """The member that an entry names, by its instance or by its id (X-LEAVE-01, X-LEAVE-02). Raises ``Rejected``."""
    instance_id = entry.group_instance_id
    if instance_id is not None:
        return static_member(group, instance_id, entry.member_id or group.static_members.get(instance_id, ""))
    if entry.member_id not in group.members:
        raise Rejected(ErrorCode.UNKNOWN_MEMBER_ID)
    return group.members[entry.member_id]


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


def _too_late(key: TimerKey, member: ConsumerGroupMember, epoch: int) -> bool:
    return key.kind is not TimerKind.CONSUMER_REBALANCE or member.epoch == epoch


def fence_members(
    step: Step, group: ConsumerGroup, fenced: Sequence[ConsumerGroupMember], cause: RebalanceCause
) -> None:
    """Remove the members in one change of the group: by a downgrade if only classic ones remain, otherwise by one bump
    (M-LEAVE-03, X-DOWN-01). Raises ``InternalError``; a downgrade may also raise ``Rejected``."""
    leaving = frozenset(member.member_id for member in fenced)
    if downgrade.is_due(step, group, leaving):
        downgrade.by_departure(step, group, leaving, cause)
    else:
        _remove_members(step, group, fenced, cause)


def _remove_members(
    step: Step, group: ConsumerGroup, members: Sequence[ConsumerGroupMember], cause: RebalanceCause
) -> None:
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
