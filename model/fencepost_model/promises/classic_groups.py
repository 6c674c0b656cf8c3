"""The promises about classic groups (rule book, 12.1): in every state, and in every step."""

from __future__ import annotations

from typing import Any, Final

from ..machines import COMPLETING, EMPTY, PREPARING, STABLE
from .instances import instances_map_to_their_members
from .promise import Promise
from .views import ClassicGroupStep, ClassicGroupView

#: A classic group in these states is past its join phase.
_JOINED: Final = (COMPLETING, STABLE)


def _ids(group: ClassicGroupView) -> set[str]:
    return {member.member_id for member in group.members}


def _member_or_pending(group: ClassicGroupView) -> str:
    both = _ids(group) & group.pending_join
    return f"{sorted(both)} are members and pending" if both else ""


def _members_as_the_state_says(group: ClassicGroupView) -> str:
    if group.members:
        return f"{EMPTY} with members {sorted(_ids(group))}" if group.state == EMPTY else ""
    if group.state in _JOINED:
        return f"{group.state} without members"
    # In the initial delay the last member may have left (C-ST-26).
    excused = group.state != PREPARING or bool(group.pending_join) or group.previous == EMPTY
    return "" if excused else f"{PREPARING} without members and without pending ids"


def _led_by_a_member(group: ClassicGroupView) -> str:
    if not group.members:
        return f"leader {group.leader} without members" if group.leader is not None else ""
    stranger = group.state in _JOINED and group.leader not in _ids(group)
    return f"leader {group.leader} is not a member" if stranger else ""


def _joins_parked_while_preparing(group: ClassicGroupView) -> str:
    for member in group.members:
        replaces = group.state == STABLE and member.instance is not None  # the replacement is being appended
        if member.waits_to_join and group.state != PREPARING and not replaces:
            return f"{member.member_id} waits to join in {group.state}"
    return ""


def _syncs_parked_while_completing(group: ClassicGroupView) -> str:
    waiting = [member.member_id for member in group.members if member.waits_to_sync]
    return f"{waiting} wait for assignments in {group.state}" if waiting and group.state != COMPLETING else ""


def _pending_syncs_of_members(group: ClassicGroupView) -> str:
    strangers = group.pending_sync - _ids(group)
    return f"awaits SyncGroup of {sorted(strangers)}" if strangers and group.state in _JOINED else ""


def _protocol_of_all(group: ClassicGroupView) -> str:
    for member in group.members:
        if group.state in _JOINED and group.protocol not in member.protocols:
            return f"{member.member_id} does not support {group.protocol}"
    return ""


def _new_generation_after_a_join_phase(step: ClassicGroupStep) -> str:
    before, after = step.before, step.after
    grown, ended = after.generation - before.generation, after.state in (COMPLETING, EMPTY)
    if grown == 1 and not (ended and after.previous == PREPARING):
        return f"a new generation, but {after.previous} becomes {after.state}"
    return _generation_is_used_once(step)


def _generation_is_used_once(step: ClassicGroupStep) -> str:
    """The rest of the promise if the end of a join phase may throw: its generation is used up, without a transition
    (C-ST-27)."""
    before, after = step.before, step.after
    if after.generation - before.generation not in (0, 1):
        return f"generation {before.generation} becomes {after.generation}"
    ended = after.state in (COMPLETING, EMPTY) and before.state != after.state
    if ended and after.generation == before.generation:
        return f"{before.state} becomes {after.state} within generation {after.generation}"
    return ""


CLASSIC_GROUPS: Final[tuple[Promise[Any], ...]] = (
    Promise(
        "INV-GEN-01",
        "The generation grows by one when a join phase ends, and at no other time.",
        ClassicGroupStep,
        _new_generation_after_a_join_phase,
        restated={"classic": ("EveryJoinPhaseEndsInANewGeneration",)},
        faults=(
            "fault_duplicate_protocol_accepted",
            "fault_timers_outlive_reverted_group",
            "fault_bad_subscription_is_thrown",
        ),
        remains=_generation_is_used_once,
    ),
    Promise(
        "INV-MEM-01",
        "No member id is both that of a member and pending.",
        ClassicGroupView,
        _member_or_pending,
    ),
    Promise(
        "INV-MEM-02",
        "An instance id belongs to at most one member, and each instance id maps to the member that has it.",
        ClassicGroupView,
        instances_map_to_their_members,
        {
            "classic": ("EveryInstanceBelongsToOneMember",),
            "mixed": ("EveryInstanceBelongsToOneMember",),
        },
    ),
    Promise(
        "INV-MEM-03",
        "A group is Empty without members, and has members once its join phase is over.",
        ClassicGroupView,
        _members_as_the_state_says,
        {"classic": ("EveryGroupHasALeaderAfterItsJoinPhase",)},
    ),
    Promise(
        "INV-MEM-04",
        "A group with members is led by one of them once its join phase is over; one without members has no leader.",
        ClassicGroupView,
        _led_by_a_member,
        {"classic": ("EveryGroupHasALeaderAfterItsJoinPhase",)},
    ),
    Promise(
        "INV-MEM-05",
        "JoinGroups are parked only in the join phase, or for a static member whose replacement is being written.",
        ClassicGroupView,
        _joins_parked_while_preparing,
    ),
    Promise(
        "INV-MEM-06",
        "SyncGroups are parked only while the group is completing its rebalance.",
        ClassicGroupView,
        _syncs_parked_while_completing,
        {"classic": ("ParkedSyncsExistOnlyWhileCompleting",)},
    ),
    Promise(
        "INV-MEM-07",
        "Once the join phase is over, the group awaits SyncGroups only of members.",
        ClassicGroupView,
        _pending_syncs_of_members,
        {"classic": ("EveryPendingSyncIsAMember",)},
        faults=("fault_replacement_keeps_pending_sync",),
    ),
    Promise(
        "INV-PROTO-01",
        "Once the join phase is over, every member supports the selected protocol.",
        ClassicGroupView,
        _protocol_of_all,
        faults=("fault_second_replacement_mixes_undo",),
    ),
)
