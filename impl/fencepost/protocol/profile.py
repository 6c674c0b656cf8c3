"""The switches of profiles: differences of Kafka releases from the intended protocol.

A profile is a set of named switches that coordinator, members and model all read. Each switch is a Kafka bug
(``fault_*``; ``docs/divergences.md`` says what ``intended`` does instead), or the behaviour of releases before the
newest one (``old_*``). If it is on, Fencepost behaves like that release. A switch has a part of the code, rules, and a
text about Kafka's behaviour. In the core, values and functions in a package ``quirks`` implement it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import Any, Final


class Part(StrEnum):
    """Part of the code that a switch affects, lowest layer first."""

    KERNEL = "kernel"
    CLASSIC = "classic"
    CONSUMER = "consumer"
    MIXED = "mixed"
    OFFSETS = "offsets"
    MEMBER = "member"
    HOST = "host"


def switch(part: str, *rules: str, says: str) -> Any:
    """Return a field of a profile, off by default. ``says``: the behaviour if it is on."""
    return field(default=False, metadata={"part": Part(part), "rules": rules, "says": says})


@dataclass(frozen=True, slots=True)
class Switch:
    """Description of a switch."""

    name: str
    part: Part
    rules: tuple[str, ...]
    says: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """A set of named switches. With all of them off, it is the intended protocol: every known bug is fixed."""

    name: str

    # For every kind of group: log, timers, reads, the store of topics
    fault_parked_fail_early: bool = switch(
        "kernel",
        "C-JOIN-70",
        "C-JOIN-16",
        "F-RT-13",
        says="a parked JoinGroup or SyncGroup that wrote nothing fails when earlier writes are late",
    )
    fault_timeout_undoes_memory: bool = switch(
        "kernel",
        "C-SYNC-33",
        "C-STATIC-06",
        "F-RT-09",
        says="the timeout of a write undoes it in memory, while its record stays in the log",
    )
    fault_failed_append_loses_timers: bool = switch(
        "kernel",
        "M-HB-13",
        "M-LEAVE-03",
        "M-TMR-02",
        says="a member that a failed append restores has lost the timers that the step cancelled",
    )
    fault_failed_deletion_lists_twice: bool = switch(
        "kernel",
        "C-ADM-05",
        "F-RT-08",
        says="an entry restored by a failed append is listed twice until the high watermark passes it",
    )
    fault_deletion_waits_twice: bool = switch(
        "kernel", "C-ADM-09", says="DeleteGroups first asks the share groups, which waits for earlier writes"
    )
    fault_superseded_records_loaded: bool = switch(
        "kernel",
        "F-REPLAY-18",
        "M-PE-02",
        "F-REPLAY-06",
        says="a load applies every record it reads, even if a later record of the same key replaces it",
    )
    fault_timer_keys_collide: bool = switch(
        "kernel",
        "M-TMR-01",
        "C-TMR-11",
        says="timers have texts as keys, and timers of two groups may have the same key",
    )
    old_checks_after_load: bool = switch(
        "kernel",
        "V-29",
        says="4.0 validates the fields of a heartbeat only after it knows that the partition is loaded and its own",
    )
    old_no_image_is_minus_one: bool = switch(
        "kernel",
        "V-43",
        says="up to 4.1 the image before the first one has version -1: the first one counts as having a new topic",
    )

    # Classic groups
    fault_new_member_added_survives: bool = switch(
        "classic",
        "C-JOIN-71",
        says="the mark that a member was added outlives the initial delay and extends a later one",
    )
    fault_refusal_leaves_join_phase: bool = switch(
        "classic",
        "C-JOIN-23",
        "D-18",
        says="a join rejected for capacity does not check whether it ends the join phase",
    )
    fault_static_return_counts_as_new: bool = switch(
        "classic",
        "C-JOIN-75",
        says="a join with a known instance id and no member id counts as a new member for the capacity",
    )
    fault_duplicate_protocol_accepted: bool = switch(
        "classic",
        "C-JOIN-72",
        "C-ST-27",
        says="a protocol that is listed twice is accepted, and its vote counts never match",
    )
    fault_replacement_keeps_pending_sync: bool = switch(
        "classic", "C-STATIC-16", says="the sync phase still waits for a member that was replaced"
    )
    fault_second_replacement_mixes_undo: bool = switch(
        "classic",
        "C-STATIC-18",
        says="undoing a replacement that was itself replaced corrupts the counts of supported protocols",
    )
    fault_leave_forgets_parked_sync: bool = switch(
        "classic", "C-LEAVE-24", says="the parked SyncGroup of a member that LeaveGroup removes gets no response"
    )
    fault_every_leader_sync_appends: bool = switch(
        "classic",
        "C-SYNC-19",
        says="every SyncGroup of the leader appends an assignment, even while one is in progress",
    )
    fault_timers_outlive_reverted_group: bool = switch(
        "classic", "C-TMR-12", says="the timers of a deleted group affect the next group with its name"
    )
    fault_bad_subscription_is_thrown: bool = switch(
        "classic",
        "G-DATA-10",
        "C-ST-27",
        "V-124",
        says="a subscription with impossible lengths throws an exception that is not caught",
    )

    # Consumer groups
    fault_empty_group_dropped_from_memory: bool = switch(
        "consumer",
        "C-JOIN-15",
        says="a JoinGroup with a member id drops an empty consumer group from memory; the log keeps it",
    )
    fault_static_rejoin_unreleased: bool = switch(
        "consumer",
        "M-STATIC-02",
        "L-06",
        says="a static member that returns at epoch 0 with its own id is rejected as if another had its instance",
    )
    fault_relabelled_instance_stays: bool = switch(
        "consumer",
        "M-STATIC-13",
        "F-REPLAY-07",
        "V-123",
        says="an earlier instance id of a member stays mapped to it forever",
    )
    fault_new_instance_has_no_target: bool = switch(
        "consumer",
        "M-HB-07",
        "LIV-16",
        says="a known member that comes with a new instance id is reconciled with an empty target",
    )
    fault_stale_subscription_type: bool = switch(
        "consumer",
        "M-TGT-05",
        "M-TGT-06",
        "LIV-13",
        "V-42",
        says="a target may be computed with the subscription type from before the request",
    )
    fault_resolved_regex_change_no_bump: bool = switch(
        "consumer",
        "LIV-15",
        says="a member that changes to an unresolved regex loses its topics without a new epoch",
    )
    fault_rejoin_confirms_revocation: bool = switch(
        "consumer",
        "M-FENCE-07",
        "INV-KIP-09",
        says="epoch 0 of a present member confirms its revocation, although the request may be a late copy",
    )
    fault_absent_assignor_elected: bool = switch(
        "consumer", "M-TGT-02", says="votes count for an assignor that is no longer configured, and it may win"
    )
    fault_absent_partition_fails: bool = switch(
        "consumer",
        "A-UHET-06",
        "X-UP-05",
        says="an assignor fails on a partition of the last target that its topic does not have",
    )
    fault_replacement_merges_members: bool = switch(
        "consumer",
        "M-STATIC-15",
        "A-UHOM-08",
        says="a present member may replace another; its earlier partitions are lost",
    )
    fault_tied_vote_bumps: bool = switch(
        "consumer",
        "M-HB-15",
        "M-TGT-02",
        "LIV-17",
        says="in a tied vote, one request may see two winners, and begins a new epoch because of that",
    )
    old_full_group_refuses_statics: bool = switch(
        "consumer", "V-120", says="before 4.4 a full group rejects a static member that returns"
    )
    old_vote_keeps_epoch: bool = switch(
        "consumer", "V-121", says="before 4.4 a vote that elects another assignor begins no epoch"
    )
    old_emptied_group_keeps_target_epoch: bool = switch(
        "consumer",
        "V-122",
        says="before 4.4 the departure of the last member writes a group epoch, but no target epoch",
    )
    old_replacement_rewrites_target: bool = switch(
        "consumer", "V-127", says="before 4.4 a replacement's target is written again although it is unchanged"
    )
    old_epochs_start_at_zero: bool = switch(
        "consumer",
        "V-30",
        "V-31",
        says="before 4.3 a group begins at epoch 0, and its first member bumps it with any subscription",
    )
    old_known_member_at_zero_fenced: bool = switch(
        "consumer", "V-32", says="up to 4.1 epoch 0 from a known member is fenced"
    )
    old_regex_removal_keeps_epoch: bool = switch("consumer", "V-33", says="in 4.0 dropping a regex begins no new epoch")
    old_partition_metadata: bool = switch(
        "consumer",
        "V-34",
        "V-35",
        "V-36",
        "V-37",
        "V-66",
        "V-71",
        "V-72",
        "V-136",
        says="4.0 stores the partitions of subscribed topics in a separate record; later releases store a hash",
    )
    old_no_periodic_regex_refresh: bool = switch(
        "consumer", "V-10", says="4.0 resolves a regex again only when topics are added"
    )
    old_no_assignment_interval: bool = switch(
        "consumer",
        "V-11",
        "V-38",
        "V-39",
        "V-40",
        "V-41",
        "V-63",
        "V-64",
        "V-73",
        "V-76",
        says="before 4.3 targets follow each other without an interval, and have no timestamp",
    )
    old_group_config_unclamped: bool = switch(
        "consumer", "V-12", says="before 4.3 a group's own settings apply even outside the broker's bounds"
    )
    old_whole_target: bool = switch(
        "consumer",
        "V-50",
        "V-51",
        says="up to 4.1 the whole target is reconciled, whatever the member's current subscription",
    )
    old_prune_keeps_previous_epoch: bool = switch(
        "consumer", "V-51", says="in 4.2 pruning a target leaves the previous epoch as it was"
    )
    old_revocation_advances_epoch: bool = switch(
        "consumer", "V-52", says="up to 4.1 a confirmed revocation advances the member by one epoch"
    )
    old_no_assignment_epochs: bool = switch(
        "consumer",
        "V-53",
        "V-54",
        "V-55",
        "V-74",
        "V-77",
        "O-COMMIT-36",
        says="before 4.3 the epoch at which a member got a partition is not stored",
    )
    old_describe_without_pending: bool = switch(
        "consumer", "V-16", says="before 4.3 a description omits the partitions that a member must revoke"
    )

    # Mixed groups
    fault_upgrade_without_protocol: bool = switch(
        "mixed",
        "X-UP-07",
        says="a group in its first rebalance cannot be converted, but its parked requests get responses",
    )
    fault_upgrade_answers_before_checks: bool = switch(
        "mixed", "X-UP-03", "X-UP-06", "X-UP-09", says="an upgrade responds and sets timers before its last check"
    )
    fault_upgrade_without_bump: bool = switch(
        "mixed", "X-UP-15", "LIV-16", says="an upgrade by a member that continues a classic member begins no epoch"
    )
    fault_classic_members_starve: bool = switch(
        "mixed",
        "X-HB-03",
        "X-SYNC-05",
        "LIV-14",
        "V-62",
        says="classic members are not told to rejoin while the target is older than the group",
    )
    fault_downgrade_reads_unread_metadata: bool = switch(
        "mixed", "X-DOWN-09", says="a downgrade reads metadata that no join has checked, and may fail on it"
    )
    fault_downgrade_owes: bool = switch(
        "mixed", "X-DOWN-22", says="after a downgrade a member never learns of a response that it still waits for"
    )
    fault_downgrade_loses_bump: bool = switch(
        "mixed", "X-DOWN-23", says="a downgrade loses the epoch that its own request has begun"
    )
    fault_downgrade_leaves_timers: bool = switch(
        "mixed", "X-DOWN-06", "X-DOWN-33", says="the timers of the former consumer group stay set"
    )
    fault_downgrade_leaves_topics: bool = switch(
        "mixed",
        "X-DOWN-30",
        "M-META-03",
        says="a downgraded group still gets updates of the topics of the former consumer group",
    )
    fault_join_generation_ignored: bool = switch(
        "mixed",
        "X-JOIN-06",
        "X-JOIN-10",
        "X-JOIN-12",
        "INV-KIP-09",
        says="a JoinGroup to a consumer group is accepted with any generation",
    )
    fault_downgrade_assigns_target: bool = switch(
        "mixed", "X-DOWN-04", "INV-KIP-09", says="a downgrade assigns targets, whatever partitions the members own"
    )
    fault_empty_group_counts_anew: bool = switch(
        "mixed",
        "C-JOIN-16",
        "M-VAL-22",
        "INV-CONV-01",
        says="an empty group that changes its kind restarts its epochs",
    )
    fault_upgrade_overlooks_owned: bool = switch(
        "mixed",
        "X-UP-05",
        "C-JOIN-42",
        "INV-KIP-01",
        says="an upgrade trusts assignments, and ignores partitions that cooperative members still own",
    )
    old_malformed_join_is_internal: bool = switch(
        "mixed", "V-125", says="before 4.4 (except 4.2.2) an unreadable subscription returns a server error"
    )
    old_disabled_policy_accepts_joins: bool = switch(
        "mixed", "V-60", says='before 4.3 classic members can join in spite of the policy "disabled"'
    )
    old_classic_members_follow_group_epoch: bool = switch(
        "mixed", "V-61", says="before 4.3 classic members are compared with the group's epoch, not with the target's"
    )
    old_downgrade_rebalances_by_subscription: bool = switch(
        "mixed", "V-65", says="before 4.3 a downgrade rebalances if the subscription has changed"
    )

    # Offsets
    fault_refused_commit_leaves_group: bool = switch(
        "offsets",
        "O-COMMIT-39",
        "O-COMMIT-20",
        "O-COMMIT-43",
        says="a commit without an accepted partition leaves a group in memory that has no record",
    )
    fault_fetch_without_member_fails: bool = switch(
        "offsets",
        "O-FETCH-05",
        says="a fetch with an epoch and without a member id returns a server error",
    )
    fault_expiring_offset_keeps_topic_id: bool = switch(
        "offsets",
        "O-COMMIT-14",
        "F-REC-20",
        says="an offset with an expiry time has a topic id in memory, which its record cannot store",
    )
    fault_loaded_offset_makes_group: bool = switch(
        "offsets",
        "F-REPLAY-04",
        "F-REPLAY-06",
        says="an offset in the log creates a group immediately, before the records of that group are read",
    )
    old_no_topic_ids: bool = switch("offsets", "V-02", says="4.0 stores no topic ids with offsets")
    old_transactions_without_topic_ids: bool = switch(
        "offsets", "V-129", "O-TXN-12", says="before 4.4 an offset of a transaction is stored without its topic's id"
    )
    old_partitions_deleted: bool = switch(
        "offsets",
        "V-57",
        "O-EXP-23",
        says="before 4.3 a deleted topic deletes offsets by its name and partitions, whatever topic id they have",
    )

    # Members, on the client's side
    fault_sync_load_is_thrown: bool = switch(
        "member", "K-ERR-02", "D-01", says="a SyncGroup response with COORDINATOR_LOAD_IN_PROGRESS throws out of poll"
    )
    fault_joining_skips_backoff: bool = switch(
        "member", "N-HB-07", "N-ERR-03", says="a joining member that is rejected retries at round-trip speed"
    )
    fault_leave_answer_is_fatal: bool = switch(
        "member", "N-TR-08", says="a fatal response to the leave puts a member that has left into FATAL"
    )
    fault_remaining_member_leaves: bool = switch(
        "member", "N-HB-09", says="a dynamic member that should remain in its group may send a leave"
    )
    fault_late_heartbeat_counts: bool = switch(
        "member", "N-HB-11", says="a late heartbeat response counts as the response to a later request"
    )
    fault_close_gives_up_again: bool = switch(
        "member",
        "N-CLOSE-01",
        "INV-CL-01",
        says="a close after an unsubscribe gives up the same partitions again, and reports lost ones as revoked",
    )
    fault_queued_callback_survives: bool = switch(
        "member",
        "N-TR-06",
        "N-TR-07",
        "N-TR-09",
        "N-REC-05",
        "INV-CL-01",
        says="a queued callback runs although the member has left, and its partitions are reported as lost too",
    )
    fault_revocation_mark_stays: bool = switch(
        "member", "N-REC-11", says="a partition that is given back before its revocation is never fetched again"
    )
    fault_pending_partitions_unreported: bool = switch(
        "member",
        "N-HB-05",
        "INV-KIP-09",
        says="a heartbeat omits partitions given to the application since the last reconciliation",
    )
    fault_part_acknowledged_again: bool = switch(
        "member", "N-REC-03", says="while a topic cannot be resolved, the rest is acknowledged again and again"
    )
    fault_failed_assignment_stays: bool = switch(
        "member", "N-REC-03", "N-REC-09", says="partitions whose callback threw stay assigned although withdrawn"
    )
    fault_callbacks_overtake: bool = switch(
        "member", "K-OFF-18", says="the callback of a commit that fails unsent runs before those of earlier ones"
    )
    fault_close_keeps_callbacks: bool = switch(
        "member", "K-LEAVE-04", says="a close of the classic consumer runs no callbacks of commits that end meanwhile"
    )
    fault_unknown_error_loses_records: bool = switch(
        "member", "K-FETCH-04", "INV-CL-03", says="an undefined fetch error is thrown instead of returning records"
    )
    fault_gone_partition_voids_answer: bool = switch(
        "member", "K-POS-07", says="an error for a partition that was taken away voids the leader's other results"
    )
    fault_old_look_up_serves: bool = switch(
        "member",
        "K-POS-08",
        says="a look-up sent in an earlier generation answers a later question about committed offsets",
    )
    fault_poll_skips_the_check: bool = switch(
        "member", "K-POS-07", "N-POLL-01", says="a poll of the new consumer that returns records validates no position"
    )
    fault_taken_partition_stays_queued: bool = switch(
        "member", "K-FETCH-01", says="fetched records of a partition that a group takes away stay in the queue"
    )
    fault_search_fails_twice: bool = switch(
        "member", "N-POLL-03", says="two polls throw the failure of the new consumer's search for positions"
    )
    old_no_close_options: bool = switch("member", "V-21", "V-80", says="4.0 has no options for close")
    old_no_rack_in_heartbeats: bool = switch("member", "V-90", says="4.0 never sends its rack")
    old_negative_epoch_adopted: bool = switch("member", "V-91", says="4.0 adopts a negative epoch in a response")
    old_static_remains_silently: bool = switch(
        "member", "V-92", says="in 4.1 a static member that closes to remain sends nothing"
    )
    old_backoff_jitter: bool = switch(
        "member",
        "V-93",
        says="up to 4.1 the jitter of the back-off is wrong: about half without any, nearly all others with the most",
    )
    old_leave_without_group_is_fatal: bool = switch(
        "member", "V-94", says="up to 4.1 an unknown group is fatal to a member that leaves"
    )
    old_background_revokes: bool = switch(
        "member", "V-95", says="up to 4.1 the background reconciles, even revocations, unless it commits"
    )
    old_target_topics_not_watched: bool = switch(
        "member", "V-96", says="4.0 requests no metadata of topics in a target"
    )
    old_background_replaces_assignment: bool = switch(
        "member", "V-97", says="before 4.3 the background replaces the assignment at any time"
    )
    old_fenced_member_fetches: bool = switch(
        "member", "V-98", says="before 4.3 a member that was fenced fetches until its callback has run"
    )
    old_dropped_topic_is_read: bool = switch(
        "member", "V-81", says="4.0 reads a topic that is no longer subscribed until it is taken away"
    )
    old_revoked_is_initialised: bool = switch(
        "member", "V-82", says="up to 4.1 committed offsets are looked up for partitions about to be revoked"
    )
    old_offsets_by_name: bool = switch("member", "V-99", says="up to 4.1 offset requests contain topic names")
    old_unknown_topic_fails_lookup: bool = switch(
        "member", "V-100", says="up to 4.1 an unknown topic ends a look-up of committed offsets"
    )
    old_unknown_topic_id_is_final: bool = switch(
        "member", "V-101", says="up to 4.1 a synchronous commit does not retry an unknown topic id"
    )
    old_lag_waits_for_ever: bool = switch(
        "member",
        "V-134",
        says="up to 4.3 the new consumer's request for the log's end never ends without a response",
    )
    old_shared_look_up_is_lost: bool = switch(
        "member",
        "V-135",
        says="up to 4.3 a search that shares a failed look-up of committed offsets waits until its time is over",
    )
    old_close_waits_for_coordinator: bool = switch(
        "member", "V-103", says="up to 4.1 a close waits for commits without a coordinator until its timeout"
    )

    # For the host of a coordinator: it chooses ids itself, so this is not part of the intended protocol
    draws_no_hyphens: bool = switch("host", "G-WIRE-28", "V-126", says="from 4.4 on a random UUID has no hyphen")


SWITCHES: Final = tuple(Switch(each.name, **each.metadata) for each in fields(Profile) if each.metadata)
SWITCH_NAMES: Final = tuple(each.name for each in SWITCHES)
