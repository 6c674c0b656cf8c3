"""The rules of a KIP-848 member as intended, and what each switch of a profile changes; see ``differences``."""

from __future__ import annotations

from typing import Final

from ...differences import checked
from . import answers, calls
from . import draft as drafts
from . import releases as kafka
from .variant import ClientVariant

#: the intended rules
INTENDED: Final = ClientVariant(
    counts_after_leave=answers.counts_after_leave,
    given_up_at_close=calls.given_up_at_close,
    drop_callbacks=drafts.drop_callbacks,
)

#: what each switch of a profile changes
DIFFERENCES: Final = checked(
    ClientVariant,
    {
        "fault_joining_skips_backoff": {"joining_waits_for_backoff": False},
        "fault_leave_answer_is_fatal": {"counts_after_leave": kafka.count_after_leave},
        "fault_remaining_member_leaves": {"remaining_member_is_silent": False},
        "fault_late_heartbeat_counts": {"late_answers_count": True},
        "fault_close_gives_up_again": {"given_up_at_close": kafka.give_up_again},
        "fault_queued_callback_survives": {"drop_callbacks": kafka.keep_callbacks, "aborted_calls_nothing": False},
        "fault_revocation_mark_stays": {"revocation_mark_ends": False},
        "fault_pending_partitions_unreported": {"reports_pending_partitions": False},
        "fault_part_acknowledged_again": {"acknowledges_part_once": False},
        "fault_failed_assignment_stays": {"repairs_failed_assignment": False},
        "old_no_close_options": {"has_close_options": False},
        "old_no_rack_in_heartbeats": {"sends_rack": False},
        "old_negative_epoch_adopted": {"adopts_negative_epoch": True},
        "old_static_remains_silently": {"remaining_static_is_silent": True},
        "old_leave_without_group_is_fatal": {"unknown_group_counts": True},
        "old_background_revokes": {"background_revokes": True},
        "old_background_replaces_assignment": {"poll_replaces_assignment": False},
        "old_fenced_member_fetches": {"fenced_member_stops_fetching": False},
    },
)
