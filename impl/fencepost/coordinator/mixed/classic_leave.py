"""LeaveGroup to a consumer group (9.4): members of either protocol leave, all in one change of the group."""

from __future__ import annotations

from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import Request
from fencepost.protocol.messages import LeaveGroupMember, LeaveGroupMemberResponse, LeaveGroupRequest
from fencepost.protocol.rebalances import identities

from ..classic.leave import cause_of
from ..consumer.group import ConsumerGroup, ConsumerMember
from ..consumer.members import static_member
from ..kernel import operations
from ..kernel.errors import InternalError, Rejected
from ..kernel.replies import error_response, leave_response
from ..kernel.step import Step
from . import departure


def leave(step: Step, request: Request, body: LeaveGroupRequest, group: ConsumerGroup) -> None:
    """Remove the named members, of either protocol, and answer for each entry (X-LEAVE-01…06, F-ORD-14)."""
    leaving: dict[str, ConsumerMember] = {}
    rows = []
    for entry in body.members:
        error = ErrorCode.NONE
        try:
            member = _meant(group, entry)
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
            departure.fence_members(step, group, members, cause)  # one bump for all (M-EPOCH-05)
    except Rejected as rejected:
        step.reply(request.id, error_response(request, rejected.error))  # X-DOWN-09
        return
    except InternalError:
        step.reply(request.id, error_response(request, ErrorCode.UNKNOWN_SERVER_ERROR))
        return
    operations.done(step, request, reply=leave_response(request.version, tuple(rows)))


def _meant(group: ConsumerGroup, entry: LeaveGroupMember) -> ConsumerMember:
    """The member that an entry names, by its instance or by its id (X-LEAVE-01, X-LEAVE-02). Raises ``Rejected``."""
    instance_id = entry.group_instance_id
    if instance_id is not None:
        return static_member(group, instance_id, entry.member_id or group.static_members.get(instance_id, ""))
    if entry.member_id not in group.members:
        raise Rejected(ErrorCode.UNKNOWN_MEMBER_ID)
    return group.members[entry.member_id]
