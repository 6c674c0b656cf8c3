"""The rules of consumer groups as intended, and what each switch of a profile changes; see ``differences``."""

from __future__ import annotations

from typing import Final

from ..differences import checked
from . import group_step, heartbeat
from . import releases as kafka
from .variant import ConsumerVariant

#: the intended rules
INTENDED: Final = ConsumerVariant(
    assignor_changes=heartbeat.assignor_changes,
    write_metadata=group_step.write_metadata,
    has_metadata=group_step.has_metadata,
    known_partitions=group_step.known_partitions,
    assign=heartbeat.assign,
    stored_target=heartbeat.stored_target,
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
