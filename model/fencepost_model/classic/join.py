"""JoinGroup to a classic group (rule book, 3.1–3.6)."""

from __future__ import annotations

from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages import JoinGroupRequest, JoinGroupResponse

from ..machines import COMPLETING, DEAD, EMPTY, PREPARING, STABLE
from .draft import Draft, InternalError
from .rebalance import maybe_complete_join_phase, prepare_rebalance_or_complete_join
from .state import Arrive, Member, Replaced, Timer
from .static import replace_static_member
from .validate import member_error


def join(d: Draft, request: Arrive, body: JoinGroupRequest) -> None:
    """Handle a JoinGroup of an existing group (C-JOIN-13, 14).

    The order of the checks is capacity, protocols, identity (C-JOIN-74). The request's reason has no effect
    (C-JOIN-67), and there is no deadline except the group's timers (C-JOIN-68).
    """
    if not accepts_joining_member(d, body):
        d.rule("C-JOIN-13", "C-JOIN-23")
        d.remove(joining_member_id(d, body))  # member or pending id; its timers stay
        answer_error(d, request, ErrorCode.GROUP_MAX_SIZE_REACHED, "")
        if d.variant.classic.refusal_may_end_join_phase:
            maybe_complete_join_phase(d)
    elif body.member_id:
        join_existing_member(d, request, body)
    else:
        join_new_member(d, request, body)


def answer_error(d: Draft, request: Arrive, error: ErrorCode, member_id: str, *, named: bool = True) -> None:
    """Answer with an error. The protocol name is null after the identity checks, else empty (C-JOIN-77)."""
    d.reply(
        request.id,
        JoinGroupResponse(error_code=error, member_id=member_id, protocol_name="" if named else None),
    )


def accepts_joining_member(d: Draft, body: JoinGroupRequest) -> bool:
    """Return whether the group has room for the request (C-JOIN-20…22)."""
    if d.state in (EMPTY, DEAD):
        return True
    limit = d.settings.group_max_size
    member = d.members.get(joining_member_id(d, body))
    if d.state == PREPARING:
        d.rule("C-JOIN-21")
        return (member is not None and member.join is not None) or d.awaiting() < limit
    d.rule("C-JOIN-22")
    return member is not None or len(d.members) < limit


def joining_member_id(d: Draft, body: JoinGroupRequest) -> str:
    """Return the member id for the capacity check. A returning static member counts as itself (C-JOIN-75)."""
    returns = not body.member_id and d.variant.classic.returning_static_has_place
    if body.group_instance_id is not None and returns:
        d.rule("C-JOIN-75")
        return d.static_member_id(body.group_instance_id) or ""
    return body.member_id


def supports_protocols(d: Draft, body: JoinGroupRequest) -> bool:
    """Return whether the group supports the protocols of the request (C-JOIN-60)."""
    names = {protocol.name for protocol in body.protocols}
    if d.variant.classic.refuses_repeated_protocol and len(names) < len(body.protocols):
        d.rule("C-JOIN-72")
        return False
    if d.state == EMPTY:
        return bool(body.protocol_type) and bool(names)
    size = len(d.members)
    return d.protocol_type == body.protocol_type and any(d.support(name) == size for name in names)


def join_new_member(d: Draft, request: Arrive, body: JoinGroupRequest) -> None:
    """Handle a join without member id (C-JOIN-30…35). Each such request makes a new id (C-JOIN-36)."""
    instance = body.group_instance_id
    if d.state == DEAD:
        d.rule("C-JOIN-30")
        answer_error(d, request, ErrorCode.COORDINATOR_NOT_AVAILABLE, "")
    elif not supports_protocols(d, body):
        d.rule("C-JOIN-31", "C-JOIN-60")
        answer_error(d, request, ErrorCode.INCONSISTENT_GROUP_PROTOCOL, "")
    elif instance is not None:
        old = d.static_member_id(instance)
        if old is None:
            d.rule("C-JOIN-33", "C-STATIC-01")
            add_member(d, request, body, request.new_id)
        else:
            d.rule("C-JOIN-32")
            replace_static_member(d, request, body, instance, old)
    elif request.version >= 4:
        d.rule("C-JOIN-34")
        d.pending_join |= {request.new_id}
        d.arm(Timer("session", request.new_id), body.session_timeout_ms)  # C-TMR-05
        answer_error(d, request, ErrorCode.MEMBER_ID_REQUIRED, request.new_id)
    else:
        d.rule("C-JOIN-35")
        add_member(d, request, body, request.new_id)


