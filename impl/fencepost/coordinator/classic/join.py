"""JoinGroup (3.1–3.5)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import Request, TimerKey, TimerKind
from fencepost.protocol.messages import JoinGroupRequest, JoinGroupResponse
from fencepost.protocol.rebalances import RebalanceCause, RebalanceReason, identities
from fencepost.protocol.records import Record
from fencepost.protocol.view import GroupState

from ..kernel import operations
from ..kernel.errors import InternalError, append_error
from ..kernel.persistent import with_element, without_element
from ..kernel.replies import error_response
from ..kernel.state import Operation
from ..kernel.step import Step
from . import membership, rebalance, records, static
from .group import ClassicGroup, ClassicMember, GroupCallback, GroupDraft, find_classic_group, keep_group

#: From this version on a dynamic member must come back with the id that it got (C-JOIN-34).
MEMBER_ID_REQUIRED_SINCE = 4


@dataclass(frozen=True, slots=True)
class GroupCreated(GroupCallback):
    """The record of a new group (C-JOIN-16)."""

    def failed(self, step: Step, request: Request | None, error: ErrorCode) -> None:
        """Remove the group again, and answer the JoinGroup that created it."""
        assert request is not None
        step.reply(request.id, error_response(request, append_error(error)))

    def timed_out(self, step: Step, number: int, operation: Operation) -> None:
        """The first join of a new group waits for the join phase, not for the record (C-JOIN-16 fixed), so a timeout
        has no effect."""
        operations.close(step, number)


class Predecessor(NamedTuple):
    """The empty group of another kind that a new group replaces: the generation that the new group starts at, and the
    records that remove the other one (C-JOIN-10, F-ORD-16)."""

    generation: int
    removed: Sequence[Record]


#: No group is replaced (C-JOIN-12, C-ST-06).
NOBODY: Final = Predecessor(0, ())


def join(step: Step, request: Request, body: JoinGroupRequest, before: Predecessor = NOBODY) -> None:
    """A JoinGroup to a classic group, or to a new one, which it creates (C-JOIN-10…16).

    Authorization and similar checks are done before. ``before``: the group that a new group replaces.
    """
    group = find_classic_group(step, body.group_id)
    created = group is None
    if group is None:
        if body.member_id:
            step.reply(request.id, _refuse(ErrorCode.UNKNOWN_MEMBER_ID, body.member_id))  # C-JOIN-11
            operations.done(step, request)
            return
        group = _create(step, body.group_id, before.generation)
    try:
        replaced = _admit(step, request, body, group)
    except InternalError:
        step.log.records.clear()
        keep_group(step, group)
        operations.broke(step, request)
        return
    keep_group(step, group)
    if created:
        step.log.records += before.removed
        step.log.records.append(records.created_record(group, before.generation))  # F-ORD-01
        operations.done(step, request, callback=GroupCreated(group.group_id, group.incarnation))
    else:
        operations.done(step, request, callback=replaced)


def _create(step: Step, group_id: str, generation: int) -> GroupDraft:
    """A new group without members and without a record yet (C-JOIN-12, C-JOIN-16)."""
    fresh = ClassicGroup(group_id, step.memory.new_incarnation(), timestamp=step.at_ms, generation=generation)
    step.change_map(group_id, fresh)
    if step.rules.group_timers_cancelled:  # those of a classic group that became a consumer group (C-TMR-12, X-UP-16)
        for kind in (TimerKind.JOIN, TimerKind.SYNC):
            step.timers.cancel(TimerKey(kind, group_id))
    return GroupDraft(fresh)


def _admit(step: Step, request: Request, body: JoinGroupRequest, group: GroupDraft) -> static.MemberReplaced | None:
    """Check capacity, then protocols, then identity (C-JOIN-74). ``reason`` has no effect (C-JOIN-67). Returns the
    callback of a record that was written."""
    member_id = body.member_id
    if not _accepted(step, group, body):
        _remove_rejected(step, group, known_as(step, group, body))
        step.reply(request.id, _refuse(ErrorCode.GROUP_MAX_SIZE_REACHED, ""))  # C-JOIN-13
        if step.rules.rejection_may_complete:  # the phase may have waited only for this member (C-JOIN-23)
            rebalance.maybe_complete(step, group)
    elif not membership.supported(step, group, body.protocol_type, body.protocols):
        step.reply(request.id, _refuse(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, member_id))  # C-JOIN-31, C-JOIN-38b
    elif not member_id:
        return _join_new(step, request, body, group)
    elif member_id in group.pending_join:
        if body.group_instance_id is not None:
            raise InternalError  # C-JOIN-38c
        _add(step, request, body, group, member_id)  # C-JOIN-38d
    else:
        _rejoin(step, request, body, group)
    return None


def _accepted(step: Step, group: GroupDraft, body: JoinGroupRequest) -> bool:
    """Whether the group has room: in its join phase only joined members count, otherwise all (C-JOIN-20…22)."""
    if group.state is GroupState.EMPTY:
        return True
    member = group.members.get(known_as(step, group, body))
    if group.state is GroupState.PREPARING_REBALANCE:
        return (member is not None and member.join is not None) or group.awaiting < step.settings.group_max_size
    return member is not None or len(group.members) < step.settings.group_max_size


def known_as(step: Step, group: GroupDraft, body: JoinGroupRequest) -> str:
    """The member that already has a place, or will lose it; a static one is known by its instance id (C-JOIN-75)."""
    if step.rules.static_members_keep_place and not body.member_id and body.group_instance_id:
        return group.static_members.get(body.group_instance_id, "")
    return body.member_id


def _remove_rejected(step: Step, group: GroupDraft, member_id: str) -> None:
    """Remove a refused member or pending id; its session timer continues to run (C-JOIN-23)."""
    membership.remove(step, group, member_id)


def _join_new(step: Step, request: Request, body: JoinGroupRequest, group: GroupDraft) -> static.MemberReplaced | None:
    """A JoinGroup without a member id: from a static member that returns, or from a new member, which gets an id and
    may have to come back with it (C-JOIN-32…36)."""
    instance_id = body.group_instance_id
    member_id = step.choices.member_id(request.client_id if instance_id is None else instance_id)  # G-WIRE-28
    if instance_id is not None:
        old_id = group.static_members.get(instance_id)
        if old_id is not None:
            return static.replace(step, request, body, group, old_id=old_id, new_id=member_id)  # C-JOIN-32
        _add(step, request, body, group, member_id)  # C-JOIN-33, C-STATIC-01
    elif request.version >= MEMBER_ID_REQUIRED_SINCE:
        group.pending_join = with_element(group.pending_join, member_id)  # C-JOIN-34
        step.timers.set(TimerKey(TimerKind.SESSION, group.group_id, member_id), body.session_timeout_ms)  # C-TMR-05
        step.reply(request.id, _refuse(ErrorCode.MEMBER_ID_REQUIRED, member_id))
    else:
        _add(step, request, body, group, member_id)  # C-JOIN-35
    return None


def _add(step: Step, request: Request, body: JoinGroupRequest, group: GroupDraft, member_id: str) -> None:
    """Add a new member to the group, parked until the end of the join phase (C-JOIN-40)."""
    if group.state is GroupState.PREPARING_REBALANCE and group.previous_state is GroupState.EMPTY:
        group.new_member_added = True
    if not group.members:
        group.protocol_type = body.protocol_type
    if group.leader is None:
        group.leader = member_id
    if body.group_instance_id is not None:
        group.map_instance(body.group_instance_id, member_id)
    member = ClassicMember(
        member_id,
        body.group_instance_id,
        request.client_id,
        request.client_host,
        membership.rebalance_timeout(request, body),
        body.session_timeout_ms,
        body.protocols,
        is_new=True,
        join=request.id,
    )
    group.put(member)
    group.pending_join = without_element(group.pending_join, member_id)
    key = TimerKey(TimerKind.SESSION, group.group_id, member_id)
    step.timers.set(key, step.settings.new_member_join_timeout_ms)  # C-TMR-03
    rebalance.prepare_or_complete(step, group, _cause(RebalanceReason.MEMBER_JOINED, member, body))


def _rejoin(step: Step, request: Request, body: JoinGroupRequest, group: GroupDraft) -> None:
    """A member with an id joins again: it gets the current generation, or begins a rebalance (C-JOIN-38e…38h,
    C-JOIN-50…56). This also applies to a static member with its own id (C-STATIC-12)."""
    error = membership.invalid(group, body.member_id, body.group_instance_id)
    if error is not None:
        step.reply(request.id, JoinGroupResponse(error, protocol_name=None, member_id=body.member_id))  # C-JOIN-77
        return
    member = group.members[body.member_id]
    state = group.state
    same = member.protocols == body.protocols  # C-JOIN-61
    if (state is GroupState.COMPLETING_REBALANCE and same) or (
        state is GroupState.STABLE and same and group.leader != body.member_id
    ):
        # C-JOIN-51, C-JOIN-55; the member does not change (C-JOIN-58, C-JOIN-73, C-SYNC-34)
        step.reply(request.id, membership.current_generation(group, body.member_id))
        return
    membership.update(group, member, request, body)  # C-JOIN-50, C-JOIN-52…54, C-JOIN-59
    reason = RebalanceReason.LEADER_REJOINED if same else RebalanceReason.MEMBER_UPDATED
    rebalance.prepare_or_complete(step, group, _cause(reason, member, body))


def _cause(reason: RebalanceReason, member: ClassicMember, body: JoinGroupRequest) -> RebalanceCause:
    return RebalanceCause(reason, identities([member]), client_reason=body.reason or "")


def _refuse(error: ErrorCode, member_id: str) -> JoinGroupResponse:
    return JoinGroupResponse(error, member_id=member_id)
