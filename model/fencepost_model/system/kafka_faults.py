"""Kafka's own faults in the specification: a configuration replaces an operator by one of ``spec/Kafka….tla``. In the
model a switch of the profile does the same."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

#: "operator <- replacement" → the switch, of ``KafkaClassic``
CLASSIC_FAULTS: Final[Mapping[str, str]] = {
    "KnownMember <- KnownByIdOnly": "fault_static_return_counts_as_new",
    "AfterRefusal <- JoinPhaseContinues": "fault_refusal_leaves_join_phase",
    "PendingAfterReplacement <- ReplacedStaysPending": "fault_replacement_keeps_pending_sync",
    "NoAssignmentIsOpen <- OpenAssignmentsDoNotCount": "fault_every_leader_sync_appends",
    "AnswerSyncOfLeaver <- SyncOfLeaverIsForgotten": "fault_leave_forgets_parked_sync",
    "NewMemberAddedAfterJoinPhase <- NewMemberAddedSurvives": "fault_new_member_added_survives",
}
#: "operator <- replacement" → the switch, of ``KafkaConsumer``
CONSUMER_FAULTS: Final[Mapping[str, str]] = {
    "MayRejoin <- NoMemberMayRejoin": "fault_static_rejoin_unreleased",
    "FreedInstances <- FormerInstanceStays": "fault_relabelled_instance_stays",
    "StoredTarget <- NewInstanceHasNoTarget": "fault_new_instance_has_no_target",
    "Reverted <- TimersAreNotReverted": "fault_failed_append_loses_timers",
    "IsStaleJoin <- NoJoinIsStale": "fault_rejoin_confirms_revocation",
    "ZeroVerdict <- ZeroIsChecked": "old_known_member_at_zero_fenced",
    "AfterRevocation <- RevocationAdvances": "old_revocation_advances_epoch",
    "IsUnassigned <- NoGroupIsUnassigned": "old_emptied_group_keeps_target_epoch",
}
#: "operator <- replacement" → the switch, of ``KafkaMixed``
MIXED_FAULTS: Final[Mapping[str, str]] = {
    "ErrorWithoutProtocol <- InternalErrorWithoutProtocol": "fault_upgrade_without_protocol",
    "RejectHeartbeat <- RejectAfterAnswering": "fault_upgrade_answers_before_checks",
    "BumpAfterUpgrade <- NoBumpAfterUpgrade": "fault_upgrade_without_bump",
    "TargetIsDue <- NoTargetIsDue": "fault_classic_members_starve",
    "OwesPartitions <- IncompleteTargetsAreForgotten": "fault_downgrade_owes",
    "DowngradeByJoin <- DowngradeLosesBump": "fault_downgrade_loses_bump",
    "RemainingTimers <- AllTimersRemain": "fault_downgrade_leaves_timers",
    "Missed <- NothingIsMissed": "fault_join_generation_ignored",
    "AssignedInDowngrade <- TargetIsAssigned": "fault_downgrade_assigns_target",
    "ValidClaims <- NoClaimIsValid": "fault_upgrade_overlooks_owned",
    "ContinuedCount <- CountsAnew": "fault_empty_group_counts_anew",
}
FAULTS: Final[Mapping[str, str]] = {**CLASSIC_FAULTS, **CONSUMER_FAULTS, **MIXED_FAULTS}
