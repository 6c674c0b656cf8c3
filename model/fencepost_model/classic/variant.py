"""The rules of classic groups, and of the operations of every group, that a profile can change."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from fencepost.protocol.messages import (
    DeleteGroupsRequest,
    JoinGroupRequest,
    LeaveGroupMemberResponse,
    LeaveGroupRequest,
    SyncGroupRequest,
)
from fencepost.protocol.records import Record

from ..consumer.state import ConsumerGroup
from ..differences import SCALA, checked, rule
from . import live, load, open_groups, requests, scala, static, sync
from . import releases as kafka
from .choice import Chooser
from .draft import Draft
from .join import is_initial_delay
from .open_groups import ArmedTimer, OpenGroups
from .state import Arrive, Member, Replaced
from .work import Work


@dataclass(frozen=True, slots=True)
class ClassicVariant:
    """The intended rules, as the defaults."""

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
    note_removal: Callable[[OpenGroups, str], None] = rule(
        open_groups.list_once,
        "C-ADM-05",
        "F-RT-08",
        says="ListGroups lists a group once, even if its deletion has failed",
    )
    note_exchanged: Callable[[OpenGroups, str, ConsumerGroup, Iterable[Record]], frozenset[str]] = rule(
        open_groups.describe_once, "C-ADM-05", "M-DESC-01", says="a description lists a member once"
    )
    load_order: Callable[[Mapping[str, object], Chooser], list[str]] = rule(
        load.load_order, "M-TMR-01", "C-TMR-11", says="the order in which groups are loaded has no effect"
    )
    timer_commands: Callable[[OpenGroups], list[ArmedTimer]] = rule(
        open_groups.timer_commands, "M-TMR-01", "C-TMR-11", says="each timer has its own key"
    )
    counting_records: Callable[[tuple[Record, ...]], Iterable[Record]] = rule(
        load.newest_records,
        "F-REPLAY-18",
        "M-PE-02",
        "F-REPLAY-06",
        says="a load ignores a record that a later one of its key replaces",
    )
    delete_groups: Callable[[Work, Arrive, DeleteGroupsRequest], object] = rule(
        requests.delete_groups, "C-ADM-09", says="DeleteGroups waits for earlier writes only once"
    )
    refuse_without_group: Callable[[Work, Arrive, JoinGroupRequest], None] = rule(
        requests.refuse_without_group, "C-JOIN-15", says="a JoinGroup with an unknown member id changes nothing"
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
    is_initial_delay: Callable[[Draft], bool] = rule(
        is_initial_delay, "C-JOIN-43", "D-04", says="a rebalance of an empty group waits for more members"
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
    restore_protocols: Callable[[Draft, Replaced, Member | None], None] = rule(
        static.restore_protocols, "C-STATIC-18", says="undoing a replacement restores the protocols that it has changed"
    )
    replaced_stays_new: bool = rule(
        False, "C-STATIC-20", "D-22", says="a replaced member is not new, even if the one before was"
    )

    # syncing, leaving, expiry
    one_assignment_at_a_time: bool = rule(
        True, "C-SYNC-19", says="a SyncGroup of the leader appends nothing while an assignment is in progress"
    )
    answer_stable_sync: Callable[[Draft, Arrive, SyncGroupRequest], None] = rule(
        sync.answer_stable_sync, "C-SYNC-18", "D-02", says="a SyncGroup in Stable does not extend the session"
    )
    has_other_protocol: Callable[[Draft, SyncGroupRequest], bool] = rule(
        sync.has_other_protocol, "C-SYNC-10", "D-03", says="a protocol is compared only if request and group have one"
    )
    answer_leaving_sync: Callable[[Draft, Member], None] = rule(
        live.answer_leaving_sync, "C-LEAVE-24", says="the parked SyncGroup of a member that leaves is answered"
    )
    remove_members: Callable[[Draft, LeaveGroupRequest], tuple[LeaveGroupMemberResponse, ...]] = rule(
        live.remove_members, "C-LEAVE-21", "D-06", "D-07", says="the group rebalances once for all members that leave"
    )
    session_may_end_initial_delay: bool = rule(
        True, "C-TMR-08", "D-08", says="the expiry of a session may end an initial delay early"
    )


#: what each switch of a profile changes
DIFFERENCES: Final = checked(
    ClassicVariant,
    {
        "fault_parked_fail_early": {"group_answers_parked": False},
        "fault_timeout_undoes_memory": {"memory_follows_log": False},
        "fault_failed_append_loses_timers": {"restores_timers": False},
        "fault_failed_deletion_lists_twice": {
            "note_removal": kafka.list_again,
            "note_exchanged": kafka.describe_again,
        },
        "fault_deletion_waits_twice": {"delete_groups": kafka.ask_share_groups},
        "fault_superseded_records_loaded": {"counting_records": kafka.every_record},
        "fault_timer_keys_collide": {"load_order": kafka.choose_order, "timer_commands": kafka.cancel_same_keys},
        "fault_new_member_added_survives": {"delay_ends_addition": False},
        "fault_refusal_leaves_join_phase": {"refusal_may_end_join_phase": False},
        "fault_static_return_counts_as_new": {"returning_static_has_place": False},
        "fault_duplicate_protocol_accepted": {"refuses_repeated_protocol": False},
        "fault_replacement_keeps_pending_sync": {"replacement_syncs": False},
        "fault_second_replacement_mixes_undo": {"restore_protocols": kafka.spoil_support},
        "fault_leave_forgets_parked_sync": {"answer_leaving_sync": kafka.forget_leaving_sync},
        "fault_every_leader_sync_appends": {"one_assignment_at_a_time": False},
        "fault_timers_outlive_reverted_group": {"timers_end_with_group": False},
        "fault_bad_subscription_is_thrown": {"throws_on_bad_length": True},
        "fault_empty_group_dropped_from_memory": {"refuse_without_group": kafka.drop_empty_group},
        SCALA: {
            "answers_wait_for_log": False,
            "writes_new_group": False,
            "is_initial_delay": scala.is_initial_delay,
            "replaced_stays_new": True,
            "answer_stable_sync": scala.answer_stable_sync,
            "has_other_protocol": scala.has_other_protocol,
            "remove_members": scala.remove_members,
            "session_may_end_initial_delay": False,
        },
    },
)
