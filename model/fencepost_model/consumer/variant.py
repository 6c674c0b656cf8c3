"""The rules of consumer groups that a profile can change; see ``differences``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from fencepost.protocol.events import Topic

from ..differences import checked, rule
from . import group_step, heartbeat
from . import releases as kafka
from .group_step import GroupStep
from .state import Member, Target
from .target import GroupSpec


@dataclass(frozen=True, slots=True)
class ConsumerVariant:
    """The intended rules, as the defaults."""

    # requests and members
    checks_fields_first: bool = rule(
        True, "M-VAL-04", "V-29", says="the fields of a heartbeat are checked before the state of the partition"
    )
    returning_static_has_place: bool = rule(
        True, "M-VAL-30", "V-120", says="a full group accepts a static member that returns"
    )
    member_may_rejoin: bool = rule(True, "M-FENCE-07", "V-32", says="epoch 0 of a known member is accepted")
    rejoin_confirms_nothing: bool = rule(
        True, "M-FENCE-07", "INV-KIP-09", says="epoch 0 of a present member does not confirm its revocation"
    )
    static_may_rejoin: bool = rule(
        True, "M-STATIC-02", "L-06", says="a static member may return at epoch 0 with its own member id"
    )
    only_new_member_replaces: bool = rule(
        True, "M-STATIC-15", "A-UHOM-08", says="a member that is in the group does not replace another"
    )
    former_instance_is_free: bool = rule(
        True, "M-STATIC-13", "F-REPLAY-07", "V-123", says="a former instance id of a member is not mapped to it"
    )
    clamps_group_config: bool = rule(
        True, "M-CFG-01", "V-12", says="a group's own settings are clamped to the broker's bounds"
    )
    describes_revoking: bool = rule(
        True, "M-DESC-01", "V-16", says="a description includes the partitions that a member must revoke"
    )

    # the group epoch
    first_epoch: int = rule(1, "M-VAL-21", "V-30", "V-31", "F-REPLAY-11", says="the epoch of a group without records")
    dropped_regex_bumps: bool = rule(True, "M-HB-03", "V-33", says="a member that drops its regex begins a new epoch")
    changed_topics_bump: bool = rule(
        True, "LIV-15", says="a member whose topics change with its regex begins a new epoch"
    )
    assignor_changes: Callable[[GroupStep, tuple[Member, ...]], bool] = rule(
        heartbeat.assignor_changes,
        "M-HB-14",
        "M-HB-15",
        "M-TGT-02",
        "LIV-17",
        "V-121",
        says="votes that elect another assignor begin a new epoch",
    )
    absent_assignors_count: bool = rule(False, "M-TGT-02", says="only votes for configured assignors count")
    empty_group_reaches_target: bool = rule(
        True, "M-LEAVE-08", "V-122", says="the departure of the last member writes the target epoch too"
    )

    # topics
    first_image_version: int = rule(0, "M-RX-04", "V-43", says="the version of the image before the first one")
    refreshes_regexes: bool = rule(True, "M-RX-03", "V-10", says="regexes are resolved again after an interval")
    stores_hash: bool = rule(
        True,
        "M-META-07",
        "M-META-08",
        "V-34",
        "V-35",
        "V-37",
        "V-66",
        "V-72",
        "F-REPLAY-11",
        "F-REPLAY-12",
        says="the record of the group epoch has a hash of the metadata of the subscribed topics",
    )
    write_metadata: Callable[[GroupStep, tuple[Topic, ...], bool], None] = rule(
        group_step.write_metadata, "F-ORD-06", "V-36", "V-71", says="the metadata have no separate record"
    )
    has_metadata: Callable[[GroupStep, tuple[Topic, ...]], bool] = rule(
        group_step.has_metadata, "M-HB-04", "V-34", "V-35", says="metadata have changed if their hash has"
    )
    known_partitions: Callable[[GroupStep], dict[bytes, int]] = rule(
        group_step.known_partitions, "M-TGT-03", "V-136", says="an assignor sees the topics of the newest image"
    )

    # targets
    spaces_targets: bool = rule(
        True,
        "M-TGT-08",
        "V-11",
        "V-38",
        "V-39",
        "V-40",
        "V-41",
        "V-63",
        "V-64",
        "V-73",
        "V-76",
        "F-REPLAY-10",
        says="a target has a timestamp, and the next one waits for the assignment interval",
    )
    recounts_type: bool = rule(
        True,
        "M-TGT-05",
        "M-TGT-06",
        "LIV-13",
        "V-42",
        says="a target is computed with the subscription type of the members after the request",
    )
    assign: Callable[[GroupStep, GroupSpec], dict[str, Target]] = rule(
        heartbeat.assign, "A-UHET-06", "X-UP-05", says="an assignor ignores partitions that their topic does not have"
    )
    replacement_has_target: bool = rule(
        True, "M-STATIC-10", "V-127", says="an unchanged target of a replacement is not written again"
    )
    stored_target: Callable[[GroupStep, Member], Target] = rule(
        heartbeat.stored_target,
        "M-HB-07",
        "LIV-16",
        says="a known member that comes with a new instance id keeps its target",
    )

    # reconciliation
    prunes: bool = rule(
        True,
        "M-REC-25",
        "V-50",
        "V-51",
        says="a member is reconciled with the part of its target to which it subscribes now",
    )
    prune_sets_previous_epoch: bool = rule(
        True, "M-REC-25", "V-51", says="pruning makes the current epoch the previous one too"
    )
    revocation_keeps_epoch: bool = rule(
        True, "M-REC-19", "V-52", says="a confirmed revocation does not advance the member's epoch"
    )
    stores_assignment_epochs: bool = rule(
        True,
        "M-PE-06",
        "V-53",
        "V-54",
        "V-55",
        "V-74",
        "V-77",
        "O-COMMIT-36",
        "F-REPLAY-08",
        says="the epoch at which a member got a partition is stored",
    )


#: what each switch of a profile changes
DIFFERENCES: Final = checked(
    ConsumerVariant,
    {
        "fault_static_rejoin_unreleased": {"static_may_rejoin": False},
        "fault_relabelled_instance_stays": {"former_instance_is_free": False},
        "fault_new_instance_has_no_target": {"stored_target": kafka.no_target_for_new_instance},
        "fault_stale_subscription_type": {"recounts_type": False},
        "fault_resolved_regex_change_no_bump": {"changed_topics_bump": False},
        "fault_rejoin_confirms_revocation": {"rejoin_confirms_nothing": False},
        "fault_absent_assignor_elected": {"absent_assignors_count": True},
        "fault_absent_partition_fails": {"assign": kafka.fail_on_absent_partition},
        "fault_replacement_merges_members": {"only_new_member_replaces": False},
        "fault_tied_vote_bumps": {"assignor_changes": kafka.read_ties_twice},
        "old_checks_after_load": {"checks_fields_first": False},
        "old_no_image_is_minus_one": {"first_image_version": -1},
        "old_full_group_refuses_statics": {"returning_static_has_place": False},
        "old_vote_keeps_epoch": {"assignor_changes": kafka.ignore_votes},
        "old_emptied_group_keeps_target_epoch": {"empty_group_reaches_target": False},
        "old_replacement_rewrites_target": {"replacement_has_target": False},
        "old_epochs_start_at_zero": {"first_epoch": 0},
        "old_known_member_at_zero_fenced": {"member_may_rejoin": False},
        "old_regex_removal_keeps_epoch": {"dropped_regex_bumps": False},
        "old_partition_metadata": {
            "stores_hash": False,
            "write_metadata": kafka.write_partition_metadata,
            "has_metadata": kafka.has_partition_metadata,
            "known_partitions": kafka.stored_partitions,
        },
        "old_no_periodic_regex_refresh": {"refreshes_regexes": False},
        "old_no_assignment_interval": {"spaces_targets": False},
        "old_group_config_unclamped": {"clamps_group_config": False},
        "old_whole_target": {"prunes": False, "changed_topics_bump": False},  # without prune no topic is lost
        "old_prune_keeps_previous_epoch": {"prune_sets_previous_epoch": False},
        "old_revocation_advances_epoch": {"revocation_keeps_epoch": False},
        "old_no_assignment_epochs": {"stores_assignment_epochs": False},
        "old_describe_without_pending": {"describes_revoking": False},
    },
)
