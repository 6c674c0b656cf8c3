"""SyncGroup (section 4)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import Request, TimerKey, TimerKind
from fencepost.protocol.messages import SyncGroupRequest, SyncGroupResponse
from fencepost.protocol.rebalances import RebalanceCause, RebalanceReason
from fencepost.protocol.view import GroupState
from fencepost.quirks import varies

from ..kernel import operations
from ..kernel.errors import InternalError, append_error
from ..kernel.persistent import without_element
from ..kernel.step import Step
from . import membership, rebalance, records
from .group import GroupCallback, GroupDraft, find_classic_group, find_incarnation, keep_group, keep_incarnation


@dataclass(frozen=True, slots=True)
class AssignmentSent(GroupCallback):
    """The leader's assignment (C-SYNC-17)."""

    generation: int
    member_id: str
    assignments: Mapping[str, bytes]

    def replicated(self, step: Step, request: Request) -> None:
        """Hand out the assignment, unless a later generation has begun: then it is ignored here, although it is in the
        log (C-SYNC-21, C-SYNC-23, F-SURV-05)."""
        group = find_incarnation(step, self.group_id, self.incarnation)
        if group is not None and self._is_current(group):
            rebalance.propagate_assignment(step, group, self.assignments)
            keep_incarnation(step, group)

    def failed(self, step: Step, request: Request | None, error: ErrorCode) -> None:
        """Answer the members, which join again, unless a later generation has begun (C-SYNC-22, C-SYNC-23)."""
        group = not_assigned(step, self.group_id, self.incarnation)
        if group is not None and self._is_current(group):
            cause = RebalanceCause(
                RebalanceReason.ASSIGNMENT_FAILED, membership.named(group, [self.member_id]), error=error
            )
            rebalance.propagate_error(step, group, append_error(error))
            rebalance.prepare(step, group, cause)
            keep_incarnation(step, group)

    def _is_current(self, group: GroupDraft) -> bool:
        return group.state is GroupState.COMPLETING_REBALANCE and group.generation == self.generation


@varies
def not_assigned(step: Step, group_id: str, incarnation: int) -> GroupDraft | None:
    """The group whose assignment is not in the log. It was created by an earlier record (C-JOIN-16), so it still
    exists."""
    return find_incarnation(step, group_id, incarnation)


def sync(step: Step, request: Request, body: SyncGroupRequest) -> None:
    """Park a member until the assignment is in the log, accept that of the leader, or return the current one
    (C-SYNC-05…19).

    Authorization and similar checks are done before.
    """
    group = find_classic_group(step, body.group_id)
    error = ErrorCode.UNKNOWN_MEMBER_ID if group is None else _invalid(group, body)
    if group is None or error is not None:
        step.reply(request.id, SyncGroupResponse(error or ErrorCode.UNKNOWN_MEMBER_ID))
        operations.done(step, request)
        return
    member_id = body.member_id
    member = group.members[member_id]
    sent = None
    if group.state is GroupState.COMPLETING_REBALANCE:
        group.put(member._replace(sync=request.id))  # C-SYNC-16; an earlier one is never answered (C-SYNC-19)
        _remove_pending_sync(step, group, member_id)
        if group.leader == member_id:
            try:
                sent = _send_assignment(step, group, body)
            except InternalError:
                keep_group(step, group)
                operations.broke(step, request)
                return
    else:
        _remove_pending_sync(step, group, member_id)
        step.reply(
            request.id,
            SyncGroupResponse(
                ErrorCode.NONE,
                protocol_type=group.protocol_type,
                protocol_name=group.protocol_name,
                assignment=member.assignment,
            ),
        )  # C-SYNC-18
    keep_group(step, group)
    operations.done(step, request, callback=sent)


def _invalid(group: GroupDraft, body: SyncGroupRequest) -> ErrorCode | None:
    """Why the member may not sync, None if it may (C-SYNC-05, C-SYNC-08…10, C-SYNC-15)."""
    if group.state is GroupState.EMPTY:
        return ErrorCode.UNKNOWN_MEMBER_ID
    error = membership.invalid(group, body.member_id, body.group_instance_id)
    if error is not None:
        return error
    if body.generation_id != group.generation:
        return ErrorCode.ILLEGAL_GENERATION
    if _differ(body.protocol_type, group.protocol_type) or _differ(body.protocol_name, group.protocol_name):
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    if group.state is GroupState.PREPARING_REBALANCE:
        return ErrorCode.REBALANCE_IN_PROGRESS
    return None


def _differ(asked: str | None, known: str | None) -> bool:
    return asked is not None and known is not None and asked != known


def _remove_pending_sync(step: Step, group: GroupDraft, member_id: str) -> None:
    """The member has synced; after the last one the sync timer is not needed any more (C-SYNC-16, C-SYNC-18)."""
    group.pending_sync = without_element(group.pending_sync, member_id)
    if not group.pending_sync:
        step.timers.cancel(TimerKey(TimerKind.SYNC, group.group_id))


def _send_assignment(step: Step, group: GroupDraft, body: SyncGroupRequest) -> AssignmentSent | None:
    """Write the leader's assignment to the log (C-SYNC-17). The last entry of an id counts (C-SYNC-32); assignments
    from a follower are ignored (C-SYNC-25). Returns the callback of the record, None if nothing is written."""
    if group.assignment_open and step.rules.one_assignment_at_a_time:
        return None  # that of an earlier SyncGroup is being appended (C-SYNC-19)
    assignments = {entry.member_id: entry.assignment for entry in body.assignments}
    step.log.records.append(records.group_record(group, assignments))  # F-ORD-03
    group.assignment_open = True
    return AssignmentSent(group.group_id, group.incarnation, group.generation, body.member_id, assignments)
