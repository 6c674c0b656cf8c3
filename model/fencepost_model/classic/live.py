"""Heartbeat, LeaveGroup and session expiry (rule book, 5.1–5.3)."""

from __future__ import annotations

from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupResponse,
    LeaveGroupMember,
    LeaveGroupMemberResponse,
    LeaveGroupRequest,
    SyncGroupResponse,
)

from ..machines import COMPLETING, DEAD, EMPTY, PREPARING, STABLE
from .draft import Draft
from .rebalance import complete_join, maybe_complete_join_phase, prepare_rebalance
from .state import Member, Timer
from .validate import member_error


def heartbeat(d: Draft, body: HeartbeatRequest) -> HeartbeatResponse:
    """Answer a heartbeat (C-HB-07…12). A new member may heartbeat in Preparing; its own session timeout then applies
    (C-HB-13)."""
    if d.state == DEAD:
        d.rule("C-HB-07")
        return HeartbeatResponse(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    error = member_error(d, body.member_id, body.group_instance_id)
    if error is not None:
        d.rule("C-HB-08")
        return HeartbeatResponse(error)
    if body.generation_id != d.generation:
        d.rule("C-HB-09")
        return HeartbeatResponse(ErrorCode.ILLEGAL_GENERATION)
    d.arm_session(d.members[body.member_id])
    if d.state == PREPARING:
        d.rule("C-HB-11")
        return HeartbeatResponse(ErrorCode.REBALANCE_IN_PROGRESS)
    d.rule("C-HB-12")
    return HeartbeatResponse(ErrorCode.NONE)


def remove_members(d: Draft, body: LeaveGroupRequest) -> tuple[LeaveGroupMemberResponse, ...]:
    """Remove members and return the rows of the answer (C-LEAVE-10…22). The generation is not checked (C-LEAVE-25)."""
    rows = tuple(
        LeaveGroupMemberResponse(m.member_id, group_instance_id=m.group_instance_id, error_code=leave_one(d, m))
        for m in body.members
    )
    if not any(row.error_code is ErrorCode.NONE for row in rows):
        d.rule("C-LEAVE-20")
    elif d.state in (STABLE, COMPLETING):
        d.rule("C-LEAVE-21")
        prepare_rebalance(d, "member_left")
    elif d.state == PREPARING:
        d.rule("C-LEAVE-22")
        maybe_complete_join_phase(d)
    return rows


def leave_one(d: Draft, entry: LeaveGroupMember) -> ErrorCode:
    """Handle one entry of a LeaveGroup (C-LEAVE-10…14, 27)."""
    member_id, instance = entry.member_id, entry.group_instance_id
    if not member_id:
        mapped = d.static_member_id(instance) if instance is not None else None
        if mapped is None:
            d.rule("C-LEAVE-11")
            return ErrorCode.UNKNOWN_MEMBER_ID
        d.rule("C-LEAVE-10")
        member_id = mapped
    elif member_id in d.pending_join:
        d.rule("C-LEAVE-12")
        d.remove(member_id)
        d.cancel(Timer("session", member_id))
        return ErrorCode.NONE
    else:
        error = member_error(d, member_id, instance)
        if error is not None:
            d.rule("C-LEAVE-13")
            return error
    d.rule("C-LEAVE-14")
    d.cancel(Timer("session", member_id))
    member = d.answer_join(d.members[member_id], JoinGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID))
    d.variant.classic.answer_leaving_sync(d, member)
    d.remove(member_id)
    return ErrorCode.NONE


def answer_leaving_sync(d: Draft, member: Member) -> None:
    """Answer the parked SyncGroup of a member that leaves (C-LEAVE-24)."""
    d.answer_sync(member, SyncGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID))


def expire_session(d: Draft, member_id: str) -> None:
    """Expire a session timer (C-TMR-06…09). It ignores C-ST-20, so it can end an initial delay early (C-TMR-08); not in
    Scala."""
    if d.state == DEAD:
        d.rule("C-TMR-09")
        return
    if member_id in d.pending_join:
        d.rule("C-TMR-06")
        d.remove(member_id)
    else:
        member = d.members.get(member_id)
        if member is None:
            d.rule("C-TMR-09")
            return
        d.rule("C-TMR-07")
        if not member.is_new and (member.join is not None or member.sync is not None):
            return  # no timer runs until its request is answered (C-TMR-14)
        d.answer_join(member, JoinGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID))
        d.remove(member_id)
        if d.state in (STABLE, COMPLETING):
            prepare_rebalance(d, "session_expired")
            return
    may_end = d.previous != EMPTY or d.variant.classic.session_may_end_initial_delay
    if d.state == PREPARING and d.all_joined() and may_end:
        d.rule("C-TMR-08")
        complete_join(d)
