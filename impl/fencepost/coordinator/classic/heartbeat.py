"""Heartbeat (5.1), and the timers of members and phases that fire without it (5.2).

A heartbeat changes no group and writes nothing (C-HB-14), so it works on the frozen one. A timer that fires finds its
group by name, and does nothing if the group does not exist.
"""

from __future__ import annotations

from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import Request, TimerKey, TimerKind
from fencepost.protocol.messages import HeartbeatRequest, HeartbeatResponse, JoinGroupResponse
from fencepost.protocol.rebalances import RebalanceCause, RebalanceReason, identities
from fencepost.protocol.view import GroupState

from ..kernel import operations
from ..kernel.errors import InternalError
from ..kernel.step import Step
from ..kernel.timers import Armed
from . import membership, rebalance
from .group import (
    ClassicGroup,
    GroupDraft,
    answer_join,
    find_classic_group,
    keep_group,
    schedule_classic_session_timeout,
)

_NONE = HeartbeatResponse(ErrorCode.NONE)
_REBALANCE = HeartbeatResponse(ErrorCode.REBALANCE_IN_PROGRESS)


def heartbeat(step: Step, request: Request, body: HeartbeatRequest) -> None:
    """Restart the session of a member, and answer whether it has to join again (C-HB-05, C-HB-08…13).

    Errors are answered at once, other answers are never ahead of the log (F-RT-24).
    """
    group = step.memory.groups.get(body.group_id)
    if not isinstance(group, ClassicGroup):
        step.reply(request.id, HeartbeatResponse(ErrorCode.UNKNOWN_MEMBER_ID))  # C-HB-05
        return
    error = membership.invalid(group, body.member_id, body.group_instance_id)
    if error is None and body.generation_id != group.generation:
        error = ErrorCode.ILLEGAL_GENERATION  # C-HB-09
    if error is not None:
        step.reply(request.id, HeartbeatResponse(error))
        return
    schedule_classic_session_timeout(step, group, group.members[body.member_id])
    preparing = group.state is GroupState.PREPARING_REBALANCE
    operations.done(step, request, reply=_REBALANCE if preparing else _NONE)  # C-HB-11, C-HB-12


_UNKNOWN = JoinGroupResponse(ErrorCode.UNKNOWN_MEMBER_ID)


def classic_timer_fired(step: Step, armed: Armed) -> None:
    """A session, the sync phase or the join phase of a group has expired (C-ST-24, C-TMR-06…09, C-SYNC-20)."""
    key = armed.key
    group = find_classic_group(step, key.group_id)
    if group is None:
        operations.timer_done(step)
        return
    try:
        if key.kind is TimerKind.SESSION:
            _session(step, group, key.member_id)
        elif key.kind is TimerKind.SYNC:
            _sync(step, group)
        elif armed.initial is not None:  # perhaps of an earlier group of this name (C-TMR-12)
            rebalance.initial_delay_over(step, group, armed.initial)
        else:
            rebalance.complete(step, group)
    except InternalError:
        step.log.records.clear()  # no member gets an answer; the changes so far stay (C-ST-27)
        keep_group(step, group)
        return
    keep_group(step, group)
    operations.timer_done(step)


def _session(step: Step, group: GroupDraft, member_id: str) -> None:
    """Remove the member whose session expired; its group rebalances, or stops waiting for it (C-TMR-06…09)."""
    if member_id in group.pending_join:
        membership.remove(step, group, member_id)
    else:
        member = group.members.get(member_id)
        if member is None or (not member.is_new and (member.join is not None or member.sync is not None)):
            return  # C-TMR-07: a waiting member is not silent; the answer sets the timer again (C-TMR-14)
        answer_join(step, group, member, _UNKNOWN)
        membership.remove(step, group, member_id)
        if group.state is not GroupState.PREPARING_REBALANCE:
            cause = RebalanceCause(
                RebalanceReason.SESSION_EXPIRED, identities([member]), timeout_ms=member.session_timeout
            )
            rebalance.prepare(step, group, cause)
            return
    if group.state is GroupState.PREPARING_REBALANCE and group.all_joined:
        rebalance.complete(step, group)  # also during the initial delay (C-TMR-08)


def _sync(step: Step, group: GroupDraft) -> None:
    """Remove the members that joined but never synced; all members rebalance (C-SYNC-20)."""
    if group.state in (GroupState.EMPTY, GroupState.PREPARING_REBALANCE) or not group.pending_sync:
        return  # C-SYNC-20b
    overdue = sorted(_overdue(group))
    cause = RebalanceCause(
        RebalanceReason.SYNC_TIMEOUT, membership.named(group, overdue), timeout_ms=group.rebalance_timeout
    )
    for member_id in overdue:
        membership.remove(step, group, member_id)
        step.timers.cancel(TimerKey(TimerKind.SESSION, group.group_id, member_id))
    rebalance.prepare(step, group, cause)


def _overdue(group: GroupDraft) -> frozenset[str]:
    """The members that still have to send a SyncGroup, without those that wait for an answer themselves.

    A static member that has just come back in Stable, with its entry moved, is such a case (C-STATIC-16 fixed). It is
    not late, as in C-TMR-07, and by its JoinGroup it has joined the rebalance.
    """
    return frozenset(
        member_id
        for member_id in group.pending_sync
        if (member := group.members.get(member_id)) is None or member.join is None
    )
