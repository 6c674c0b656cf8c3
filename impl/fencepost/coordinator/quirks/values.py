"""The values of ``kernel.rules`` in Kafka's releases, by switch."""

from __future__ import annotations

from fencepost.protocol.errors import ErrorCode
from fencepost.quirks import Value, register_values

from ..kernel.rules import Rules

register_values(
    Rules,
    # For every kind of group
    Value(
        "old_checks_after_load",
        "fields_checked_first",
        False,
        "4.0 first checks whether it owns the partition and has loaded it (V-29).",
    ),
    Value(
        "fault_parked_fail_early",
        "parked_requests_wait",
        False,
        "A JoinGroup or SyncGroup that wrote nothing is answered with the failure of earlier writes, while it "
        "still waits in the group (C-JOIN-70, F-RT-13).",
    ),
    Value(
        "fault_failed_append_loses_timers",
        "append_failure_restores_timers",
        False,
        "A member that a failed append restores has lost the timers that the step had cancelled, and is never "
        "fenced (M-HB-13, M-LEAVE-03, M-TMR-02).",
    ),
    Value(
        "fault_superseded_records_loaded",
        "superseded_records_skipped",
        False,
        "Kafka applies every record that it reads. If the log is compacted meanwhile, it passes through states "
        "that never existed. One of them may be impossible, and then the load fails (F-REPLAY-18, M-PE-02, "
        "F-REPLAY-06).",
    ),
    Value(
        "old_no_image_is_minus_one",
        "first_image_version",
        -1,
        "Up to 4.1 the empty image has version -1, so the first image counts as one with a new topic (V-43).",
    ),
    Value(
        "old_group_config_unclamped",
        "group_configs_clamped",
        False,
        "Before 4.3 the setting of a group counts as it is stored, whatever the broker allows (V-12).",
    ),
    # Classic groups
    Value(
        "fault_new_member_added_survives",
        "phase_forgets_new_members",
        False,
        "The mark is cleared only where it extends the initial delay. It may outlive that delay and extend a "
        "later one although no new member has joined (C-JOIN-71).",
    ),
    Value(
        "fault_refusal_leaves_join_phase",
        "rejection_may_complete",
        False,
        "After a rejection Kafka does not check whether the join phase is over. If it waited only for the "
        "rejected member, the other members wait until the timer fires (C-JOIN-23).",
    ),
    Value(
        "fault_static_return_counts_as_new",
        "static_members_keep_place",
        False,
        "A JoinGroup with an instance id and no member id counts as one of an unknown member: a full group "
        "rejects its own static member (C-JOIN-75).",
    ),
    Value(
        "fault_duplicate_protocol_accepted",
        "repeated_protocols_rejected",
        False,
        "A protocol that is listed twice counts for two members, so it never counts as common to all: no protocol "
        "is elected, and the group stays in its join phase without a timer (C-JOIN-72).",
    ),
    Value(
        "fault_replacement_keeps_pending_sync",
        "replacement_owes_sync",
        False,
        "The group continues to wait for the replaced id. It never syncs, and when the sync timer fires, all "
        "members have to join again (C-STATIC-16).",
    ),
    Value(
        "fault_leave_forgets_parked_sync",
        "leave_answers_sync",
        False,
        "LeaveGroup removes the member together with its parked SyncGroup, which is never answered (C-LEAVE-24).",
    ),
    Value(
        "fault_every_leader_sync_appends",
        "one_assignment_at_a_time",
        False,
        "Each SyncGroup of the leader appends an assignment. The first one that is replicated is handed out, the "
        "last one is what a reload restores (C-SYNC-19, F-SURV-05).",
    ),
    Value(
        "fault_timers_outlive_reverted_group",
        "group_timers_cancelled",
        False,
        "The timers of a group that a failed append removes, or that became a consumer group, stay set. They act "
        "on the next group of that name (C-TMR-12, X-UP-16).",
    ),
    Value(
        "fault_bad_subscription_is_thrown",
        "bad_lengths_are_thrown",
        True,
        "Impossible lengths in a subscription raise an exception that is not caught (G-DATA-10, C-ST-27, V-124).",
    ),
    # Consumer groups: members
    Value(
        "old_full_group_refuses_statics",
        "static_member_has_place",
        False,
        "Before 4.4 a full group checks only the member id. A static member that returns with another member id "
        "finds its own place taken by itself (V-120).",
    ),
    Value(
        "old_known_member_at_zero_fenced",
        "known_member_may_join",
        False,
        "Up to 4.1 epoch 0 is an epoch like any other: a known member that joins again is fenced until its "
        "session has ended (V-32, LIV-12).",
    ),
    Value(
        "fault_static_rejoin_unreleased",
        "static_member_may_rejoin",
        False,
        "Kafka does not check which member joins with an instance id that is in use: even its own member is "
        "rejected until its session has ended (M-STATIC-02, L-06).",
    ),
    Value(
        "fault_replacement_merges_members",
        "present_member_replaces_none",
        False,
        "Kafka does not check whether the member already has a place. Its partitions there are free at once, "
        "while it may still consume them (M-STATIC-15, A-UHOM-08).",
    ),
    Value(
        "fault_rejoin_confirms_revocation",
        "join_confirms_nothing",
        False,
        "Kafka believes every join, which always claims to own nothing: a late copy confirms a revocation that "
        "the member has not received (M-FENCE-07, INV-KIP-09).",
    ),
    Value(
        "fault_relabelled_instance_stays",
        "relabelled_instance_freed",
        False,
        "An instance id that a member had stays mapped to it, also after it has gone: no member can join with "
        "that id any more (M-STATIC-13, V-123).",
    ),
    Value(
        "fault_relabelled_instance_stays",
        "instance_freed_by_its_member",
        False,
        "When a member goes, Kafka does not check whether the mapping is its own. It may belong to another member "
        "if the first one got a new instance id (M-STATIC-13).",
    ),
    Value(
        "fault_superseded_records_loaded",
        "instance_freed_by_its_member",
        False,
        "The same happens where a load passes through states that never existed (F-REPLAY-18).",
    ),
    # Consumer groups: epochs and targets
    Value(
        "old_epochs_start_at_zero",
        "first_epoch",
        0,
        "Before 4.3 a new group is at epoch 0 (V-30).",
    ),
    Value(
        "old_epochs_start_at_zero",
        "zero_epoch_ends",
        True,
        "Before 4.3 the first member begins an epoch, whatever it subscribes to (V-31).",
    ),
    Value(
        "fault_empty_group_counts_anew",
        "epochs_continue",
        False,
        "An empty group that changes its kind counts from the start. A late copy of a join may then give a member "
        "an epoch that it had before its session ended, so that no fencing happens (C-JOIN-16, M-VAL-22, INV- "
        "CONV-01).",
    ),
    Value(
        "old_vote_keeps_epoch",
        "votes_bump",
        False,
        "Before 4.4 a vote begins no epoch: the other assignor computes the next target, whenever that is (V-121).",
    ),
    Value(
        "fault_absent_assignor_elected",
        "absent_assignor_loses",
        False,
        "In Kafka a vote for an assignor that is no longer configured counts too. If that one wins, every request "
        "that needs a target fails (M-TGT-02, M-HB-12).",
    ),
    Value(
        "old_regex_removal_keeps_epoch",
        "dropped_regex_bumps",
        False,
        "In 4.0 giving up a regex begins no epoch (V-33).",
    ),
    Value(
        "fault_resolved_regex_change_no_bump",
        "lost_topics_bump",
        False,
        "Kafka takes the topics of the old regex from the member at once (M-REC-25) and begins no epoch: they "
        "stay in its target, and no member owns them (LIV-15).",
    ),
    Value(
        "old_whole_target",
        "lost_topics_bump",
        False,
        "Up to 4.1 the member keeps everything until there is a new target, so nothing is lost (V-51).",
    ),
    Value(
        "old_no_periodic_regex_refresh",
        "regexes_refreshed",
        False,
        "4.0 resolves a regex again only when topics are created (V-10).",
    ),
    Value(
        "fault_stale_subscription_type",
        "due_target_sees_subscriptions",
        False,
        "Kafka recomputes the subscription type only with an epoch or a look at the topics. A target that was "
        "already due is computed with the earlier type, which may give partitions to a member that subscribes to "
        "nothing (M-TGT-05, LIV-13).",
    ),
    Value(
        "fault_absent_partition_fails",
        "absent_partitions_left_out",
        False,
        "Kafka's assignors get the last target as it is. One that finds a partition which its topic does not have "
        "fails, and so does every request that needs a target (A-UHET-06, X-UP-05).",
    ),
    Value(
        "old_emptied_group_keeps_target_epoch",
        "empty_group_has_target_epoch",
        False,
        "Before 4.4 no target record is written when the last members go: the epoch of the target stays (V-122).",
    ),
    Value(
        "old_no_assignment_interval",
        "has_assignment_interval",
        False,
        "Before 4.3 there is no interval between two targets. Their records have no time; a release that finds "
        "one does not know that field (V-38, V-40, V-73).",
    ),
    Value(
        "old_partition_metadata",
        "has_partition_metadata",
        True,
        "4.0 works from a record of the partitions, which later releases delete (M-META-08). It does not know the "
        "field in which they write a hash (V-34, V-71, V-72).",
    ),
    # Consumer groups: reconciliation
    Value(
        "old_no_assignment_epochs",
        "has_assignment_epochs",
        False,
        "Before 4.3 a member holds a set of partitions without epochs, in its records too; here each has the "
        "epoch 0 (V-53, V-74). An older epoch in a commit is rejected, whatever is committed (O-COMMIT-36).",
    ),
    Value(
        "old_whole_target",
        "whole_target_counts",
        True,
        "Up to 4.1 the whole target counts, whatever the member subscribes to now. A member keeps what it no "
        "longer subscribes to until a target is computed without it (V-50, V-51).",
    ),
    Value(
        "old_prune_keeps_previous_epoch",
        "pruning_moves_previous_epoch",
        False,
        "In 4.2 pruning leaves the previous epoch as it was: an answer that was lost before is still forgiven (V-51).",
    ),
    Value(
        "old_revocation_advances_epoch",
        "revocation_advances_epoch",
        True,
        "Up to 4.1 a confirmed revocation moves the member on by one epoch, wherever the target is (V-52).",
    ),
    Value(
        "old_describe_without_pending",
        "pending_revocation_described",
        False,
        "Before 4.3 a description leaves out partitions to be revoked, though the member may still own them (V-16).",
    ),
    # Groups with members of both protocols
    Value(
        "old_disabled_policy_accepts_joins",
        "policy_checked_at_joins",
        False,
        "Before 4.3, except 4.2.2, the policy is checked only where a group would change its kind (X-POL-04, V-60).",
    ),
    Value(
        "fault_join_generation_ignored",
        "join_generation_checked",
        False,
        "Kafka does not check the generation, nor whether the member is known. A JoinGroup that arrives late "
        "frees partitions that the member got since, and a fenced member does not get an error: a partition has "
        "two owners for a while (X-JOIN-06, X-JOIN-12, INV-KIP-09).",
    ),
    Value(
        "old_malformed_join_is_internal",
        "unreadable_join_is_internal",
        True,
        "Before 4.4, except 4.2.2, no JoinGroup to a consumer group expects bytes that cannot be read (V-125).",
    ),
    Value(
        "fault_downgrade_reads_unread_metadata",
        "all_metadata_read",
        False,
        "Kafka reads only what it needs at once: for a JoinGroup the first protocol, for an upgrade the selected "
        "one. A later downgrade may fail on the others, and a SyncGroup is never answered (X-DOWN-09, X-SYNC-07).",
    ),
    Value(
        "fault_upgrade_without_protocol",
        "upgrade_needs_protocol",
        False,
        "Kafka does not check whether a protocol is selected yet (X-UP-07).",
    ),
    Value(
        "fault_upgrade_answers_before_checks",
        "upgrade_answers_last",
        False,
        "All members have been answered already (X-UP-03).",
    ),
    Value(
        "fault_upgrade_without_bump",
        "upgrade_bumps",
        False,
        "An upgrade by a member that continues a classic one begins no epoch: partitions that the interrupted "
        "rebalance would have distributed are assigned to no member (X-UP-15, LIV-16).",
    ),
    Value(
        "old_downgrade_rebalances_by_subscription",
        "downgrade_follows_subscription",
        True,
        "Before 4.3 every join has computed a target, and only a change of the subscription requires another one "
        "(V-65).",
    ),
    Value(
        "fault_downgrade_owes",
        "downgrade_waits_for_targets",
        False,
        "Kafka does not check whether a member still waits for a part of its target. The member has that part in "
        "the Stable group, and is never notified (X-DOWN-22).",
    ),
    Value(
        "fault_downgrade_loses_bump",
        "downgrade_keeps_bump",
        False,
        "Kafka takes the epoch from the group as it was before the request, although the log has a newer one. The "
        "joiner gets its member epoch, which may not be a generation of the group (X-DOWN-23).",
    ),
    Value(
        "fault_downgrade_leaves_timers",
        "downgrade_ends_timers",
        False,
        "The timers of the consumer group stay set, and fire in the classic one (X-DOWN-33, X-DOWN-06).",
    ),
    # Offsets
    Value(
        "fault_fetch_without_member_fails",
        "error_without_member_id",
        ErrorCode.UNKNOWN_SERVER_ERROR,
        "Kafka looks up a member without a name, which fails (O-FETCH-05).",
    ),
)
