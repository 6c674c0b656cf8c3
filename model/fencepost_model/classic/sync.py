"""SyncGroup to a classic group (rule book, 4)."""

from __future__ import annotations

from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages import SyncGroupRequest, SyncGroupResponse

from ..machines import COMPLETING, DEAD, EMPTY, PREPARING, STABLE
from .draft import Draft
from .errors import of_metadata_append
from .rebalance import prepare_rebalance, propagate_assignment
from .state import SYNC_TIMER, Arrive, Assigned, Timer
from .validate import member_error


def sync(d: Draft, request: Arrive, body: SyncGroupRequest) -> None:
    """Handle a SyncGroup: refuse, park, store or answer (C-SYNC-05…19)."""
    error = validate_sync_group(d, body)
    if error is not None:
        d.reply(request.id, SyncGroupResponse(error_code=error))
    elif d.state == PREPARING:
        d.rule("C-SYNC-15")
        d.reply(request.id, SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS))
    elif d.state == COMPLETING:
        d.rule("C-SYNC-16")
        d.put(d.members[body.member_id]._replace(sync=request.id))  # an earlier one is never answered (C-SYNC-19)
        remove_pending_sync(d, body.member_id)
        if body.member_id == d.leader:
            append_assignment(d, body)
    else:
        d.variant.classic.answer_stable_sync(d, request, body)


def answer_stable_sync(d: Draft, request: Arrive, body: SyncGroupRequest) -> None:
    """Return the stored assignment (C-SYNC-18)."""
    d.rule("C-SYNC-18")
    remove_pending_sync(d, body.member_id)
    d.reply(
        request.id,
        SyncGroupResponse(
            error_code=ErrorCode.NONE,
            protocol_type=d.protocol_type,
            protocol_name=d.protocol_name,
            assignment=d.members[body.member_id].assignment,
        ),
    )


def validate_sync_group(d: Draft, body: SyncGroupRequest) -> ErrorCode | None:
    """Return the error that refuses a SyncGroup, or None (C-SYNC-05 for an empty group, 07…10)."""
    if d.state == EMPTY:
        d.rule("C-SYNC-05")
        return ErrorCode.UNKNOWN_MEMBER_ID
    if d.state == DEAD:
        d.rule("C-SYNC-07")
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    error = member_error(d, body.member_id, body.group_instance_id)
    if error is not None:
        d.rule("C-SYNC-08")
        return error
    if body.generation_id != d.generation:
        d.rule("C-SYNC-09")
        return ErrorCode.ILLEGAL_GENERATION
    return ErrorCode.INCONSISTENT_GROUP_PROTOCOL if d.variant.classic.has_other_protocol(d, body) else None


def has_other_protocol(d: Draft, body: SyncGroupRequest) -> bool:
    """Return whether the request names another protocol or type than the group (C-SYNC-10)."""
    found = _differs(body.protocol_type, d.protocol_type) or _differs(body.protocol_name, d.protocol_name)
    if found:
        d.rule("C-SYNC-10")
    return found


def _differs(asked: str | None, known: str | None) -> bool:
    return asked is not None and known is not None and asked != known


def remove_pending_sync(d: Draft, member_id: str) -> None:
    """Note that the member has synced; with the last one the sync timer is cancelled (C-SYNC-16, 18)."""
    d.pending_sync -= {member_id}
    if not d.pending_sync:
        d.cancel(SYNC_TIMER)


def append_assignment(d: Draft, body: SyncGroupRequest) -> None:
    """Append one record with an assignment for every member (C-SYNC-17, F-ORD-03). Only the leader's assignments count
    (C-SYNC-25).

    The record is not applied here: the callback changes memory (C-SYNC-31).
    """
    if d.variant.classic.one_assignment_at_a_time and any(
        isinstance(operation.callback, Assigned)
        and operation.group_id == d.group_id
        and operation.superseded_by is None
        and operation.callback.generation == d.generation
        for operation in d.operations
    ):
        d.rule("C-SYNC-19")
        return
    d.rule("C-SYNC-17")
    given = {assignment.member_id: assignment.assignment for assignment in body.assignments}  # C-SYNC-32
    assignments = {member_id: given.get(member_id, b"") for member_id in d.members}
    d.records.append(d.record(assignments))
    d.callback = Assigned(body.generation_id, tuple(sorted(assignments.items())))


def complete_assignment(d: Draft, callback: Assigned) -> None:
    """Act on a durable assignment: answer the members (C-SYNC-21), or ignore it (C-SYNC-23)."""
    if d.state != COMPLETING or d.generation != callback.generation:
        d.rule("C-SYNC-23")
        return
    d.rule("C-SYNC-21")
    propagate_assignment(d, dict(callback.assignments), ErrorCode.NONE)
    d.transition("assignment_stored")


def fail_assignment(d: Draft, callback: Assigned, error: ErrorCode) -> None:
    """Act on an assignment that was not stored: fail the parked syncs (C-SYNC-22), or ignore it (C-SYNC-23)."""
    if d.state != COMPLETING or d.generation != callback.generation:
        d.rule("C-SYNC-23")
        return
    d.rule("C-SYNC-22")
    propagate_assignment(d, {}, of_metadata_append(error))
    prepare_rebalance(d, "assignment_not_stored")


def expire_sync_timer(d: Draft) -> None:
    """Expire the sync timer: remove the members that have not synced, a failed leader among them (C-SYNC-20, 26)."""
    if d.state not in (COMPLETING, STABLE) or not d.pending_sync:
        d.rule("C-SYNC-20b")
        return
    d.rule("C-SYNC-20")
    for member_id in sorted(overdue_members(d)):
        d.remove(member_id)
        d.cancel(Timer("session", member_id))
    prepare_rebalance(d, "sync_expired")


def overdue_members(d: Draft) -> frozenset[str]:
    """Return the pending syncs that count as late.

    A member that returned in Stable waits for its record, and the pending entry moved to it (C-STATIC-16 fixed). It is
    not late, as in C-TMR-07: its parked join counts for the rebalance that follows.
    """
    return d.pending_sync - {member.member_id for member in d.members.values() if member.join is not None}
