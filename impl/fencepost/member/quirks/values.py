"""The values of Kafka's clients that differ from the intended rules of members, by switch."""

from __future__ import annotations

from fencepost.quirks import Value, register_values

from ..rules import MemberRules

register_values(
    MemberRules,
    # Classic members
    Value(
        "fault_sync_load_is_thrown",
        "sync_load_is_retried",
        False,
        "Poll throws if a SyncGroup finds the coordinator loading, as for an unknown error code (K-ERR-02; the "
        "consumer's part of D-01).",
    ),
    # Responses
    Value(
        "old_leave_without_group_is_fatal",
        "leave_errors_ignored",
        False,
        "Up to 4.1 no error code in the response to a leave is accepted, not even GROUP_ID_NOT_FOUND (V-94, N-ERR-05).",
    ),
    Value(
        "fault_leave_answer_is_fatal",
        "only_missing_group_ignored",
        True,
        "In the response to a leave only GROUP_ID_NOT_FOUND is accepted, unless the member is joining again already. "
        "Any other code puts a member that has left into FATAL (N-TR-08).",
    ),
    Value(
        "old_negative_epoch_adopted",
        "negative_epochs_ignored",
        False,
        "4.0 adopts any epoch of a response (V-91).",
    ),
    Value(
        "old_fenced_member_fetches",
        "lost_partitions_not_fetched",
        False,
        "Before 4.3 a fenced member fetches until its callback has run; another member may own the partitions (V-98).",
    ),
    # Sending heartbeats
    Value(
        "fault_joining_skips_backoff",
        "joins_back_off",
        False,
        "A rejected join is repeated at round-trip speed (N-HB-07, N-ERR-03).",
    ),
    Value(
        "old_static_remains_silently",
        "static_member_remains_silently",
        True,
        "In 4.1 a static member that closes to remain sends nothing, and a dynamic one leaves (V-92).",
    ),
    Value(
        "fault_remaining_member_leaves",
        "dynamic_member_remains",
        False,
        "A dynamic member that should remain in its group leaves (N-HB-09). It waits until no heartbeat is unanswered: "
        "the leave is sent like an acknowledgement (N-HB-06).",
    ),
    Value(
        "old_no_rack_in_heartbeats",
        "rack_sent",
        False,
        "4.0 never fills the field (V-90).",
    ),
    # Reconciliation
    Value(
        "fault_failed_assignment_stays",
        "unchanged_target_compared",
        False,
        "Nothing happens while the target is unchanged. A partition whose callback threw stays assigned although the "
        "coordinator has withdrawn it (N-REC-03, N-REC-09).",
    ),
    Value(
        "fault_part_acknowledged_again",
        "acknowledged_once",
        False,
        "While a topic of the target cannot be resolved, the rest is acknowledged again and again, at round-trip "
        "speed (N-REC-03).",
    ),
    Value(
        "old_background_revokes",
        "revocation_waits_for_poll",
        False,
        "Up to 4.1 a revocation begins in the background too, unless the member commits (V-95).",
    ),
    Value(
        "old_target_topics_not_watched",
        "target_topics_watched",
        False,
        "4.0 requests metadata of the subscribed topics only, not of the target's (V-96).",
    ),
    Value(
        "old_background_replaces_assignment",
        "poll_replaces_assignment",
        False,
        "Before 4.3 the background replaces the assignment at any time. The application's thread only runs the "
        "callback, also after an unsubscribe, since the assignment is in force (V-97).",
    ),
    Value(
        "fault_queued_callback_survives",
        "queued_callback_withdrawn",
        False,
        "An assignment that waits for a poll is applied although the member has left the group, or has joined it "
        "again. It then has partitions that the coordinator did not assign (N-REC-05, INV-CL-01). A revocation that "
        "waits for a poll stays, although the same partitions are reported as lost (N-TR-06, N-TR-07, N-TR-09).",
    ),
    Value(
        "fault_revocation_mark_stays",
        "revocation_marks_cleared",
        False,
        "A partition that is given back before it was revoked keeps its mark; it is never fetched again (N-REC-11).",
    ),
    # Leaving
    Value(
        "old_no_close_options",
        "close_options_honoured",
        False,
        "4.0 ignores the options of close (V-21, V-80).",
    ),
)
