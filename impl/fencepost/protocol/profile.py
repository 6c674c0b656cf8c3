"""The profiles' switches: what a release of Kafka does otherwise than intended.

A profile is a set of named switches, read by coordinator, members and model alike. Each one stands for a fault
(``fault_*``; what ``intended`` does instead is in ``docs/divergences.md``) or for what releases before the newest one
do otherwise (``old_*``). On means: as that release does it. A switch says of which part of the house it is, by which
rules it goes, and what Kafka does then; in the core a function in a package ``quirks`` does that.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import Any, Final


class Part(StrEnum):
    """Of the house, from below."""

    KERNEL = "kernel"
    CLASSIC = "classic"
    CONSUMER = "consumer"
    MIXED = "mixed"
    OFFSETS = "offsets"
    MEMBER = "member"
    HOST = "host"


def switch(part: str, *rules: str, says: str) -> Any:
    """A field of a profile, off unless it is named. ``says``: what is done where it is on."""
    return field(default=False, metadata={"part": Part(part), "rules": rules, "says": says})


@dataclass(frozen=True, slots=True)
class Switch:
    """What is known of a switch without turning it on."""

    name: str
    part: Part
    rules: tuple[str, ...]
    says: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """Named switches. Off, all of them, is the intended protocol: every known fault mended."""

    name: str

    # Under every kind of group: log, timers, reads, the store of topics
    fault_parked_fail_early: bool = switch(
        "kernel",
        "C-JOIN-70",
        "C-JOIN-16",
        "F-RT-13",
        says="a parked JoinGroup or SyncGroup that wrote nothing is failed when earlier writes are late",
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
        says="a member that a failed append brings back has lost the timers that the step had cancelled",
    )
    fault_failed_deletion_lists_twice: bool = switch(
        "kernel",
        "C-ADM-05",
        "F-RT-08",
        says="what came back by a failed append is listed twice until the high watermark has passed",
    )
    fault_deletion_waits_twice: bool = switch(
        "kernel", "C-ADM-09", says="DeleteGroups first asks the share groups, which waits for earlier writes"
    )
    fault_superseded_records_loaded: bool = switch(
        "kernel",
        "F-REPLAY-18",
        "M-PE-02",
        "F-REPLAY-06",
        says="a load applies every record it reads, though a later one of its key has taken its place",
    )
    fault_timer_keys_collide: bool = switch(
        "kernel",
        "M-TMR-01",
        "C-TMR-11",
        says="timers have texts for keys, and two of different groups may have the same one",
    )
    old_checks_after_load: bool = switch(
        "kernel",
        "V-29",
        says="4.0 looks at the fields of a heartbeat only when it knows that the partition is its own and loaded",
    )
    old_no_image_is_minus_one: bool = switch(
        "kernel",
        "V-43",
        says="up to 4.1 the image before the first one has version -1: the first one counts as one with a new topic",
    )

    # Classic groups
    fault_new_member_added_survives: bool = switch(
        "classic",
        "C-JOIN-71",
        says="the mark that a member was added outlives the initial delay and extends a later one",
    )
    fault_refusal_leaves_join_phase: bool = switch(
        "classic", "C-JOIN-23", "D-18", says="a refusal for capacity does not look whether it has ended the join phase"
    )
    fault_static_return_counts_as_new: bool = switch(
        "classic",
        "C-JOIN-75",
        says="who comes with a known instance id and no member id counts as somebody new for the capacity",
    )
    fault_duplicate_protocol_accepted: bool = switch(
        "classic",
        "C-JOIN-72",
        "C-ST-27",
        says="a protocol that is listed twice is accepted, and its votes never come out even",
    )
    fault_replacement_keeps_pending_sync: bool = switch(
        "classic", "C-STATIC-16", says="who was replaced is still waited for in the sync phase"
    )
    fault_second_replacement_mixes_undo: bool = switch(
        "classic",
        "C-STATIC-18",
        says="undoing a replacement that was itself replaced spoils the counts of supported protocols",
    )
    fault_leave_forgets_parked_sync: bool = switch(
        "classic", "C-LEAVE-24", says="the parked SyncGroup of a member that LeaveGroup removes is never answered"
    )
    fault_every_leader_sync_appends: bool = switch(
        "classic", "C-SYNC-19", says="every SyncGroup of the leader appends an assignment, also while one is on its way"
    )
    fault_timers_outlive_reverted_group: bool = switch(
        "classic", "C-TMR-12", says="the timers of a group that is gone act on the next one of its name"
    )
    fault_bad_subscription_is_thrown: bool = switch(
        "classic",
        "G-DATA-10",
        "C-ST-27",
        "V-124",
        says="a subscription with impossible lengths is thrown where nobody catches it",
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
        says="a static member that comes back at epoch 0 under its own id is refused as if another had its instance",
    )
    fault_relabelled_instance_stays: bool = switch(
        "consumer",
        "M-STATIC-13",
        "F-REPLAY-07",
        "V-123",
        says="the instance id that a member had before stays mapped to it for ever",
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
        says="a target may be computed with the subscription type of before the request",
    )
    fault_resolved_regex_change_no_bump: bool = switch(
        "consumer",
        "LIV-15",
        says="who changes to a regex that is not resolved yet loses its topics without a new epoch",
    )
    fault_rejoin_confirms_revocation: bool = switch(
        "consumer",
        "M-FENCE-07",
        "INV-KIP-09",
        says="epoch 0 of a member that is there confirms what it is to revoke, though it may be a late copy",
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
        "consumer", "M-STATIC-15", "A-UHOM-08", says="a member with a place may take another's: what it had is nobody's"
    )
    fault_tied_vote_bumps: bool = switch(
        "consumer",
        "M-HB-15",
        "M-TGT-02",
        "LIV-17",
        says="of a tie of votes one request may see two winners, and begins a new epoch for that",
    )
    old_full_group_refuses_statics: bool = switch(
        "consumer", "V-120", says="before 4.4 a full group refuses a static member that comes back"
    )
    old_vote_keeps_epoch: bool = switch(
        "consumer", "V-121", says="before 4.4 a vote that elects another assignor begins no epoch"
    )
    old_emptied_group_keeps_target_epoch: bool = switch(
        "consumer",
        "V-122",
        says="before 4.4 the last member's departure writes a group epoch, and no epoch of the target",
    )
    old_replacement_rewrites_target: bool = switch(
        "consumer", "V-127", says="before 4.4 a replacement's target is written again though it is unchanged"
    )
    old_epochs_start_at_zero: bool = switch(
        "consumer",
        "V-30",
        "V-31",
        says="before 4.3 a group begins at epoch 0, and its first member bumps it whatever it subscribes to",
    )
    old_known_member_at_zero_fenced: bool = switch(
        "consumer", "V-32", says="up to 4.1 epoch 0 from a member that is known is fenced"
    )
    old_regex_removal_keeps_epoch: bool = switch(
        "consumer", "V-33", says="in 4.0 a regex that is given up begins no epoch"
    )
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
        says="4.0 keeps the partitions of subscribed topics in a record of their own; later releases keep a hash",
    )
    old_no_periodic_regex_refresh: bool = switch(
        "consumer", "V-10", says="4.0 resolves a regex anew only when topics come"
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
        says="before 4.3 targets follow each other without an interval, and have no time",
    )
    old_group_config_unclamped: bool = switch(
        "consumer", "V-12", says="before 4.3 a group's own settings count beyond the broker's bounds"
    )
    old_whole_target: bool = switch(
        "consumer",
        "V-50",
        "V-51",
        says="up to 4.1 the whole target is reconciled, whatever the member subscribes to now",
    )
    old_prune_keeps_previous_epoch: bool = switch(
        "consumer", "V-51", says="in 4.2 what is pruned leaves the previous epoch as it was"
    )
    old_revocation_advances_epoch: bool = switch(
        "consumer", "V-52", says="up to 4.1 a confirmed revocation moves the member on by one epoch"
    )
    old_no_assignment_epochs: bool = switch(
        "consumer",
        "V-53",
        "V-54",
        "V-55",
        "V-74",
        "V-77",
        says="before 4.3 nobody knows since which epoch a member has a partition",
    )
    old_describe_without_pending: bool = switch(
        "consumer", "V-16", says="before 4.3 a description leaves out what a member is to revoke"
    )

    # Mixed groups
    fault_upgrade_without_protocol: bool = switch(
        "mixed",
        "X-UP-07",
        says="a group in its first rebalance cannot be converted, and its parked requests are answered all the same",
    )
    fault_upgrade_answers_before_checks: bool = switch(
        "mixed", "X-UP-03", "X-UP-06", "X-UP-09", says="an upgrade answers and sets timers before its last check"
    )
    fault_upgrade_without_bump: bool = switch(
        "mixed", "X-UP-15", "LIV-16", says="an upgrade by who continues a classic member begins no epoch"
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
        "mixed", "X-DOWN-09", says="a downgrade reads what no join has checked, and may fail on it"
    )
    fault_downgrade_owes: bool = switch(
        "mixed", "X-DOWN-22", says="after a downgrade nobody tells a member what it still waits for"
    )
    fault_downgrade_loses_bump: bool = switch(
        "mixed", "X-DOWN-23", says="a downgrade forgets the epoch that its own request has begun"
    )
    fault_downgrade_leaves_timers: bool = switch(
        "mixed", "X-DOWN-06", "X-DOWN-33", says="the timers of the consumer group that was stay armed"
    )
    fault_downgrade_leaves_topics: bool = switch(
        "mixed",
        "X-DOWN-30",
        "M-META-03",
        says="a downgraded group goes on hearing of the topics of the consumer group that it was",
    )
    fault_join_generation_ignored: bool = switch(
        "mixed",
        "X-JOIN-06",
        "X-JOIN-10",
        "X-JOIN-12",
        "INV-KIP-09",
        says="a JoinGroup to a consumer group is taken whatever generation it tells",
    )
    fault_downgrade_assigns_target: bool = switch(
        "mixed", "X-DOWN-04", "INV-KIP-09", says="a downgrade assigns targets, whatever the members hold"
    )
    fault_empty_group_counts_anew: bool = switch(
        "mixed",
        "C-JOIN-16",
        "M-VAL-22",
        "INV-CONV-01",
        says="an empty group that changes its kind counts its epochs anew",
    )
    fault_upgrade_overlooks_owned: bool = switch(
        "mixed",
        "X-UP-05",
        "C-JOIN-42",
        "INV-KIP-01",
        says="an upgrade takes assignments at their word, and not what cooperative members still own",
    )
    old_malformed_join_is_internal: bool = switch(
        "mixed", "V-125", says="before 4.4 (but 4.2.2) an unreadable subscription is answered as a fault of the server"
    )
    old_disabled_policy_accepts_joins: bool = switch(
        "mixed", "V-60", says='before 4.3 the policy "disabled" keeps no classic member from joining'
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
        says="a commit of which no partition is accepted leaves a group in memory that no record tells of",
    )
    fault_fetch_without_member_fails: bool = switch(
        "offsets",
        "O-FETCH-05",
        says="a fetch with an epoch and no member id is answered as a fault of the server",
    )
    fault_expiring_offset_keeps_topic_id: bool = switch(
        "offsets",
        "O-COMMIT-14",
        "F-REC-20",
        says="an offset with a time to expire has a topic id in memory, for which its record has no place",
    )
    fault_loaded_offset_makes_group: bool = switch(
        "offsets",
        "F-REPLAY-04",
        "F-REPLAY-06",
        says="an offset that is read from the log makes a group at once, before the records of its own group come",
    )
    old_no_topic_ids: bool = switch("offsets", "V-02", says="4.0 stores no topic ids with offsets")
    old_transactions_without_topic_ids: bool = switch(
        "offsets", "V-129", "O-TXN-12", says="before 4.4 an offset of a transaction is stored without its topic's id"
    )
    old_partitions_deleted: bool = switch(
        "offsets",
        "V-57",
        "O-EXP-23",
        says="before 4.3 a deleted topic takes offsets along by its name and partitions, whatever id they have",
    )

    # Members, on the client's side
    fault_sync_load_is_thrown: bool = switch(
        "member", "K-ERR-02", "D-01", says='a SyncGroup that is answered "loading" throws out of poll'
    )
    fault_joining_skips_backoff: bool = switch(
        "member", "N-HB-07", "N-ERR-03", says="a joining member that is refused asks again at round-trip speed"
    )
    fault_leave_answer_is_fatal: bool = switch(
        "member", "N-TR-08", says="a fatal answer to the leave is fatal to a member that has left"
    )
    fault_remaining_member_leaves: bool = switch(
        "member", "N-HB-09", says="a dynamic member that is to remain in its group may send a leave"
    )
    fault_late_heartbeat_counts: bool = switch(
        "member", "N-HB-11", says="the answer to a heartbeat of before counts for whatever was sent since"
    )
    fault_close_tells_again: bool = switch(
        "member",
        "N-CLOSE-01",
        "INV-CL-01",
        says="a close after an unsubscribe gives up once more what was given up, and as revoked what was lost",
    )
    fault_queued_callback_survives: bool = switch(
        "member",
        "N-TR-06",
        "N-TR-07",
        "N-TR-09",
        "N-REC-05",
        "INV-CL-01",
        says="what waits for a poll is told although the member has left, and the same partitions are told as lost",
    )
    fault_revocation_mark_stays: bool = switch(
        "member", "N-REC-11", says="a partition that was to be revoked and is given back is never fetched again"
    )
    fault_untold_partitions_unreported: bool = switch(
        "member",
        "N-HB-05",
        "INV-KIP-09",
        says="a heartbeat leaves out what the application was given since the last reconciliation",
    )
    fault_part_acknowledged_again: bool = switch(
        "member", "N-REC-03", says="while a topic cannot be resolved the rest is acknowledged again and again"
    )
    fault_failed_assignment_stays: bool = switch(
        "member", "N-REC-03", "N-REC-09", says="what a callback that threw was to add stays although it was withdrawn"
    )
    fault_callbacks_overtake: bool = switch(
        "member", "K-OFF-18", says="the callback of a commit that fails unsent comes before those of earlier ones"
    )
    fault_close_keeps_callbacks: bool = switch(
        "member", "K-LEAVE-04", says="a close of the old consumer calls no callback of commits that end meanwhile"
    )
    fault_unknown_error_loses_records: bool = switch(
        "member", "K-FETCH-04", "INV-CL-03", says="a fetch error that nobody knows is thrown instead of records"
    )
    fault_gone_partition_voids_answer: bool = switch(
        "member", "K-POS-07", says="an error about a partition that was taken away voids what leaders say of epochs"
    )
    fault_old_look_up_serves: bool = switch(
        "member",
        "K-POS-08",
        says="what was committed when a member of a former generation asked is taken for the present",
    )
    fault_poll_skips_the_check: bool = switch(
        "member", "K-POS-07", "N-POLL-01", says="a poll of the new consumer with records to hand out checks no position"
    )
    fault_taken_partition_stays_queued: bool = switch(
        "member", "K-FETCH-01", says="what was fetched of a partition that a group takes away stays in the queue"
    )
    fault_search_fails_twice: bool = switch(
        "member", "N-POLL-03", says="what the new consumer's search for positions has met is thrown by two polls"
    )
    old_no_close_options: bool = switch("member", "V-21", "V-80", says="4.0 has no options of close")
    old_no_rack_in_heartbeats: bool = switch("member", "V-90", says="4.0 never tells its rack")
    old_negative_epoch_adopted: bool = switch("member", "V-91", says="4.0 takes over an answer's negative epoch")
    old_static_remains_silently: bool = switch(
        "member", "V-92", says="in 4.1 a static member that closes to remain says nothing"
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
        "member", "V-95", says="up to 4.1 the background reconciles, revocations too, unless it commits"
    )
    old_target_topics_not_watched: bool = switch(
        "member", "V-96", says="4.0 asks for no metadata of topics that a target names"
    )
    old_background_replaces_assignment: bool = switch(
        "member", "V-97", says="before 4.3 the background exchanges the assignment at any time"
    )
    old_fenced_member_fetches: bool = switch(
        "member", "V-98", says="before 4.3 a member that was fenced fetches until its callback has run"
    )
    old_dropped_topic_is_read: bool = switch(
        "member", "V-81", says="4.0 reads a topic that is not subscribed to any more until it is taken away"
    )
    old_revoked_is_initialised: bool = switch(
        "member", "V-82", says="up to 4.1 a committed offset is looked up for what is about to be revoked"
    )
    old_offsets_by_name: bool = switch("member", "V-99", says="up to 4.1 requests about offsets name their topics")
    old_unknown_topic_fails_lookup: bool = switch(
        "member", "V-100", says="up to 4.1 an unknown topic ends a look-up of committed offsets"
    )
    old_unknown_topic_id_is_final: bool = switch(
        "member", "V-101", says="up to 4.1 a synchronous commit does not try an unknown topic id again"
    )
    old_lag_waits_for_ever: bool = switch(
        "member",
        "V-134",
        says="up to 4.3 the new consumer's question for the log's end is never over without an answer",
    )
    old_shared_look_up_is_lost: bool = switch(
        "member",
        "V-135",
        says="up to 4.3 who shares a look-up of committed offsets that fails for now waits until the time is over",
    )
    old_close_waits_for_coordinator: bool = switch(
        "member", "V-103", says="up to 4.1 a close waits for commits that found no coordinator until its time is over"
    )

    # Of the host of a coordinator: what it draws is its own matter, and so no part of what is intended
    draws_no_hyphens: bool = switch("host", "G-WIRE-28", "V-126", says="from 4.4 on a UUID that is drawn has no hyphen")


SWITCHES: Final = tuple(Switch(each.name, **each.metadata) for each in fields(Profile) if each.metadata)
SWITCH_NAMES: Final = tuple(each.name for each in SWITCHES)
