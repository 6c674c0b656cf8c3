"""The rules of mixed groups and of conversions as intended, and what each switch changes; see ``differences``."""

from __future__ import annotations

from typing import Final

from fencepost.protocol.errors import ErrorCode

from ..consumer.work import forget_topics
from ..differences import checked
from . import releases as kafka
from .downgrade import downgraded_assignment
from .requests import is_behind
from .upgrade import brought_partitions
from .variant import MixedVariant

#: the intended rules
INTENDED: Final = MixedVariant(
    is_behind=is_behind,
    brought_partitions=brought_partitions,
    downgraded_assignment=downgraded_assignment,
    note_topics=forget_topics,
)

#: what each switch of a profile changes
DIFFERENCES: Final = checked(
    MixedVariant,
    {
        "fault_empty_group_counts_anew": {"empty_group_keeps_epoch": False},
        "fault_join_generation_ignored": {"checks_generation": False},
        "fault_downgrade_reads_unread_metadata": {"checks_all_metadata": False},
        "fault_classic_members_starve": {"is_behind": kafka.starve},
        "fault_upgrade_answers_before_checks": {"upgrade_checks_first": False},
        "fault_upgrade_without_protocol": {"upgrade_needs_protocol": False},
        "fault_upgrade_without_bump": {"upgrade_bumps": False},
        "fault_upgrade_overlooks_owned": {"brought_partitions": kafka.overlook_claims},
        "fault_bad_subscription_is_thrown": {"bad_length": ErrorCode.UNKNOWN_SERVER_ERROR},
        "fault_downgrade_assigns_target": {"downgraded_assignment": kafka.assign_target},
        "fault_downgrade_owes": {"pays_what_it_owes": False},
        "fault_downgrade_loses_bump": {"downgrade_keeps_bump": False},
        "fault_downgrade_leaves_timers": {"downgrade_cancels_timers": False},
        "fault_downgrade_leaves_topics": {"note_topics": kafka.leave_topics},
        "old_malformed_join_is_internal": {"malformed_join": ErrorCode.UNKNOWN_SERVER_ERROR},
        "old_disabled_policy_accepts_joins": {"disabled_policy_refuses": False},
        "old_classic_members_follow_group_epoch": {"is_behind": kafka.follow_group_epoch},
        "old_downgrade_rebalances_by_subscription": {"downgrade_follows_target": False},
    },
)
