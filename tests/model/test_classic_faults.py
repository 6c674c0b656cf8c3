"""Kafka's faults of classic groups: a search in the model finds each of them, as in ``test_coordinator_faults``."""

from __future__ import annotations

from typing import Final

import pytest
from classic_moves import (
    DELETE,
    I1,
    IMPOSSIBLE,
    LIST,
    OTHER,
    PLAIN,
    ROUND,
    TIMED_OUT,
    joins,
    leaves,
    stable_group,
    stable_member,
    syncs,
)
from shortest import NOW, Ask, Play, Replicate, Search, Whole, read_events
from test_runtime_faults import memory_matches_the_log

from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import TimerKind
from fencepost.protocol.messages import DeleteGroupsRequest, DeleteGroupsResponse, JoinGroupRequest, ListGroupsResponse
from fencepost.protocol.settings import Settings
from fencepost_model.classic.invariants import view_of
from fencepost_model.machines import EMPTY, PREPARING
from fencepost_model.promises import PROMISES


def a_join_phase_is_timed(search: Search, play: Play) -> bool:
    """A group in PreparingRebalance has a timer that ends the join phase (LIV-02)."""
    group = play.state.group("g")
    timed = any(key.kind is TimerKind.JOIN and key.group_id == "g" for key, _ in play.armed)
    return group is None or group.state != PREPARING or timed


def initial_delay_ends_without_new_members(search: Search, play: Play) -> bool:
    """A member that joins an empty group alone is answered when the initial delay ends (C-JOIN-43)."""
    if len(play.moves) < 2 or play.moves[-1] != ROUND:
        return True
    before = search.again(play.moves[:-2]).state.group("g")
    joined = isinstance(play.moves[-2], Ask) and isinstance(play.moves[-2].body, JoinGroupRequest)
    alone = before is None or (before.state == EMPTY and not before.pending_join)
    return not (joined and alone) or bool(play.answers)


def join_phase_ends_once_all_have_joined(search: Search, play: Play) -> bool:
    """A join phase ends when all members have joined, unless the initial delay is still open (C-JOIN-41)."""
    group = play.state.group("g")
    if group is None or group.state != PREPARING or not group.members or group.pending_join:
        return True
    delayed = any(slot.group_id == "g" and slot.delay is not None for slot in play.state.slots)
    return delayed or any(member.join is None for member in group.members)


def static_member_is_not_rejected_for_capacity(search: Search, play: Play) -> bool:
    """A static member of the group is not refused because the group is full (C-JOIN-20…22)."""
    answer, move = play.answer(), play.moves[-1]
    if getattr(answer, "error_code", None) is not ErrorCode.GROUP_MAX_SIZE_REACHED or not isinstance(move, Ask):
        return True
    before = search.again(play.moves[:-1]).state.group("g")
    known = {member.instance for member in before.members} if before else set()
    return getattr(move.body, "group_instance_id", None) not in known - {None}


def only_members_owe_a_sync(search: Search, play: Play) -> bool:
    """The sync timer waits only for members of the group (G-DATA-09, C-SYNC-20)."""
    group = play.state.group("g")
    return group is None or PROMISES["INV-MEM-07"].holds(view_of(group))


def join_with_a_common_protocol_is_accepted(search: Search, play: Play) -> bool:
    """A JoinGroup with a protocol that all members support is not refused for its protocols (C-JOIN-31, G-DATA-08)."""
    answer, last = play.answer(), play.last
    if getattr(answer, "error_code", None) is not ErrorCode.INCONSISTENT_GROUP_PROTOCOL:
        return True
    before = search.again(play.moves[:-1]).state.group("g")
    offered = {each.name for each in getattr(getattr(last, "body", None), "protocols", ())}
    return before is None or not offered.intersection(*({p.name for p in each.protocols} for each in before.members))


def empty_group_can_be_deleted(search: Search, play: Play) -> bool:
    """A group that was empty when its deletion was requested is not refused as NON_EMPTY_GROUP (C-ADM-09)."""
    bodies = [move.body for move in play.moves if isinstance(move, Ask)]
    for number, body in play.answers:
        if isinstance(body, DeleteGroupsResponse) and isinstance(bodies[number - 1], DeleteGroupsRequest):
            place = [at for at, move in enumerate(play.moves) if isinstance(move, Ask)][number - 1]
            then = search.again(play.moves[:place]).state.group("g")
            refused = any(row.error_code is ErrorCode.NON_EMPTY_GROUP for row in body.results)
            if refused and then is not None and then.state == EMPTY:
                return False
    return True


