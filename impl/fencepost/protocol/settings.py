"""Broker settings and profiles.

A profile is a set of named switches. Each switch stands for one fault or one difference between releases, cites its
rule, and is read by the coordinator and by the model alike. ``True`` means: do as that release of Kafka does.
"""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Settings:
    """Broker configuration that classic groups use. Times in milliseconds."""

    group_min_session_timeout_ms: int = 6_000  # G-CFG-01
    group_max_session_timeout_ms: int = 1_800_000  # G-CFG-02
    group_initial_rebalance_delay_ms: int = 3_000  # G-CFG-03
    group_max_size: int = 2_147_483_647  # G-CFG-04
    offsets_commit_timeout_ms: int = 5_000  # G-CFG-25: the timeout of every write operation
    new_member_join_timeout_ms: int = 300_000  # G-CFG-26, a constant in Kafka


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


KAFKA_4_3 = Profile(
    name="kafka-4.3",
    fault_new_member_added_survives=True,
    fault_refusal_leaves_join_phase=True,
    fault_static_return_counts_as_new=True,
    fault_duplicate_protocol_accepted=True,
    fault_parked_fail_early=True,
    fault_replacement_keeps_pending_sync=True,
    fault_second_replacement_mixes_undo=True,
    fault_leave_forgets_parked_sync=True,
    fault_every_leader_sync_appends=True,
    fault_timeout_undoes_memory=True,
    fault_timers_outlive_reverted_group=True,
    fault_bad_subscription_is_thrown=True,
    fault_deletion_waits_twice=True,
    fault_failed_deletion_lists_twice=True,
    fault_sync_load_is_thrown=True,
)
KAFKA_4_2 = replace(KAFKA_4_3, name="kafka-4.2")
KAFKA_4_1 = replace(KAFKA_4_3, name="kafka-4.1")
KAFKA_4_0 = replace(KAFKA_4_3, name="kafka-4.0", fault_deletion_waits_twice=False)  # no share groups to ask for
INTENDED = Profile(name="intended")

PROFILES = {profile.name: profile for profile in (KAFKA_4_0, KAFKA_4_1, KAFKA_4_2, KAFKA_4_3, INTENDED)}
