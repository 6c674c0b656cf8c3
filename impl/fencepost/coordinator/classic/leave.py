"""LeaveGroup (5.3)."""

from __future__ import annotations

from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import Request, TimerKey, TimerKind
from fencepost.protocol.messages import (
    JoinGroupResponse,
    LeaveGroupMember,
    LeaveGroupMemberResponse,
    LeaveGroupRequest,
    SyncGroupResponse,
)
from fencepost.protocol.rebalances import MemberIdentity, RebalanceCause, RebalanceReason
from fencepost.protocol.view import GroupState

from ..kernel import operations
from ..kernel.errors import InternalError
from ..kernel.replies import leave_response
from ..kernel.step import Step
from . import membership, rebalance
from .group import GroupDraft, answer_join, answer_sync, find_classic_group, keep_group

_UNKNOWN_JOIN = JoinGroupResponse(ErrorCode.UNKNOWN_MEMBER_ID)
_UNKNOWN_SYNC = SyncGroupResponse(ErrorCode.UNKNOWN_MEMBER_ID)


def leave(step: Step, request: Request, body: LeaveGroupRequest) -> None:
    """Remove members, each by its id or its instance id; the group rebalances without them (C-LEAVE-03, C-LEAVE-10…23).

    Authorization and similar checks are done before.
    """
    group = find_classic_group(step, body.group_id)
    if group is None:
        rows = tuple(_row(entry, ErrorCode.UNKNOWN_MEMBER_ID) for entry in body.members)
        step.reply(request.id, leave_response(request.version, rows))  # C-LEAVE-03
        return
    results = [_leave(step, group, entry) for entry in body.members]
    rows = tuple(
        _row(entry, ErrorCode.NONE if isinstance(result, MemberIdentity) else result)
        for entry, result in zip(body.members, results, strict=True)
    )
    left = tuple(result for result in results if isinstance(result, MemberIdentity))
    try:
        if left and group.state is not GroupState.EMPTY:
            rebalance.prepare_or_complete(step, group, cause_of(body, left))  # C-LEAVE-20…22, C-LEAVE-28
    except InternalError:
        keep_group(step, group)
        operations.broke(step, request)
        return
    keep_group(step, group)
    operations.done(step, request, reply=leave_response(request.version, rows))  # C-LEAVE-23


def cause_of(body: LeaveGroupRequest, left: tuple[MemberIdentity, ...]) -> RebalanceCause:
    """Why the group rebalances: these members left, for the reasons in the request."""
    reasons = dict.fromkeys(entry.reason for entry in body.members if entry.reason)
    return RebalanceCause(RebalanceReason.MEMBER_LEFT, left, client_reason=", ".join(reasons))


def _leave(step: Step, group: GroupDraft, entry: LeaveGroupMember) -> MemberIdentity | ErrorCode:
    """The member or pending id that was removed, or the error."""
    member_id = entry.member_id
    if not member_id:
        mapped = None if entry.group_instance_id is None else group.static_members.get(entry.group_instance_id)
        if mapped is None:
            return ErrorCode.UNKNOWN_MEMBER_ID  # C-LEAVE-11
        member_id = mapped  # C-LEAVE-10
    elif member_id not in group.pending_join:
        error = membership.invalid(group, member_id, entry.group_instance_id)
        if error is not None:
            return error  # C-LEAVE-13
    step.timers.cancel(TimerKey(TimerKind.SESSION, group.group_id, member_id))
    (identity,) = membership.named(group, [member_id])
    member = group.members.get(member_id)
    if member is not None:  # C-LEAVE-14; otherwise it is pending (C-LEAVE-12, C-LEAVE-27)
        member = answer_join(step, group, member, _UNKNOWN_JOIN)
        if step.rules.leave_answers_sync:
            answer_sync(step, group, member, _UNKNOWN_SYNC)  # C-LEAVE-24
    membership.remove(step, group, member_id)
    return identity


def _row(entry: LeaveGroupMember, error: ErrorCode) -> LeaveGroupMemberResponse:
    return LeaveGroupMemberResponse(entry.member_id, group_instance_id=entry.group_instance_id, error_code=error)
