"""The rules of classic groups, and of the operations of every group, that a profile can change.

The rules import this type, so it has no functions; ``switches`` has them, and the table of the releases.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from fencepost.protocol.messages import (
    DeleteGroupsRequest,
    JoinGroupRequest,
    LeaveGroupMemberResponse,
    LeaveGroupRequest,
    SyncGroupRequest,
)
from fencepost.protocol.records import Record

from ..consumer.state import ConsumerGroup
from ..differences import function, rule
from .choice import Chooser
from .state import ArmedTimer, Arrive, Member, Replaced

#: ``draft.Draft``, ``open_groups.OpenGroups`` and ``work.Work`` hold these rules, so this module stands below theirs.
Draft: TypeAlias = Any
OpenGroups: TypeAlias = Any
Work: TypeAlias = Any


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassicVariant:
    """Values are as intended by default; ``switches.INTENDED`` adds the functions."""

    # operations, timers and the log, for every kind of group
    group_answers_parked: bool = rule(
        True,
        "C-JOIN-70",
        "C-JOIN-16",
        "F-RT-13",
        says="only the group answers the JoinGroup and SyncGroup requests that it parks, even if earlier writes fail",
    )
    memory_follows_log: bool = rule(
        True,
        "C-SYNC-33",
        "C-STATIC-06",
        "F-RT-09",
        says="a write that has timed out stays in memory until its record is replicated or lost",
    )
    restores_timers: bool = rule(
        True, "M-HB-13", "M-LEAVE-03", "M-TMR-02", says="a failed append restores the timers that its step cancelled"
    )
    timers_end_with_group: bool = rule(
        True, "C-TMR-12", says="the timers of a group end when it is reverted, or when another gets its name"
    )
    note_removal: Callable[[OpenGroups, str], None] = function(
        "C-ADM-05",
        "F-RT-08",
        says="ListGroups lists a group once, even if its deletion has failed",
    )
    note_exchanged: Callable[[OpenGroups, str, ConsumerGroup, Iterable[Record]], frozenset[str]] = function(
        "C-ADM-05", "M-DESC-01", says="a description lists a member once"
    )
    load_order: Callable[[Mapping[str, object], Chooser], list[str]] = function(
        "M-TMR-01", "C-TMR-11", says="the order in which groups are loaded has no effect"
    )
    timer_commands: Callable[[OpenGroups], list[ArmedTimer]] = function(
        "M-TMR-01", "C-TMR-11", says="each timer has its own key"
    )
    counting_records: Callable[[tuple[Record, ...]], Iterable[Record]] = function(
        "F-REPLAY-18",
        "M-PE-02",
        "F-REPLAY-06",
        says="a load ignores a record that a later one of its key replaces",
    )
    delete_groups: Callable[[Work, Arrive, DeleteGroupsRequest], object] = function(
        "C-ADM-09", says="DeleteGroups waits for earlier writes only once"
    )
    refuse_without_group: Callable[[Work, Arrive, JoinGroupRequest], None] = function(
        "C-JOIN-15", says="a JoinGroup with an unknown member id changes nothing"
    )
    answers_wait_for_log: bool = rule(
        True, "F-RT-24", "C-HB-14", "C-LEAVE-23", "D-23", says="Heartbeat and LeaveGroup wait for earlier writes"
    )
    writes_new_group: bool = rule(
        True, "C-JOIN-16", "D-10", says="a group that is created without a member is written at once"
    )

    # joining
    refusal_may_end_join_phase: bool = rule(
        True, "C-JOIN-23", "D-18", says="a join rejected for capacity may end the join phase"
    )
    returning_static_has_place: bool = rule(
        True, "C-JOIN-75", says="for the capacity, a static member that returns without its id counts as itself"
    )
    refuses_repeated_protocol: bool = rule(
        True, "C-JOIN-72", "C-ST-27", says="a join that lists a protocol twice is refused"
    )
    is_initial_delay: Callable[[Draft], bool] = function(
        "C-JOIN-43", "D-04", says="a rebalance of an empty group waits for more members"
    )
    delay_ends_addition: bool = rule(
        True, "C-JOIN-71", says="the mark that a member was added ends with the join phase"
    )
    throws_on_bad_length: bool = rule(
        False,
        "G-DATA-10",
        "C-ST-27",
        "V-124",
        says="a subscription with an impossible length is read like one that ends too early",
    )

    # static members
    replacement_syncs: bool = rule(
        True, "C-STATIC-16", says="the sync phase waits for the new id of a member that was replaced"
    )
    restore_protocols: Callable[[Draft, Replaced, Member | None], None] = function(
        "C-STATIC-18", says="undoing a replacement restores the protocols that it has changed"
    )
    replaced_stays_new: bool = rule(
        False, "C-STATIC-20", "D-22", says="a replaced member is not new, even if the one before was"
    )

    # syncing, leaving, expiry
    one_assignment_at_a_time: bool = rule(
        True, "C-SYNC-19", says="a SyncGroup of the leader appends nothing while an assignment is in progress"
    )
    answer_stable_sync: Callable[[Draft, Arrive, SyncGroupRequest], None] = function(
        "C-SYNC-18", "D-02", says="a SyncGroup in Stable does not extend the session"
    )
    has_other_protocol: Callable[[Draft, SyncGroupRequest], bool] = function(
        "C-SYNC-10", "D-03", says="a protocol is compared only if request and group have one"
    )
    answer_leaving_sync: Callable[[Draft, Member], None] = function(
        "C-LEAVE-24", says="the parked SyncGroup of a member that leaves is answered"
    )
    remove_members: Callable[[Draft, LeaveGroupRequest], tuple[LeaveGroupMemberResponse, ...]] = function(
        "C-LEAVE-21", "D-06", "D-07", says="the group rebalances once for all members that leave"
    )
    session_may_end_initial_delay: bool = rule(
        True, "C-TMR-08", "D-08", says="the expiry of a session may end an initial delay early"
    )