def join_existing_member(d: Draft, request: Arrive, body: JoinGroupRequest) -> None:
    """Handle a join with a member id, which a static member may send too (C-JOIN-38a…h, C-STATIC-12, 13)."""
    member_id = body.member_id
    if d.state == DEAD:
        d.rule("C-JOIN-38a")
        answer_error(d, request, ErrorCode.COORDINATOR_NOT_AVAILABLE, member_id)
        return
    if not supports_protocols(d, body):
        d.rule("C-JOIN-38b", "C-JOIN-60")
        answer_error(d, request, ErrorCode.INCONSISTENT_GROUP_PROTOCOL, member_id)
        return
    if member_id in d.pending_join:
        if body.group_instance_id is not None:
            d.rule("C-JOIN-38c")
            raise InternalError("a pending member id with an instance id")
        d.rule("C-JOIN-38d")
        add_member(d, request, body, member_id)
        return
    error = member_error(d, member_id, body.group_instance_id)
    if error is not None:
        d.rule("C-JOIN-38e", "C-JOIN-38f", "C-JOIN-38g")
        answer_error(d, request, error, member_id, named=False)
        return
    member = d.members[member_id]  # C-JOIN-38h
    same = member.protocols == body.protocols  # C-JOIN-61
    if d.state == PREPARING:
        d.rule("C-JOIN-50")
        update_member(d, request, body, member)
        prepare_rebalance_or_complete_join(d, "")
    elif d.state == COMPLETING:
        if same:
            d.rule("C-JOIN-51")  # no timer, and not added to pending-sync again (C-JOIN-57, 58, C-SYNC-34)
            d.reply(request.id, d.joined(member_id, d.member_rows() if member_id == d.leader else ()))
        else:
            d.rule("C-JOIN-52")
            update_member(d, request, body, member)
            prepare_rebalance_or_complete_join(d, "protocols_changed")
    elif d.state == STABLE:
        if member_id == d.leader:
            d.rule("C-JOIN-53")
            update_member(d, request, body, member)
            prepare_rebalance_or_complete_join(d, "leader_rejoined")
        elif not same:
            d.rule("C-JOIN-54")
            update_member(d, request, body, member)
            prepare_rebalance_or_complete_join(d, "protocols_changed")
        else:
            d.rule("C-JOIN-55")
            d.reply(request.id, d.joined(member_id, ()))
    else:
        d.rule("C-JOIN-56")
        answer_error(d, request, ErrorCode.UNKNOWN_MEMBER_ID, member_id)


def update_member(d: Draft, request: Arrive, body: JoinGroupRequest, member: Member) -> None:
    """Park a rejoin (C-JOIN-73). An earlier parked join is overwritten and never answered (C-JOIN-59)."""
    d.put(
        member._replace(
            protocols=body.protocols,
            rebalance_timeout=body.rebalance_timeout_ms,
            session_timeout=body.session_timeout_ms,
            join=request.id,
        )
    )
    for at, operation in enumerate(d.operations):
        callback = operation.callback
        if isinstance(callback, Replaced) and callback.new_id == member.member_id and not callback.detached:
            d.operations[at] = operation._replace(callback=callback._replace(new_protocols=body.protocols))


def is_initial_delay(d: Draft) -> bool:
    """Return whether the rebalance waits for the first members of an empty group (C-JOIN-43)."""
    return d.previous == EMPTY


def add_member(d: Draft, request: Arrive, body: JoinGroupRequest, member_id: str) -> None:
    """Add a member, then rebalance or complete the join phase (C-JOIN-40)."""
    d.rule("C-JOIN-40")
    if d.state == PREPARING and d.variant.classic.is_initial_delay(d):
        d.new_member_added = True
    if not d.members:
        d.protocol_type = body.protocol_type
    if d.leader is None:
        d.leader = member_id
    d.put(
        Member(
            member_id,
            body.group_instance_id,
            request.client_id,
            request.client_host,
            body.rebalance_timeout_ms,
            body.session_timeout_ms,
            body.protocols,
            is_new=True,
            join=request.id,
        )
    )
    d.pending_join -= {member_id}
    d.arm(Timer("session", member_id), d.settings.new_member_join_timeout_ms)  # C-TMR-03
    prepare_rebalance_or_complete_join(d, "member_added")
