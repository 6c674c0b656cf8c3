"""Preparing and completing a rebalance (rule book, 3.5)."""

from __future__ import annotations

from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages import SyncGroupResponse

from ..machines import COMPLETING, EMPTY, PREPARING
from ..widths import next_epoch
from .draft import Draft, InternalError
from .state import JOIN_TIMER, SYNC_TIMER, Emptied, Timer
from .subscription import CONSUMER, outcomes

_BLANK = b""


def prepare_rebalance_or_complete_join(d: Draft, cause: str) -> None:
    """Prepare a rebalance in the states that allow it (C-JOIN-42), else complete the join phase if possible
    (C-JOIN-41)."""
    if d.state == PREPARING:
        maybe_complete_join_phase(d)
    else:
        prepare_rebalance(d, cause)


def maybe_complete_join_phase(d: Draft) -> None:
    """Complete the join phase if all members have joined (C-JOIN-41, C-ST-26). An initial rebalance never ends early
    this way (C-ST-20)."""
    if d.state == PREPARING and d.previous != EMPTY and d.all_joined():
        d.rule("C-JOIN-41")
        complete_join(d)


def prepare_rebalance(d: Draft, cause: str) -> None:
    """Prepare a rebalance (C-JOIN-42)."""
    d.rule("C-JOIN-42")
    initial = d.state == EMPTY
    if d.state == COMPLETING:
        propagate_assignment(d, {}, ErrorCode.REBALANCE_IN_PROGRESS)
    d.pending_sync = frozenset()
    d.cancel(SYNC_TIMER)
    if initial:
        start_delay(d)
    d.transition(cause)
    if initial:
        return
    if d.all_joined():
        complete_join(d)
    else:
        d.delay = None
        d.arm(JOIN_TIMER, d.rebalance_timeout())  # 0 without members (C-ST-26 b); pending ids wait too (C-JOIN-66)


def start_delay(d: Draft) -> None:
    """Start the first window of the initial delay, and note by how much it may be extended (C-JOIN-43, 65)."""
    d.rule("C-JOIN-43")
    length = d.settings.group_initial_rebalance_delay_ms
    d.delay = (length, max(d.rebalance_timeout() - length, 0))
    d.arm(JOIN_TIMER, length)


def expire_join_timer(d: Draft) -> None:
    """Expire the join timer (C-TMR-01): a window of the initial delay ends, or the join phase does."""
    delay = d.delay
    d.delay = None
    if delay is None:
        d.rule("C-TMR-01")
        complete_join(d)
        return
    length, remaining = delay
    d.rule("C-JOIN-43")
    if d.new_member_added and remaining != 0:
        d.new_member_added = False
        window = min(d.settings.group_initial_rebalance_delay_ms, remaining)
        d.delay = (window, max(remaining - length, 0))
        d.arm(JOIN_TIMER, window)
    else:
        complete_join(d)


def complete_join(d: Draft) -> None:
    """Complete the join phase (C-JOIN-44…48)."""
    d.rule("C-JOIN-44")
    d.cancel(JOIN_TIMER)
    for member in [m for m in d.members.values() if m.instance is None and m.join is None]:
        d.remove(member.member_id)
        d.cancel(Timer("session", member.member_id))
    if d.members and not maybe_elect_new_leader(d):
        d.rule("C-JOIN-46", "C-STATIC-14")  # only absent static members: wait for one of them, or for its expiry
        d.delay = None
        d.arm(JOIN_TIMER, d.rebalance_timeout())
        return
    d.generation = next_epoch(d.generation)  # C-ST-21; used up even if a later step fails (C-ST-27)
    if d.new_member_added and d.variant.classic.delay_ends_addition:
        d.rule("C-JOIN-71")
        d.new_member_added = False
    if not d.members:
        d.rule("C-JOIN-47")
        d.protocol_name = None
        d.read = ()
        d.transition("nobody_joined")
        d.pending_sync = frozenset()
        d.records.append(d.record({}))  # F-ORD-04
        d.callback = Emptied()
        return
    d.rule("C-JOIN-48", "C-JOIN-49")
    d.protocol_name = d.select_protocol()
    if d.protocol_type == CONSUMER:  # G-DATA-10, C-JOIN-72
        ends = outcomes(map(d.offered, d.members.values()), lengths_throw=d.variant.classic.throws_on_bad_length)
        if d.chooser.pick("subscriptions", ends) == "throws":
            raise InternalError("a subscription that cannot be read")
    d.read = tuple(map(d.offered, d.members.values()))
    d.transition("all_joined")
    rows = d.member_rows()
    for member in list(d.members.values()):
        leads = member.member_id == d.leader
        d.answer_join(member, d.joined(member.member_id, rows if leads else ()))
        d.put(d.members[member.member_id]._replace(is_new=False))
        d.arm_session(member)
    d.pending_sync = frozenset(d.members)
    d.arm(SYNC_TIMER, d.rebalance_timeout())  # C-TMR-02; nothing is written (F-ORD-02)


def maybe_elect_new_leader(d: Draft) -> bool:
    """Elect the leader: the current one if it joined, otherwise any member that joined (C-JOIN-45). Returns False if no
    member joined."""
    if d.leader is None:
        return False
    if d.members[d.leader].join is not None:
        return True
    joined = sorted(member.member_id for member in d.members.values() if member.join is not None)
    if not joined:
        return False
    d.rule("C-JOIN-45")
    d.leader = d.chooser.pick("leader", joined)
    return True


def propagate_assignment(d: Draft, assignments: dict[str, bytes], error: ErrorCode) -> None:
    """Store the assignments, empty for members not listed, and answer every parked SyncGroup (C-SYNC-21, 22, 24)."""
    ok = error is ErrorCode.NONE
    for member_id in sorted(d.members):
        member = d.members[member_id]._replace(assignment=assignments.get(member_id, _BLANK))
        d.put(member)
        body = SyncGroupResponse(
            error_code=error,
            protocol_type=d.protocol_type if ok else None,
            protocol_name=d.protocol_name if ok else None,
            assignment=member.assignment,
        )
        if d.answer_sync(member, body):
            d.arm_session(member)