def groups_are_listed_once(search: Search, play: Play) -> bool:
    """ListGroups lists each group once (C-ADM-05)."""
    answer = play.answer()
    names = [row.group_id for row in answer.groups] if isinstance(answer, ListGroupsResponse) else []
    return len(names) == len(set(names))


_ROOM_FOR_ONE: Final = Settings(group_consumer_assignment_interval_ms=0, group_max_size=1)
_ROOM_FOR_TWO: Final = Settings(group_consumer_assignment_interval_ms=0, group_max_size=2)
_DELAY: Final = NOW.group_initial_rebalance_delay_ms

FAULTS = (
    Whole(  # C-JOIN-72
        "fault_duplicate_protocol_accepted",
        "../shortest/join-phase-never-ends",
        (joins("", PLAIN, PLAIN, instance="i1"), ROUND),
        a_join_phase_is_timed,
        2,
    ),
    Whole(  # G-DATA-10, C-ST-27
        "fault_bad_subscription_is_thrown",
        "../shortest/join-phase-throws",
        (joins("", IMPOSSIBLE, instance="i1"), ROUND),
        a_join_phase_is_timed,
        2,
    ),
    Whole(  # C-JOIN-71
        "fault_new_member_added_survives",
        "../shortest/delay-without-newcomers",
        (
            joins("", instance="i1", timeout=_DELAY),
            joins("", instance="i2", timeout=_DELAY),
            joins("", instance="i3"),
            ROUND,
            leaves("i1", "i2"),
        ),
        initial_delay_ends_without_new_members,
        6,
        beyond=0,
    ),
    Whole(  # C-JOIN-23
        "fault_refusal_leaves_join_phase",
        "../shortest/all-joined-still-waiting",
        (joins("one", PLAIN, OTHER, instance="i1"), joins("", instance="i3"), joins("two", instance="i2")),
        join_phase_ends_once_all_have_joined,
        3,
        _ROOM_FOR_TWO,
        first=stable_group(),
    ),
    Whole(  # C-JOIN-75
        "fault_static_return_counts_as_new",
        "../shortest/full-group-rejects-its-member",
        (joins("", instance="i1"), ROUND),
        static_member_is_not_rejected_for_capacity,
        2,
        _ROOM_FOR_ONE,
    ),
    Whole(  # C-STATIC-16
        "fault_replacement_keeps_pending_sync",
        "../shortest/sync-waits-for-removed-member",
        (joins("", instance="i1"), joins("", instance="i2"), ROUND, syncs(I1, 1, 0)),
        only_members_owe_a_sync,
        6,
    ),
    Whole(  # C-STATIC-18
        "fault_second_replacement_mixes_undo",
        "../shortest/supported-protocol-rejected",
        (
            joins("", instance="i1")._replace(open=True),
            joins("", PLAIN, OTHER, instance="i1")._replace(open=True),
            joins("", OTHER, instance="i2"),
            TIMED_OUT,
        ),
        join_with_a_common_protocol_is_accepted,
        4,
        first=stable_member(),
        also="fault_timeout_undoes_memory",
    ),
    Whole(  # C-SYNC-19
        "fault_every_leader_sync_appends",
        "../shortest/two-assignments",
        (
            joins("", instance="i1"),
            ROUND,
            syncs(I1, 1, 0)._replace(open=True),
            syncs(I1, 1, 1)._replace(open=True),
            Replicate(),
        ),
        memory_matches_the_log,
        5,
    ),
    Whole(  # C-ADM-09
        "fault_deletion_waits_twice",
        "../shortest/deletion-decided-too-late",
        (joins("")._replace(open=True), DELETE, joins("", instance="i1"), Replicate()),
        empty_group_can_be_deleted,
        4,
    ),
    Whole(  # C-ADM-05
        "fault_failed_deletion_lists_twice",
        "../shortest/group-listed-twice",
        (joins(""), DELETE._replace(fails=True), LIST),
        groups_are_listed_once,
        3,
    ),
)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.trace)
def test_fault_of_classic_groups_is_found(fault: Whole) -> None:
    fault.is_found()


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.trace)
def test_the_trace_of_classic_groups_is_in_the_findings(fault: Whole) -> None:
    """The trace in the findings has these events; other tests compare it with what Kafka did."""
    assert read_events(fault.trace) == (fault.settings, fault.events())
