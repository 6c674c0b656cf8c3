"""JoinGroup, SyncGroup, Heartbeat and LeaveGroup to a consumer group (rule book, 9.3, 9.4)."""

from __future__ import annotations

from dataclasses import replace

from fencepost.protocol.consumer_records import ClassicMemberMetadata
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import Request
from fencepost.protocol.messages import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupMember,
    LeaveGroupMemberResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)

from ..classic.requests import leave_answer
from ..classic.state import Operation, Timed
from ..classic.subscription import CONSUMER
from ..consumer.derive import holders
from ..consumer.heartbeat import may_compute
from ..consumer.leave import fence
from ..consumer.refusal import Refused
from ..consumer.rows import without_epochs
from ..consumer.state import JOIN, SESSION, SYNC, ConsumerGroup, Member, Partition, Timer
from ..consumer.turn import Turn
from ..consumer.work import Side
from ..embedded import BadBytes
from ..machines import C_UNRELEASED, C_UNREVOKED
from .embedded import write_assignment
from .join import join


def takes(side: Side, request: Request, new_id: str) -> bool:
    """Handle the request if it is a classic one about a consumer group with members. Returns whether it did."""
    body = request.body
    if not isinstance(body, JoinGroupRequest | SyncGroupRequest | HeartbeatRequest | LeaveGroupRequest):
        return False
    group = side.work.consumer_group(body.group_id)
    if group is None or (not group.members and not isinstance(body, LeaveGroupRequest)):
        return False
    if isinstance(body, LeaveGroupRequest):
        _leave(side, request, body, group)
        return True
    turn = side.turn(body.group_id, group)
    try:
        if isinstance(body, JoinGroupRequest):
            _join(side, turn, request, body, new_id)
        elif isinstance(body, SyncGroupRequest):
            _sync(side, turn, request, body)
        else:
            _heartbeat(side, turn, request, body)
    except Refused as refused:
        turn.rule(refused.rule)
        if isinstance(body, JoinGroupRequest):
            turn.armed.clear()
            turn.records.clear()
            side.keep_soft(turn)
            answer: JoinGroupResponse | SyncGroupResponse | HeartbeatResponse = JoinGroupResponse(refused.error)
        elif isinstance(body, SyncGroupRequest):
            answer = SyncGroupResponse(refused.error)
        else:
            answer = HeartbeatResponse(refused.error)
        side.timers(turn)
        side.work.replies.append((request.id, answer))
    return True


def _join(side: Side, turn: Turn, request: Request, body: JoinGroupRequest, new_id: str) -> None:
    if request.version == 0:  # D-30
        body = replace(body, rebalance_timeout_ms=body.session_timeout_ms)
    joined = join(turn, request, body, new_id)
    operation = Operation(request.id, body.group_id, body, 0, joined.body, callback=Timed(tuple(joined.timers.items())))
    if joined.body.error_code is not ErrorCode.NONE:
        side.work.replies.append((request.id, joined.body))  # X-JOIN-05
        operation = Operation(request.id, body.group_id, body, 0, answered=True)
    turn.rebalances = joined.rebalances
    if joined.rebalances and not turn.profile.fault_downgrade_loses_bump:
        turn.parked = joined.body.member_id
    side.close(turn, operation, [])


def _sync(side: Side, turn: Turn, request: Request, body: SyncGroupRequest) -> None:
    """Handle a SyncGroup (X-SYNC-01…07). Raises Refused."""
    found = member(turn.group, body.member_id, body.group_instance_id, "X-SYNC-01")
    kept = spoken(found, body.generation_id)
    first = kept.supported_protocols[0]
    if body.protocol_type not in (None, CONSUMER) or body.protocol_name not in (None, first.name):
        raise Refused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, "X-SYNC-04")
    if found.state != C_UNREVOKED and lags(turn, found):
        arm_join(turn, side, found)
        raise Refused(ErrorCode.REBALANCE_IN_PROGRESS, "X-SYNC-05")
    given: tuple[tuple[Partition, ...], bytes] | None = (without_epochs(found.assigned), first.metadata)
    answer: SyncGroupResponse | None
    try:
        data = write_assignment(without_epochs(found.assigned), first.metadata, turn.world.image)
        answer = SyncGroupResponse(
            ErrorCode.NONE, protocol_type=body.protocol_type, protocol_name=body.protocol_name, assignment=data
        )
        turn.rule("X-SYNC-06")
    except BadBytes:
        unread = turn.profile.fault_downgrade_reads_unread_metadata
        given, answer = None, None if unread else SyncGroupResponse(ErrorCode.UNKNOWN_SERVER_ERROR)
        turn.rule("X-SYNC-07")
    timers = ((Timer(SYNC, found.member_id), None), (Timer(SESSION, found.member_id), kept.session_timeout_ms))
    side.close(turn, Operation(request.id, body.group_id, body, 0, answer, callback=Timed(timers, given)), [])


