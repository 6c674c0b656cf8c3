"""The way of a group from one generation to the next (3.5).

A rebalance involves the whole group, whatever its members subscribe to (C-SCOPE-01), and has two halves. In the *join
phase* (Preparing) the group collects a JoinGroup from every member. It ends when all have joined, or when its timer
fires; then members that did not join are removed, except static ones. In the *sync phase* (Completing) the leader, one
of the members, sends an assignment for all. The group is Stable when the assignment is written to the log.

The difficult part is when the join phase may end. A group that leaves Empty is in an *initial* rebalance: it waits for
a fixed delay, whatever members have joined, so that a whole fleet that starts together needs one rebalance and not one
for each member. The delay is extended while new members keep coming (C-JOIN-43). Joins and leaves cannot shorten it
(C-ST-20), but the expiry of a session can (C-TMR-08). In every other rebalance the last JoinGroup, or the departure of
the last missing member, ends the phase at once.

Every handler ends in one of two functions: ``prepare`` starts a rebalance, ``maybe_complete`` checks whether the
current one is complete.
"""

from __future__ import annotations

from collections.abc import Mapping

from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import TimerKey, TimerKind
from fencepost.protocol.messages import SyncGroupResponse
from fencepost.protocol.rebalances import (
    GenerationBegan,
    GroupType,
    RebalanceCause,
    RebalanceEnded,
    RebalanceStarted,
    identities,
)
from fencepost.protocol.view import GroupState

from ..kernel.persistent import frozen_set
from ..kernel.state import next_epoch
from ..kernel.step import Step
from ..kernel.timers import InitialDelay
from . import membership, records
from .group import GroupDraft, schedule_classic_session_timeout

EMPTY, PREPARING, COMPLETING, STABLE = (
    GroupState.EMPTY,
    GroupState.PREPARING_REBALANCE,
    GroupState.COMPLETING_REBALANCE,
    GroupState.STABLE,
)


def prepare_or_complete(step: Step, group: GroupDraft, cause: RebalanceCause) -> None:
    """A member joined or changed: start a rebalance, or check whether the current one is complete (C-JOIN-40)."""
    if group.state is PREPARING:
        maybe_complete(step, group)
    else:
        prepare(step, group, cause)


def maybe_complete(step: Step, group: GroupDraft) -> None:
    """End the join phase if all members have joined, unless it is an initial one, which waits (C-JOIN-41)."""
    if group.state is PREPARING and group.previous_state is not EMPTY and group.all_joined:
        complete(step, group)


def prepare(step: Step, group: GroupDraft, cause: RebalanceCause, *, converted: bool = False) -> None:
    """Begin a rebalance: assignments become void, and the join phase waits for all members (C-JOIN-42). ``converted``:
    the group was a consumer group until now."""
    if group.state is COMPLETING:
        propagate_error(step, group, ErrorCode.REBALANCE_IN_PROGRESS)
    group.pending_sync = frozenset()
    group.assignment_open = False
    step.timers.cancel(TimerKey(TimerKind.SYNC, group.group_id))
    initial = group.state is EMPTY  # every time, not only the first (C-JOIN-65)
    if initial:
        length = step.settings.group_initial_rebalance_delay_ms
        _delay(step, group, InitialDelay(length, max(group.rebalance_timeout - length, 0)))  # C-JOIN-43
    group.enter(PREPARING, step.at_ms)
    step.rebalances.append(
        RebalanceStarted(
            group_id=group.group_id,
            group_type=GroupType.CLASSIC,
            generation=next_epoch(group.generation),
            cause=cause,
            converted=converted,
        )
    )
    if not initial:
        if group.all_joined:
            complete(step, group)
        else:
            _await_joins(step, group)  # for 0 ms if there are no members but a pending id (C-ST-26)


def initial_delay_over(step: Step, group: GroupDraft, delay: InitialDelay) -> None:
    """The initial delay ends after a period without new members, or when its time is used up (C-JOIN-43)."""
    if group.new_member_added and delay.remaining != 0:
        group.new_member_added = False
        length = min(step.settings.group_initial_rebalance_delay_ms, delay.remaining)
        _delay(step, group, InitialDelay(length, max(delay.remaining - delay.length, 0)))
    else:
        complete(step, group)


