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
from ..consumer.group_step import GroupStep
from ..consumer.heartbeat import may_compute_target
from ..consumer.leave import fence_members
from ..consumer.refusal import Refused
from ..consumer.rows import without_epochs
from ..consumer.state import JOIN, SESSION, SYNC, ConsumerGroup, Member, Partition, Timer
from ..consumer.work import ConsumerGroups
from ..embedded import BadBytes
from ..machines import C_UNRELEASED, C_UNREVOKED
from .embedded import write_assignment
from .join import join


def handle(groups: ConsumerGroups, request: Request, new_id: str) -> bool:
    """Handle the request if it is a classic one about a consumer group with members. Returns whether it did."""
    body = request.body
    if not isinstance(body, JoinGroupRequest | SyncGroupRequest | HeartbeatRequest | LeaveGroupRequest):
        return False
    group = groups.work.consumer_group(body.group_id)
    if group is None or (not group.members and not isinstance(body, LeaveGroupRequest)):
        return False
    if isinstance(body, LeaveGroupRequest):
        _leave(groups, request, body, group)
        return True
    step = groups.begin_step(body.group_id, group)
    try:
        if isinstance(body, JoinGroupRequest):
            _join(groups, step, request, body, new_id)
        elif isinstance(body, SyncGroupRequest):
            _sync(groups, step, request, body)
        else:
            _heartbeat(groups, step, request, body)
    except Refused as refused:
        step.rule(refused.rule)
        if isinstance(body, JoinGroupRequest):
            step.armed.clear()
            step.records.clear()
            groups.keep_soft_state(step)
            answer: JoinGroupResponse | SyncGroupResponse | HeartbeatResponse = JoinGroupResponse(refused.error)
        elif isinstance(body, SyncGroupRequest):
            answer = SyncGroupResponse(refused.error)
        else:
            answer = HeartbeatResponse(refused.error)
        groups.set_timers(step)
        groups.work.replies.append((request.id, answer))
    return True


def _join(groups: ConsumerGroups, step: GroupStep, request: Request, body: JoinGroupRequest, new_id: str) -> None:
    if request.version == 0:  # D-30
        body = replace(body, rebalance_timeout_ms=body.session_timeout_ms)
    joined = join(step, request, body, new_id)
    operation = Operation(request.id, body.group_id, body, 0, joined.body, callback=Timed(tuple(joined.timers.items())))
    if joined.body.error_code is not ErrorCode.NONE:
        groups.work.replies.append((request.id, joined.body))  # X-JOIN-05
        operation = Operation(request.id, body.group_id, body, 0, answered=True)
    step.rebalances = joined.rebalances
    if joined.rebalances and step.variant.mixed.downgrade_keeps_bump:
        step.rule("X-DOWN-23")
        step.parked_member = joined.body.member_id
    groups.submit_step(step, operation, [])


def _sync(groups: ConsumerGroups, step: GroupStep, request: Request, body: SyncGroupRequest) -> None:
    """Handle a SyncGroup (X-SYNC-01…07). Raises Refused."""
    found = find_member(step.group, body.member_id, body.group_instance_id, "X-SYNC-01")
    kept = validate_generation(found, body.generation_id)
    first = kept.supported_protocols[0]
    if body.protocol_type not in (None, CONSUMER) or body.protocol_name not in (None, first.name):
        raise Refused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, "X-SYNC-04")
    if found.state != C_UNREVOKED and step.variant.mixed.is_behind(step, found):
        arm_join_timer(step, groups, found)
        raise Refused(ErrorCode.REBALANCE_IN_PROGRESS, "X-SYNC-05")
    given: tuple[tuple[Partition, ...], bytes] | None = (without_epochs(found.assigned), first.metadata)
    answer: SyncGroupResponse | None
    try:
        data = write_assignment(without_epochs(found.assigned), first.metadata, step.environment.image)
        answer = SyncGroupResponse(
            ErrorCode.NONE, protocol_type=body.protocol_type, protocol_name=body.protocol_name, assignment=data
        )
        step.rule("X-SYNC-06")
    except BadBytes:
        may_be_read = step.variant.mixed.checks_all_metadata
        given, answer = None, SyncGroupResponse(ErrorCode.UNKNOWN_SERVER_ERROR) if may_be_read else None
        step.rule("X-SYNC-07")
    timers = ((Timer(SYNC, found.member_id), None), (Timer(SESSION, found.member_id), kept.session_timeout_ms))
    groups.submit_step(step, Operation(request.id, body.group_id, body, 0, answer, callback=Timed(timers, given)), [])


