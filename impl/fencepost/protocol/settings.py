"""Broker settings and profiles.

A profile is a set of named switches. Each switch stands for one fault or one difference between releases, cites its
rule, and is read by the coordinator and by the model alike. ``True`` means: do as that release of Kafka does. A switch
``fault_*`` is a fault, and what ``intended`` does instead is in ``docs/divergences.md``; one ``old_*`` is what releases
before the newest one do otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from enum import StrEnum
from typing import Final

from .shapes import fault


class MigrationPolicy(StrEnum):
    """Which conversions between the protocols are allowed (X-POL-01…04)."""

    BIDIRECTIONAL = "bidirectional"
    UPGRADE = "upgrade"
    DOWNGRADE = "downgrade"
    DISABLED = "disabled"

    @property
    def upgrades(self) -> bool:
        return self in (MigrationPolicy.BIDIRECTIONAL, MigrationPolicy.UPGRADE)

    @property
    def downgrades(self) -> bool:
        return self in (MigrationPolicy.BIDIRECTIONAL, MigrationPolicy.DOWNGRADE)


class BadSettings(ValueError):
    """No coordinator can run with these settings; the message says which, and what they must be."""


#: The assignors that a coordinator has (A-UHOM-*, A-UHET-*, A-SRNG-*).
ASSIGNORS: Final = ("uniform", "range")


@dataclass(frozen=True, slots=True)
class Settings:
    """Broker configuration that groups use. Times in milliseconds.

    Raises ``BadSettings`` for what contradicts itself, as a broker does when it starts: a value outside its own bounds,
    a heartbeat interval that is no shorter than the session timeout, assignors that nobody knows. Not here, but in a
    broker, passes a negative initial delay, and bounds of classic sessions that leave none (G-CFG-36).
    """

    group_min_session_timeout_ms: int = 6_000  # G-CFG-01
    group_max_session_timeout_ms: int = 1_800_000  # G-CFG-02
    group_initial_rebalance_delay_ms: int = 3_000  # G-CFG-03
    group_max_size: int = 2_147_483_647  # G-CFG-04
    offsets_commit_timeout_ms: int = 5_000  # G-CFG-25: the timeout of every write operation
    new_member_join_timeout_ms: int = 300_000  # G-CFG-26, a constant in Kafka
    consumer_protocol_enabled: bool = True  # G-CFG-29
    group_consumer_session_timeout_ms: int = 45_000  # G-CFG-10
    group_consumer_min_session_timeout_ms: int = 45_000  # G-CFG-10; bounds of the group's own value (G-CFG-28)
    group_consumer_max_session_timeout_ms: int = 60_000  # G-CFG-10
    group_consumer_heartbeat_interval_ms: int = 5_000  # G-CFG-11
    group_consumer_min_heartbeat_interval_ms: int = 5_000  # G-CFG-11
    group_consumer_max_heartbeat_interval_ms: int = 15_000  # G-CFG-11
    group_consumer_max_size: int = 2_147_483_647  # G-CFG-12
    group_consumer_assignors: tuple[str, ...] = ("uniform", "range")  # G-CFG-13; the first is the default
    group_consumer_migration_policy: MigrationPolicy = MigrationPolicy.BIDIRECTIONAL  # G-CFG-14
    group_consumer_assignment_interval_ms: int = 1_000  # G-CFG-30
    group_consumer_min_assignment_interval_ms: int = 0  # G-CFG-31
    group_consumer_max_assignment_interval_ms: int = 15_000  # G-CFG-31
    group_consumer_regex_refresh_interval_ms: int = 600_000  # G-CFG-33
    regex_min_refresh_interval_ms: int = 10_000  # G-CFG-33, a constant in Kafka
    metadata_refresh_interval_ms: int = 2_147_483_647  # G-CFG-27, a constant in Kafka

    def __post_init__(self) -> None:
        wrong = fault(self)
        if wrong is not None:
            raise BadSettings(wrong)
        for name, least in _LEAST.items():
            if getattr(self, name) < least:
                raise BadSettings(f"{name} must be {least} or more, not {getattr(self, name)}")
        for lower, upper in _ORDERED:
            if getattr(self, lower) > getattr(self, upper):
                raise BadSettings(
                    f"{lower} must not be above {upper}, but {getattr(self, lower)} is above {getattr(self, upper)}"
                )
        heartbeat, session = self.group_consumer_heartbeat_interval_ms, self.group_consumer_session_timeout_ms
        if heartbeat >= session:
            raise BadSettings(
                "group_consumer_heartbeat_interval_ms must be below group_consumer_session_timeout_ms, but "
                f"{heartbeat} is not below {session}"
            )
        known = ", ".join(ASSIGNORS)
        if not self.group_consumer_assignors:
            raise BadSettings(f"group_consumer_assignors must name at least one assignor; there are {known}")
        for name in self.group_consumer_assignors:
            if name not in ASSIGNORS:
                raise BadSettings(f"group_consumer_assignors has {name!r}, which nobody knows; there are {known}")


#: Neighbours of which the first must not be above the second.
_ORDERED: Final = (
    ("group_min_session_timeout_ms", "group_max_session_timeout_ms"),
    *(
        (f"group_consumer_{low}{name}", f"group_consumer_{high}{name}")
        for name in ("session_timeout_ms", "heartbeat_interval_ms", "assignment_interval_ms")
        for low, high in (("min_", "max_"), ("min_", ""), ("", "max_"))
    ),
)
_NONE_AT_ALL: Final = ("group_min_session_timeout_ms", "group_max_session_timeout_ms")
#: The least value of each number: of sizes and timeouts 1, of what may be none 0.
_LEAST: Final = {
    field.name: int(
        field.name not in _NONE_AT_ALL and any(word in field.name for word in ("size", "timeout", "heartbeat"))
    )
    for field in fields(Settings)
    if field.type == "int"
}


@dataclass(frozen=True, slots=True)
class Profile:
    """Named switches. Defaults are the intended protocol: every known fault mended."""

    name: str
    fault_new_member_added_survives: bool = False  # C-JOIN-71
    fault_refusal_leaves_join_phase: bool = False  # C-JOIN-23, D-18
    fault_static_return_counts_as_new: bool = False  # C-JOIN-75
    fault_duplicate_protocol_accepted: bool = False  # C-JOIN-72, C-ST-27
    fault_parked_fail_early: bool = False  # C-JOIN-70, C-JOIN-16(ii), F-RT-13
    fault_replacement_keeps_pending_sync: bool = False  # C-STATIC-16
    fault_second_replacement_mixes_undo: bool = False  # C-STATIC-18
    fault_leave_forgets_parked_sync: bool = False  # C-LEAVE-24
    fault_every_leader_sync_appends: bool = False  # C-SYNC-19
    fault_timeout_undoes_memory: bool = False  # C-SYNC-33, C-STATIC-06, F-RT-09
    fault_timers_outlive_reverted_group: bool = False  # C-TMR-12
    fault_bad_subscription_is_thrown: bool = False  # G-DATA-10, C-ST-27
    fault_deletion_waits_twice: bool = False  # C-ADM-09, the share-group phase
    fault_failed_deletion_lists_twice: bool = False  # C-ADM-05, F-RT-08
    fault_sync_load_is_thrown: bool = False  # K-ERR-02, the consumer's side of D-01
    # consumer groups
    fault_empty_group_dropped_from_memory: bool = False  # C-JOIN-15
    fault_static_rejoin_unreleased: bool = False  # M-STATIC-02, L-06
    fault_relabelled_instance_stays: bool = False  # M-STATIC-13, F-REPLAY-07
    fault_new_instance_has_no_target: bool = False  # M-HB-07, LIV-16
    fault_stale_subscription_type: bool = False  # M-TGT-05, M-TGT-06, LIV-13, V-42
    fault_resolved_regex_change_no_bump: bool = False  # LIV-15
    fault_failed_append_loses_timers: bool = False  # M-HB-13, M-LEAVE-03, M-TMR-02
    fault_rejoin_confirms_revocation: bool = False  # M-FENCE-07, INV-KIP-09
    fault_absent_assignor_elected: bool = False  # M-TGT-02
    fault_absent_partition_fails: bool = False  # A-UHET-06, X-UP-05
    fault_replacement_merges_members: bool = False  # M-STATIC-15, A-UHOM-08
    fault_superseded_records_loaded: bool = False  # F-REPLAY-18, M-PE-02, F-REPLAY-06
    fault_timer_keys_collide: bool = False  # M-TMR-01, C-TMR-11
    fault_tied_vote_bumps: bool = False  # M-HB-15, M-TGT-02, LIV-17
    # members of consumer groups, client side
    fault_joining_skips_backoff: bool = False  # N-HB-07, N-ERR-03
    fault_leave_answer_is_fatal: bool = False  # N-TR-08
    fault_remaining_member_leaves: bool = False  # N-HB-09
    fault_late_heartbeat_counts: bool = False  # N-HB-11
    fault_queued_callback_survives: bool = False  # N-TR-06, N-TR-07, N-TR-09, INV-CL-01
    fault_revocation_mark_stays: bool = False  # N-REC-11
    fault_untold_partitions_unreported: bool = False  # N-HB-05, INV-KIP-09
    fault_part_acknowledged_again: bool = False  # N-REC-03
    fault_failed_assignment_stays: bool = False  # N-REC-03, N-REC-09
    # mixed groups
    fault_upgrade_without_protocol: bool = False  # X-UP-07
    fault_upgrade_answers_before_checks: bool = False  # X-UP-03, X-UP-06, X-UP-09
    fault_upgrade_without_bump: bool = False  # X-UP-15, LIV-16
    fault_classic_members_starve: bool = False  # X-HB-03, X-SYNC-05, LIV-14
    fault_downgrade_reads_unread_metadata: bool = False  # X-DOWN-09
    fault_downgrade_owes: bool = False  # X-DOWN-22
    fault_downgrade_loses_bump: bool = False  # X-DOWN-23
    fault_downgrade_leaves_timers: bool = False  # X-DOWN-06, X-DOWN-33
    fault_downgrade_leaves_topics: bool = False  # X-DOWN-30, M-META-03
    fault_join_generation_ignored: bool = False  # X-JOIN-06, X-JOIN-10, X-JOIN-12, INV-KIP-09
    fault_downgrade_assigns_target: bool = False  # X-DOWN-04, INV-KIP-09
    fault_empty_group_counts_anew: bool = False  # C-JOIN-16, M-VAL-22, INV-CONV-01
    fault_upgrade_overlooks_owned: bool = False  # X-UP-05, C-JOIN-42, INV-KIP-01
    # releases before 4.4
    old_full_group_refuses_statics: bool = False  # V-120 (4.0–4.3)
    old_vote_keeps_epoch: bool = False  # V-121 (4.0–4.3)
    old_emptied_group_keeps_target_epoch: bool = False  # V-122 (4.0–4.3)
    old_replacement_rewrites_target: bool = False  # V-127 (4.0–4.3)
    old_malformed_join_is_internal: bool = False  # V-125 (4.0–4.2.1, 4.3)
    # releases before 4.3
    old_epochs_start_at_zero: bool = False  # V-30, V-31 (4.0–4.2)
    old_checks_after_load: bool = False  # V-29 (4.0)
    old_known_member_at_zero_fenced: bool = False  # V-32 (4.0, 4.1)
    old_regex_removal_keeps_epoch: bool = False  # V-33 (4.0)
    old_partition_metadata: bool = False  # V-34…37, V-66, V-71, V-72 (4.0)
    old_no_periodic_regex_refresh: bool = False  # V-10 (4.0)
    old_no_image_is_minus_one: bool = False  # V-43 (4.0, 4.1)
    old_no_assignment_interval: bool = False  # V-11, V-38…41, V-63, V-64, V-73, V-76 (4.0–4.2)
    old_group_config_unclamped: bool = False  # V-12 (4.0–4.2)
    old_whole_target: bool = False  # V-50, V-51 (4.0, 4.1): no restriction to the subscription, no prune
    old_prune_keeps_previous_epoch: bool = False  # V-51 (4.2)
    old_revocation_advances_epoch: bool = False  # V-52 (4.0, 4.1)
    old_no_assignment_epochs: bool = False  # V-53…55, V-74, V-77 (4.0–4.2)
    old_describe_without_pending: bool = False  # V-16 (4.0–4.2)
    old_disabled_policy_accepts_joins: bool = False  # V-60 (4.0–4.2)
    old_classic_members_follow_group_epoch: bool = False  # V-61 (4.0–4.2)
    old_downgrade_rebalances_by_subscription: bool = False  # V-65 (4.0–4.2)
    old_no_close_options: bool = False  # V-21, V-80 (4.0)
    old_no_rack_in_heartbeats: bool = False  # V-90 (4.0)
    old_negative_epoch_adopted: bool = False  # V-91 (4.0)
    old_static_remains_silently: bool = False  # V-92 (4.1)
    old_backoff_jitter: bool = False  # V-93 (4.0, 4.1)
    old_leave_without_group_is_fatal: bool = False  # V-94 (4.0, 4.1)
    old_background_revokes: bool = False  # V-95 (4.0, 4.1)
    old_target_topics_not_watched: bool = False  # V-96 (4.0)
    old_background_replaces_assignment: bool = False  # V-97 (4.0–4.2)
    old_fenced_member_fetches: bool = False  # V-98 (4.0–4.2)
    # what a host draws is its own matter, and so no part of what is intended
    draws_no_hyphens: bool = False  # G-WIRE-28, V-126 (4.4)


_FAULTS: dict[str, bool] = {field.name: True for field in fields(Profile) if field.name.startswith("fault_")}

KAFKA_4_4 = replace(
    replace(Profile(name="kafka-4.4"), **_FAULTS),  # type: ignore[arg-type]  # switches only, all bool
    fault_relabelled_instance_stays=False,  # V-123
    fault_bad_subscription_is_thrown=False,  # V-124
    draws_no_hyphens=True,
)
KAFKA_4_3 = replace(
    KAFKA_4_4,
    name="kafka-4.3",
    fault_relabelled_instance_stays=True,
    fault_bad_subscription_is_thrown=True,
    fault_tied_vote_bumps=False,  # a vote bumps nothing
    old_full_group_refuses_statics=True,
    old_vote_keeps_epoch=True,
    old_emptied_group_keeps_target_epoch=True,
    old_replacement_rewrites_target=True,
    old_malformed_join_is_internal=True,
    draws_no_hyphens=False,
)
KAFKA_4_2 = replace(
    KAFKA_4_3,
    name="kafka-4.2",
    fault_classic_members_starve=False,  # V-62
    old_epochs_start_at_zero=True,
    old_no_assignment_interval=True,
    old_group_config_unclamped=True,
    old_prune_keeps_previous_epoch=True,
    old_no_assignment_epochs=True,
    old_describe_without_pending=True,
    old_disabled_policy_accepts_joins=True,
    old_classic_members_follow_group_epoch=True,
    old_downgrade_rebalances_by_subscription=True,
    old_background_replaces_assignment=True,
    old_fenced_member_fetches=True,
)
#: from 4.2.2 on; the profile above is that of 4.2.0 and 4.2.1
KAFKA_4_2_2 = replace(
    KAFKA_4_2,
    name="kafka-4.2.2",
    fault_bad_subscription_is_thrown=False,  # V-124
    old_disabled_policy_accepts_joins=False,  # V-60
    old_malformed_join_is_internal=False,
)
KAFKA_4_1 = replace(
    KAFKA_4_2,
    name="kafka-4.1",
    fault_resolved_regex_change_no_bump=False,  # there is no prune (LIV-15)
    old_known_member_at_zero_fenced=True,
    old_no_image_is_minus_one=True,
    old_whole_target=True,
    old_prune_keeps_previous_epoch=False,
    old_revocation_advances_epoch=True,
    old_static_remains_silently=True,
    old_backoff_jitter=True,
    old_leave_without_group_is_fatal=True,
    old_background_revokes=True,
)
KAFKA_4_0 = replace(
    KAFKA_4_1,
    name="kafka-4.0",
    fault_deletion_waits_twice=False,  # no share groups to ask for
    old_checks_after_load=True,
    old_regex_removal_keeps_epoch=True,
    old_partition_metadata=True,
    old_no_periodic_regex_refresh=True,
    old_no_close_options=True,
    old_no_rack_in_heartbeats=True,
    old_negative_epoch_adopted=True,
    old_static_remains_silently=False,  # there are no close options
    old_target_topics_not_watched=True,
)
INTENDED = Profile(name="intended")

#: the newest release that has a profile: what is compared with Kafka unless a release is named
NEWEST_KAFKA = KAFKA_4_4

PROFILES = {
    profile.name: profile for profile in (KAFKA_4_0, KAFKA_4_1, KAFKA_4_2, KAFKA_4_2_2, KAFKA_4_3, KAFKA_4_4, INTENDED)
}