def complete(step: Step, group: GroupDraft) -> None:
    """End the join phase: members that did not join are removed, the others form the next generation (C-JOIN-44). If
    there are any, nothing of this is in the log yet (F-ORD-02)."""
    step.timers.cancel(TimerKey(TimerKind.JOIN, group.group_id))
    timeout = group.rebalance_timeout
    missing = [member for member in group.members.values() if member.join is None and member.instance_id is None]
    for member in missing:
        membership.remove(step, group, member.member_id)
        step.timers.cancel(TimerKey(TimerKind.SESSION, group.group_id, member.member_id))
    if group.members and not membership.elect_leader(step, group):
        _await_joins(step, group)  # C-JOIN-46: only absent static members are left
        return
    group.generation = next_epoch(group.generation)  # C-ST-21; before anything that can fail (C-ST-27)
    if step.rules.phase_forgets_new_members:
        group.new_member_added = False  # so they do not extend a later phase (C-JOIN-71)
    if group.members:
        membership.adopt(step, group)
        group.enter(COMPLETING, step.at_ms)
        step.rebalances.append(
            GenerationBegan(
                group_id=group.group_id,
                generation=group.generation,
                leader=group.leader or "",
                members=len(group.members),
                removed=identities(missing),
                timeout_ms=timeout,
            )
        )
        _answer_all(step, group)
    else:
        group.protocol_name = None
        group.learn_subscriptions()
        group.enter(EMPTY, step.at_ms)  # C-JOIN-47
        group.pending_sync = frozenset()
        step.log.records.append(records.group_record(group, {}))  # F-ORD-04
        _report_end(step, group)


def _answer_all(step: Step, group: GroupDraft) -> None:
    """Send every member, also absent static ones (C-STATIC-14), the new generation, which waits for SyncGroups
    (C-JOIN-48)."""
    for member in list(group.members.values()):
        if member.join is not None:
            step.reply(member.join, membership.current_generation(group, member.member_id))
        group.put(member._replace(join=None, is_new=False))
        schedule_classic_session_timeout(step, group, member)
    group.pending_sync = frozen_set(group.members)
    step.timers.set(TimerKey(TimerKind.SYNC, group.group_id), group.rebalance_timeout)  # C-TMR-02


def _delay(step: Step, group: GroupDraft, delay: InitialDelay) -> None:
    step.timers.set(TimerKey(TimerKind.JOIN, group.group_id), delay.length, initial=delay)


def _await_joins(step: Step, group: GroupDraft) -> None:
    """Set the only deadline of a parked JoinGroup (C-JOIN-68); pending ids cannot delay it longer (C-JOIN-66)."""
    step.timers.set(TimerKey(TimerKind.JOIN, group.group_id), group.rebalance_timeout)


def propagate_error(step: Step, group: GroupDraft, error: ErrorCode) -> None:
    """Clear every assignment and answer the parked SyncGroups with the error (C-JOIN-42, C-SYNC-22)."""
    error_response = SyncGroupResponse(error)
    for member in list(group.members.values()):
        if member.sync is not None:
            step.reply(member.sync, error_response)
            schedule_classic_session_timeout(step, group, member)
        group.put(member._replace(assignment=b"", sync=None))


def propagate_assignment(step: Step, group: GroupDraft, assignments: Mapping[str, bytes]) -> None:
    """Give every member its assignment; waiting members are answered and watched again (C-SYNC-21, C-SYNC-24)."""
    for member in list(group.members.values()):
        assignment = assignments.get(member.member_id, b"")
        if member.sync is not None:
            step.reply(
                member.sync,
                SyncGroupResponse(
                    ErrorCode.NONE,
                    protocol_type=group.protocol_type,
                    protocol_name=group.protocol_name,
                    assignment=assignment,
                ),
            )
            schedule_classic_session_timeout(step, group, member)
        group.put(member._replace(assignment=assignment, sync=None))
    group.assignment_open = False
    group.enter(STABLE, step.at_ms)
    _report_end(step, group)


def _report_end(step: Step, group: GroupDraft) -> None:
    """Report that the group is in its final state of this generation."""
    step.rebalances.append(RebalanceEnded(group_id=group.group_id, generation=group.generation, state=group.state))
