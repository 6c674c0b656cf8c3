"""The rules of classic groups and of all operations as intended, and what each switch changes; see ``differences``."""

from __future__ import annotations

from typing import Final

from ..differences import SCALA, checked
from . import live, load, open_groups, requests, scala, static, sync
from . import releases as kafka
from .join import is_initial_delay
from .variant import ClassicVariant

#: the intended rules
INTENDED: Final = ClassicVariant(
    note_removal=open_groups.list_once,
    note_exchanged=open_groups.describe_once,
    load_order=load.load_order,
    timer_commands=open_groups.timer_commands,
    counting_records=load.newest_records,
    delete_groups=requests.delete_groups,
    refuse_without_group=requests.refuse_without_group,
    is_initial_delay=is_initial_delay,
    restore_protocols=static.restore_protocols,
    answer_stable_sync=sync.answer_stable_sync,
    has_other_protocol=sync.has_other_protocol,
    answer_leaving_sync=live.answer_leaving_sync,
    remove_members=live.remove_members,
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
