"""SyncGroup, Heartbeat and LeaveGroup to a consumer group (rule book, 9.4), as far as no member is a classic one.

A member becomes classic only by a JoinGroup that is accepted (9.3) or by an upgrade (9.2). Neither is modelled yet:
``NotModelled`` says so where the rules would lead there, so that a follower stops instead of judging.
"""

from __future__ import annotations

from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import Request
from fencepost.protocol.messages import (
    HeartbeatRequest,
    HeartbeatResponse,
    LeaveGroupMember,
    LeaveGroupMemberResponse,
    LeaveGroupRequest,
    SyncGroupRequest,
    SyncGroupResponse,
)

from ..classic.requests import leave_answer
from ..classic.state import Operation
from ..consumer.leave import fence
from ..consumer.refusal import NotModelled, Refused
from ..consumer.state import ConsumerGroup, Member
from ..consumer.turn import Turn
from ..consumer.work import Side


def takes(side: Side, request: Request) -> bool:
    """Takes the request if it is a classic one about a consumer group with members."""
    body = request.body
    if not isinstance(body, SyncGroupRequest | HeartbeatRequest | LeaveGroupRequest):
        return False
    group = side.work.consumer_group(body.group_id)
    if group is None or (not group.members and not isinstance(body, LeaveGroupRequest)):
        return False
    if isinstance(body, LeaveGroupRequest):
        _leave(side, request, body, group)
        return True
    try:
        member(group, body.member_id, body.group_instance_id, "X-SYNC-01")
        error, rule = ErrorCode.UNKNOWN_MEMBER_ID, "X-SYNC-02"  # it speaks the consumer protocol (X-HB-01)
    except Refused as refused:
        error, rule = refused.error, refused.rule
    side.work.rules.append(rule)
    answer = HeartbeatResponse(error) if isinstance(body, HeartbeatRequest) else SyncGroupResponse(error)
    side.work.replies.append((request.id, answer))
    return True


def member(group: ConsumerGroup, member_id: str, instance: str | None, rule: str) -> Member:
    """The member that a classic request is about. Raises Refused."""
    mapped: str | None = member_id
    if instance is not None:
        mapped = group.held_by(instance)
    found = None if mapped is None else group.member(mapped)
    if found is None:
        raise Refused(ErrorCode.UNKNOWN_MEMBER_ID, rule)
    if mapped != member_id:
        raise Refused(ErrorCode.FENCED_INSTANCE_ID, rule)
    if found.classic is not None:
        raise NotModelled("a classic member of a consumer group (X-SYNC-03…06, X-HB-02…05, X-DOWN-01)")
    return found


def _leave(side: Side, request: Request, body: LeaveGroupRequest, group: ConsumerGroup) -> None:
    """X-LEAVE-01…06: members of either protocol go, with one bump for all of them."""
    if any(each.classic is not None for each in group.members):
        raise NotModelled("a departure from a group with classic members (X-DOWN-01)")
    turn: Turn = side.turn(body.group_id, group)
    rows, leavers = [], {}
    for entry in body.members:
        error = ErrorCode.NONE
        try:
            found = leaver(group, entry)
            leavers[found.member_id] = found
        except Refused as refused:
            error = refused.error
        rows.append(LeaveGroupMemberResponse(entry.member_id, entry.group_instance_id, error))
    turn.rule("X-LEAVE-01", "X-LEAVE-03")
    if leavers:
        turn.rule("X-LEAVE-04")
        fence(turn, leavers.values())  # a member that is listed twice goes once (X-LEAVE-06)
    answer = leave_answer(request.version, tuple(rows))
    side.close(turn, Operation(request.id, body.group_id, body, 0, answer), [])


def leaver(group: ConsumerGroup, entry: LeaveGroupMember) -> Member:
    """X-LEAVE-01, 02: an instance id without a member id is enough. Raises Refused."""
    instance = entry.group_instance_id
    if instance is not None and not entry.member_id:
        mapped = group.held_by(instance)
        return member(group, mapped or "", instance, "X-LEAVE-01")
    return member(group, entry.member_id, instance, "X-LEAVE-01")
