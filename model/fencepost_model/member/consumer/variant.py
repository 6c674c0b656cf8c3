"""The rules of a KIP-848 member that a profile can change; see ``differences``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from fencepost.protocol.errors import ErrorCode

from ...differences import checked, rule
from ..inputs import Partition
from . import answers, calls
from . import draft as drafts
from . import releases as kafka
from .draft import ClientDraft


@dataclass(frozen=True, slots=True)
class ClientVariant:
    """The intended rules, as the defaults."""

    # heartbeats
    joining_waits_for_backoff: bool = rule(
        True, "N-HB-07", "N-ERR-03", says="a joining member that is rejected waits for the back-off"
    )
    sends_rack: bool = rule(True, "N-HB-02", "V-90", says="a joining member sends its rack")
    reports_untold_partitions: bool = rule(
        True,
        "N-HB-05",
        "INV-KIP-09",
        says="a heartbeat includes partitions given to the application since the last reconciliation",
    )
    late_answers_count: bool = rule(False, "N-HB-11", says="a late heartbeat answer has no effect on a later request")
    adopts_negative_epoch: bool = rule(False, "N-HB-10", "V-91", says="a negative epoch in an answer is ignored")

    # leaving
    counts_after_leave: Callable[[ClientDraft, ErrorCode], bool] = rule(
        answers.counts_after_leave, "N-TR-08", says="the answer to a leave only ends it"
    )
    unknown_group_counts: bool = rule(False, "N-ERR-05", "V-94", says="a leave from an unknown group succeeds")
    has_close_options: bool = rule(True, "N-CLOSE-01", "V-21", "V-80", says="close has options")
    remaining_member_is_silent: bool = rule(
        True, "N-HB-09", says="a dynamic member that should remain in its group sends no leave"
    )
    remaining_static_is_silent: bool = rule(
        False, "N-HB-09", "V-92", says="a static member that should remain in its group sends a leave with epoch -2"
    )
    given_up_at_close: Callable[[ClientDraft], tuple[frozenset[Partition], bool]] = rule(
        calls.given_up_at_close, "N-CLOSE-01", "INV-CL-01", says="a close gives up each partition once"
    )
    fenced_member_stops_fetching: bool = rule(
        True, "N-TR-06", "V-98", says="a member that was fenced fetches nothing more"
    )
    drop_callbacks: Callable[[ClientDraft], None] = rule(
        drafts.drop_callbacks,
        "N-TR-06",
        "N-TR-07",
        "N-TR-09",
        "INV-CL-01",
        says="a member that gives up its partitions runs no queued callback of a reconciliation",
    )
    aborted_calls_nothing: bool = rule(
        True, "N-REC-05", "INV-CL-01", says="an aborted reconciliation assigns no partitions"
    )

    # reconciliation
    background_revokes: bool = rule(
        False, "N-REC-01", "V-95", says="between polls the background begins no reconciliation that revokes"
    )
    poll_replaces_assignment: bool = rule(
        True, "N-REC-07", "V-97", says="the assignment is replaced within a poll, and not by a leaving member"
    )
    revocation_mark_ends: bool = rule(
        True, "N-REC-11", says="a partition that is given back before its revocation is fetched again"
    )
    acknowledges_part_once: bool = rule(
        True, "N-REC-03", says="while a topic cannot be resolved, the rest is acknowledged once"
    )
    repairs_failed_assignment: bool = rule(
        True, "N-REC-03", "N-REC-09", says="partitions whose callback threw are reconciled again when withdrawn"
    )


#: what each switch of a profile changes
DIFFERENCES: Final = checked(
    ClientVariant,
    {
        "fault_joining_skips_backoff": {"joining_waits_for_backoff": False},
        "fault_leave_answer_is_fatal": {"counts_after_leave": kafka.count_after_leave},
        "fault_remaining_member_leaves": {"remaining_member_is_silent": False},
        "fault_late_heartbeat_counts": {"late_answers_count": True},
        "fault_close_tells_again": {"given_up_at_close": kafka.give_up_again},
        "fault_queued_callback_survives": {"drop_callbacks": kafka.keep_callbacks, "aborted_calls_nothing": False},
        "fault_revocation_mark_stays": {"revocation_mark_ends": False},
        "fault_untold_partitions_unreported": {"reports_untold_partitions": False},
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