def _heartbeat(groups: ConsumerGroups, step: GroupStep, request: Request, body: HeartbeatRequest) -> None:
    """Handle a Heartbeat (X-HB-01…05). Raises Refused."""
    found = find_member(step.group, body.member_id, body.group_instance_id, "X-HB-01")
    kept = validate_generation(found, body.generation_id)
    step.rule("X-HB-02")
    step.armed[Timer(SESSION, found.member_id)] = kept.session_timeout_ms
    error = ErrorCode.NONE
    if (
        step.variant.mixed.is_behind(step, found)
        or found.state == C_UNREVOKED
        or (found.state == C_UNRELEASED and _target_is_free(step, found))
    ):
        step.rule("X-HB-03", "X-HB-04")
        arm_join_timer(step, groups, found)
        error = ErrorCode.REBALANCE_IN_PROGRESS
    groups.submit_step(step, Operation(request.id, body.group_id, body, 0, HeartbeatResponse(error)), [])


def is_behind(step: GroupStep, found: Member) -> bool:
    """Return whether there is a target that the member has not been reconciled with (X-SYNC-05, X-HB-03)."""
    group = step.group
    return found.epoch < group.assignment_epoch or (
        group.assignment_epoch < group.epoch and may_compute_target(step)  # the next JoinGroup computes one
    )


def _target_is_free(step: GroupStep, found: Member) -> bool:
    held = holders(step.group.members)
    own = set(without_epochs(found.assigned))
    missing = [each for each in step.group.target_of(found.member_id) or () if each not in own]
    return not any(each in held for each in missing)


def arm_join_timer(step: GroupStep, groups: ConsumerGroups, found: Member) -> None:
    """Set the member's join timer if it is not running (X-TMR-02)."""
    timer = Timer(JOIN, found.member_id)
    if (step.group_id, found.member_id) not in groups.state.join_timers:
        step.armed[timer] = found.rebalance_timeout


def validate_generation(found: Member, generation: int) -> ClassicMemberMetadata:
    """Return the member's classic metadata (X-SYNC-02, 03). Raises Refused if it has none, or for another
    generation."""
    if found.classic is None:
        raise Refused(ErrorCode.UNKNOWN_MEMBER_ID, "X-SYNC-02")
    if generation != found.epoch:
        raise Refused(ErrorCode.ILLEGAL_GENERATION, "X-SYNC-03")
    return found.classic


def _leave(groups: ConsumerGroups, request: Request, body: LeaveGroupRequest, group: ConsumerGroup) -> None:
    """Remove members of either protocol, with one bump for all of them (X-LEAVE-01…06)."""
    step: GroupStep = groups.begin_step(body.group_id, group)
    rows, leavers = [], {}
    for entry in body.members:
        error = ErrorCode.NONE
        try:
            found = find_leaving_member(group, entry)
            leavers[found.member_id] = found
        except Refused as refused:
            error = refused.error
        rows.append(
            LeaveGroupMemberResponse(entry.member_id, group_instance_id=entry.group_instance_id, error_code=error)
        )
    step.rule("X-LEAVE-01", "X-LEAVE-03")
    if leavers:
        step.rule("X-LEAVE-04")
        try:
            fence_members(step, leavers.values())  # a member listed twice leaves once (X-LEAVE-06)
        except Refused as refused:
            step.rule(refused.rule)
            groups.work.replies.append((request.id, LeaveGroupResponse(refused.error)))
            return
    answer = leave_answer(request.version, tuple(rows))
    groups.submit_step(step, Operation(request.id, body.group_id, body, 0, answer), [])


def find_leaving_member(group: ConsumerGroup, entry: LeaveGroupMember) -> Member:
    """Return the member that leaves; an instance id without a member id is enough (X-LEAVE-01, 02). Raises Refused."""
    instance = entry.group_instance_id
    if instance is not None and not entry.member_id:
        mapped = group.held_by(instance)
        return find_member(group, mapped or "", instance, "X-LEAVE-01")
    return find_member(group, entry.member_id, instance, "X-LEAVE-01")


def find_member(group: ConsumerGroup, member_id: str, instance: str | None, rule: str) -> Member:
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
