"""Small choices of the protocol, as values that the coordinator reads.

The default of a field is the intended rule. ``coordinator.quirks.values`` has the values of Kafka's releases.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.profile import Profile
from fencepost.quirks import Quirks, quirks_of, values_of


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules of a profile; get them with ``rules_of``. Each profile has one such object."""

    profile: Profile
    quirks: Quirks | None

    # For every kind of group
    fields_checked_first: bool = True  #: any coordinator checks the fields of a ConsumerGroupHeartbeat (M-VAL-04)
    parked_requests_wait: bool = True  #: a parked request does not fail with the writes of others (C-JOIN-70, F-RT-13)
    append_failure_restores_timers: bool = True  #: of the members that it restores (M-HB-13, M-LEAVE-03, M-TMR-02)
    superseded_records_skipped: bool = True  #: a load applies the last record of each key only (F-REPLAY-18)
    first_image_version: int = 0  #: the version of the image of topics before the first one (M-RX-04)
    group_configs_clamped: bool = True  #: settings of a group are within the bounds of the broker (M-CFG-01, G-CFG-28)

    # Classic groups
    phase_forgets_new_members: bool = True  #: members that join in one phase do not extend a later one (C-JOIN-71)
    rejection_may_complete: bool = True  #: a rejection for capacity may end the join phase (C-JOIN-23)
    static_members_keep_place: bool = True  #: an instance id alone identifies a member of a full group (C-JOIN-75)
    repeated_protocols_rejected: bool = True  #: a JoinGroup lists each protocol once (C-JOIN-72)
    replacement_owes_sync: bool = True  #: a sync phase waits for the new id of a static member (C-STATIC-16)
    leave_answers_sync: bool = True  #: a member that leaves gets an answer to its parked SyncGroup (C-LEAVE-24)
    one_assignment_at_a_time: bool = True  #: no SyncGroup writes while an assignment is being appended (C-SYNC-19)
    group_timers_cancelled: bool = True  #: a group that ends has no timers (C-TMR-12)
    bad_lengths_are_thrown: bool = False  #: impossible lengths in a subscription are an internal error (G-DATA-10)

    # Consumer groups: members
    static_member_has_place: bool = True  #: a full group accepts a static member that returns (M-VAL-28)
    known_member_may_join: bool = True  #: a known member may join again at any time (M-FENCE-07)
    static_member_may_rejoin: bool = True  #: the holder of an instance id may join again with it (M-STATIC-02)
    present_member_replaces_none: bool = True  #: a member takes no place beside its own (M-STATIC-15)
    join_confirms_nothing: bool = True  #: the join of a known member claims nothing about partitions (M-FENCE-07)
    relabelled_instance_freed: bool = True  #: a new instance id frees the earlier one (M-STATIC-13)
    instance_freed_by_its_member: bool = True  #: an instance id stays if another member has it (F-REPLAY-07)

    # Consumer groups: epochs and targets
    first_epoch: int = 1  #: the epoch of a group that does not replace another (G-DATA-20)
    zero_epoch_ends: bool = False  #: the first member ends epoch 0, whatever it subscribes to (V-31)
    epochs_continue: bool = True  #: a group continues from the epoch of the one that it replaces (C-JOIN-16, M-VAL-22)
    votes_bump: bool = True  #: a vote that elects another assignor begins an epoch (M-HB-14)
    absent_assignor_loses: bool = True  #: votes for an assignor that is not configured do not count (M-TGT-02)
    dropped_regex_bumps: bool = True  #: a member that gives up its regex begins an epoch (M-HB-03)
    lost_topics_bump: bool = True  #: topics lost with a regex begin an epoch (LIV-15, M-HB-03)
    regexes_refreshed: bool = True  #: an old resolution is resolved again (M-RX-03, G-CFG-33)
    due_target_sees_subscriptions: bool = True  #: a target due earlier is of the subscriptions now (M-TGT-05, M-TGT-06)
    absent_partitions_left_out: bool = True  #: an assignor gets only partitions that exist (A-UHET-06)
    empty_group_has_target_epoch: bool = True  #: the target epoch follows when the last member leaves (M-LEAVE-04)
    has_assignment_interval: bool = (
        True  #: there is an interval between targets, which have a time (M-TGT-08, G-DATA-32)
    )
    has_partition_metadata: bool = False  #: topics are known by a record of their partitions, not by a hash (V-34)

    # Consumer groups: reconciliation
    has_assignment_epochs: bool = True  #: each partition has the epoch at which it was assigned (M-PE-06, O-COMMIT-36)
    whole_target_counts: bool = False  #: also topics to which the member no longer subscribes (M-REC-15, M-REC-25)
    pruning_moves_previous_epoch: bool = True  #: a pruned member has its epoch as the previous one too (M-REC-25)
    revocation_advances_epoch: bool = False  #: a complete revocation moves the member on by one epoch (M-REC-04)
    pending_revocation_described: bool = True  #: a description shows partitions to be revoked as assigned (M-DESC-01)

    # Groups with members of both protocols
    policy_checked_at_joins: bool = True  #: the policy "disabled" keeps classic members out (X-POL-04)
    join_generation_checked: bool = True  #: a JoinGroup must be up to date with the group (X-JOIN-06, X-JOIN-12)
    unreadable_join_is_internal: bool = False  #: unreadable metadata is an internal error (X-JOIN-09)
    all_metadata_read: bool = True  #: all protocols of a member are read when it joins (X-DOWN-09, X-SYNC-07)
    upgrade_needs_protocol: bool = True  #: a group in its first rebalance is not upgraded yet (X-UP-07)
    upgrade_answers_last: bool = True  #: waiting members are answered after all checks (X-UP-03, X-UP-09)
    upgrade_bumps: bool = True  #: an upgrade begins an epoch (X-UP-15, LIV-16)
    downgrade_follows_subscription: bool = False  #: a changed subscription decides on a rebalance (V-65)
    downgrade_waits_for_targets: bool = True  #: so does a member that waits for a part of its target (X-DOWN-22)
    downgrade_keeps_bump: bool = True  #: the classic group has the epoch that this request begins (X-DOWN-23)
    downgrade_ends_timers: bool = True  #: the timers of the consumer group are cancelled (X-DOWN-33)

    # Offsets
    error_without_member_id: ErrorCode = ErrorCode.UNKNOWN_MEMBER_ID  #: of a fetch with an epoch only (O-FETCH-05)

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Profile]]:
        return rules_of, (self.profile,)


@lru_cache(maxsize=256)
def rules_of(profile: Profile) -> Rules:
    """Return the rules of this profile."""
    values: dict[str, Any] = values_of(Rules, profile)
    return Rules(profile, quirks_of(profile), **values)