def _heartbeat(side: Side, turn: Turn, request: Request, body: HeartbeatRequest) -> None:
    """Handle a Heartbeat (X-HB-01…05). Raises Refused."""
    found = member(turn.group, body.member_id, body.group_instance_id, "X-HB-01")
    kept = spoken(found, body.generation_id)
    turn.rule("X-HB-02")
    turn.armed[Timer(SESSION, found.member_id)] = kept.session_timeout_ms
    error = ErrorCode.NONE
    if lags(turn, found) or found.state == C_UNREVOKED or (found.state == C_UNRELEASED and _free(turn, found)):
        turn.rule("X-HB-03", "X-HB-04")
        arm_join(turn, side, found)
        error = ErrorCode.REBALANCE_IN_PROGRESS
    side.close(turn, Operation(request.id, body.group_id, body, 0, HeartbeatResponse(error)), [])


def lags(turn: Turn, found: Member) -> bool:
    """Return whether there is a target that the member has not been reconciled with (X-SYNC-05, X-HB-03)."""
    group, profile = turn.group, turn.profile
    if profile.old_classic_members_follow_group_epoch:
        return found.epoch < group.epoch
    if found.epoch < group.assignment_epoch:
        return True
    starves = profile.fault_classic_members_starve
    return not starves and group.assignment_epoch < group.epoch and may_compute(turn)


def _free(turn: Turn, found: Member) -> bool:
    held = holders(turn.group.members)
    own = set(without_epochs(found.assigned))
    missing = [each for each in turn.group.target_of(found.member_id) or () if each not in own]
    return not any(each in held for each in missing)


def arm_join(turn: Turn, side: Side, found: Member) -> None:
    """Set the member's join timer if it is not running (X-TMR-02)."""
    timer = Timer(JOIN, found.member_id)
    if (turn.group_id, found.member_id) not in side.around.joins:
        turn.armed[timer] = found.rebalance_timeout


def spoken(found: Member, generation: int) -> ClassicMemberMetadata:
    """Return the member's classic metadata (X-SYNC-02, 03). Raises Refused if it has none, or for another
    generation."""
    if found.classic is None:
        raise Refused(ErrorCode.UNKNOWN_MEMBER_ID, "X-SYNC-02")
    if generation != found.epoch:
        raise Refused(ErrorCode.ILLEGAL_GENERATION, "X-SYNC-03")
    return found.classic


def _leave(side: Side, request: Request, body: LeaveGroupRequest, group: ConsumerGroup) -> None:
    """Remove members of either protocol, with one bump for all of them (X-LEAVE-01…06)."""
    turn: Turn = side.turn(body.group_id, group)
    rows, leavers = [], {}
    for entry in body.members:
        error = ErrorCode.NONE
        try:
            found = leaver(group, entry)
            leavers[found.member_id] = found
        except Refused as refused:
            error = refused.error
        rows.append(
            LeaveGroupMemberResponse(entry.member_id, group_instance_id=entry.group_instance_id, error_code=error)
        )
    turn.rule("X-LEAVE-01", "X-LEAVE-03")
    if leavers:
        turn.rule("X-LEAVE-04")
        try:
            fence(turn, leavers.values())  # a member listed twice leaves once (X-LEAVE-06)
        except Refused as refused:
            turn.rule(refused.rule)
            side.work.replies.append((request.id, LeaveGroupResponse(refused.error)))
            return
    answer = leave_answer(request.version, tuple(rows))
    side.close(turn, Operation(request.id, body.group_id, body, 0, answer), [])


def leaver(group: ConsumerGroup, entry: LeaveGroupMember) -> Member:
    """Return the member that leaves; an instance id without a member id is enough (X-LEAVE-01, 02). Raises Refused."""
    instance = entry.group_instance_id
    if instance is not None and not entry.member_id:
        mapped = group.held_by(instance)
        return member(group, mapped or "", instance, "X-LEAVE-01")
    return member(group, entry.member_id, instance, "X-LEAVE-01")


def member(group: ConsumerGroup, member_id: str, instance: str | None, rule: str) -> Member:
    """Return the member that a classic request is about. Raises Refused."""
    mapped: str | None = member_id
    if instance is not None:
        mapped = group.held_by(instance)
    found = None if mapped is None else group.member(mapped)
    if found is None:
        raise Refused(ErrorCode.UNKNOWN_MEMBER_ID, rule)
    if mapped != member_id:
        raise Refused(ErrorCode.FENCED_INSTANCE_ID, rule)
    return found
