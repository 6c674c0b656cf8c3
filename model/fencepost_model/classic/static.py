"""A static member returns without its member id (rule book, 3.6)."""

from __future__ import annotations

from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages import JoinGroupRequest, JoinGroupResponse, SyncGroupResponse

from ..machines import COMPLETING, STABLE
from .draft import Draft, InternalError
from .errors import of_metadata_append
from .rebalance import maybe_complete_join_phase, prepare_rebalance, prepare_rebalance_or_complete_join
from .state import Arrive, Member, Replaced, Timer


def replace_static_member(d: Draft, request: Arrive, body: JoinGroupRequest, instance: str, old_id: str) -> None:
    """Replace the old id by a fresh one (C-STATIC-02), then act by state (C-STATIC-03…11).

    The member is not new and does not count as an addition to an initial delay (C-STATIC-20).
    """
    d.rule("C-STATIC-02")
    old_leader = d.leader
    old = replace_member_id(d, old_id, request.new_id)
    d.arm(Timer("session", old.member_id), old.session_timeout)
    move_pending_sync(d, old_id, request.new_id)
    d.put(
        old._replace(
            protocols=body.protocols,
            rebalance_timeout=body.rebalance_timeout_ms,
            session_timeout=body.session_timeout_ms,
            join=request.id,
        )
    )
    if d.state == STABLE:
        if d.select_protocol() != (d.protocol_name or ""):
            d.rule("C-STATIC-08")
            prepare_rebalance_or_complete_join(d, "static_member_replaced")
            return
        d.rule("C-STATIC-03")
        d.records.append(d.record(None))  # F-ORD-05; client id and host of the first incarnation (C-STATIC-21)
        d.callback = Replaced(
            instance=instance,
            old_id=old_id,
            new_id=request.new_id,
            old_leader=old_leader,
            old_protocols=old.protocols,
            new_protocols=body.protocols,
            old_rebalance_timeout=old.rebalance_timeout,
            old_session_timeout=old.session_timeout,
            skips_assignment=request.version >= 9,
        )
    elif d.state == COMPLETING:
        d.rule("C-STATIC-09")
        prepare_rebalance(d, "static_member_replaced")
    else:
        d.rule("C-STATIC-10")
        maybe_complete_join_phase(d)


def replace_member_id(d: Draft, old_id: str, new_id: str) -> Member:
    """Answer the old id's parked requests and put the new id in its place, as ``CG.replaceStaticMember``."""
    old = d.members.get(old_id)
    if old is None:
        raise InternalError("the member to replace is gone")
    d.answer_join(
        old,
        JoinGroupResponse(error_code=ErrorCode.FENCED_INSTANCE_ID, member_id=old_id, protocol_name=None),
    )
    d.answer_sync(old, SyncGroupResponse(error_code=ErrorCode.FENCED_INSTANCE_ID))
    del d.members[old_id]
    is_new = old.is_new and d.variant.classic.replaced_stays_new
    new = old._replace(member_id=new_id, is_new=is_new, join=None, sync=None)
    d.put(new)
    if d.leader == old_id:
        d.leader = new_id
    return new


def complete_replacement(d: Draft, callback: Replaced) -> None:
    """Answer the member when the record of C-STATIC-03 is durable (C-STATIC-04, 05, 17)."""
    member = d.members.get(callback.new_id)
    if member is None or member.join is None or callback.detached:
        return
    if callback.skips_assignment:
        d.rule("C-STATIC-04")
        leads = d.leader == callback.new_id
        try:
            rows = d.member_rows() if leads else ()
        except InternalError:
            d.rule("C-STATIC-17")  # (ii): the join stays parked
            return
        d.answer_join(member, d.joined(callback.new_id, rows, skip=leads))
    else:
        d.rule("C-STATIC-05")
        body = JoinGroupResponse(
            error_code=ErrorCode.NONE,
            generation_id=d.generation,
            protocol_type=d.protocol_type,
            protocol_name=d.protocol_name,
            leader=callback.old_leader or "",
            member_id=callback.new_id,
        )
        d.answer_join(member, body)


def move_pending_sync(d: Draft, old_id: str, new_id: str) -> None:
    """Let the sync phase wait for the new id instead of the old one (C-STATIC-16)."""
    if old_id in d.pending_sync and d.variant.classic.replacement_syncs:
        d.rule("C-STATIC-16")
        d.pending_sync = (d.pending_sync - {old_id}) | {new_id}


def undo_replacement(d: Draft, request: int | None, callback: Replaced, error: ErrorCode, *, lost: bool) -> None:
    """Undo a replacement whose record failed (C-STATIC-06, 18). ``request`` is None if it is answered already.

    ``lost``: the partition went (F-UNLOAD-01). The record may survive that, so memory that follows the log stays
    unchanged. The end of the group answers the request that the member waits for by now, in this round or a later one.
    """
    if lost and d.variant.classic.memory_follows_log:
        for each in list(d.members.values()):
            if request is not None and each.join == request:
                d.put(each._replace(join=None))
                _answer_failure(d, request, callback, error)
        return
    d.rule("C-STATIC-06")
    member = d.members.get(callback.new_id)
    d.variant.classic.restore_protocols(d, callback, member)
    if member is None:
        return
    d.arm_session(replace_member_id(d, callback.new_id, callback.old_id))
    for at, operation in enumerate(d.operations):
        other = operation.callback
        if isinstance(other, Replaced) and other.new_id == callback.old_id:
            d.operations[at] = operation._replace(callback=other._replace(detached=True))
    move_pending_sync(d, callback.new_id, callback.old_id)
    _answer_failure(d, request, callback, error)


def restore_protocols(d: Draft, callback: Replaced, member: Member | None) -> None:
    """Restore what the replacement has changed of the member, if that is still in the group (C-STATIC-06)."""
    if member is not None:
        d.put(
            member._replace(
                protocols=callback.old_protocols,
                rebalance_timeout=callback.old_rebalance_timeout,
                session_timeout=callback.old_session_timeout,
                join=None,
            )
        )


def _answer_failure(d: Draft, request: int | None, callback: Replaced, error: ErrorCode) -> None:
    d.reply(
        request,
        JoinGroupResponse(
            error_code=of_metadata_append(error),
            generation_id=d.generation,
            protocol_type=d.protocol_type,
            protocol_name=d.protocol_name,
            leader=callback.old_leader or "",
        ),
    )
