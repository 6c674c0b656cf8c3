"""The profiles: the intended protocol, and each Kafka release from 4.0 on (``docs/rules/10-releases.md``)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from .errors import NoSuchProfile
from .profile import SWITCHES, Profile

_FAULTS: Final = {each.name: True for each in SWITCHES if each.name.startswith("fault_")}

KAFKA_4_4 = replace(
    replace(Profile(name="kafka-4.4"), **_FAULTS),  # type: ignore[arg-type]  # switches only, all bool
    fault_relabelled_instance_stays=False,  # V-123
    fault_bad_subscription_is_thrown=False,  # V-124
    fault_part_acknowledged_again=False,  # V-133
    draws_no_hyphens=True,
)
KAFKA_4_3 = replace(
    KAFKA_4_4,
    name="kafka-4.3",
    fault_relabelled_instance_stays=True,
    fault_bad_subscription_is_thrown=True,
    fault_part_acknowledged_again=True,
    fault_tied_vote_bumps=False,  # a vote bumps nothing
    old_full_group_refuses_statics=True,
    old_vote_keeps_epoch=True,
    old_emptied_group_keeps_target_epoch=True,
    old_replacement_rewrites_target=True,
    old_malformed_join_is_internal=True,
    old_transactions_without_topic_ids=True,
    old_lag_waits_for_ever=True,
    old_shared_look_up_is_lost=True,
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
    old_partitions_deleted=True,
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
    old_revoked_is_initialised=True,
    old_offsets_by_name=True,
    old_unknown_topic_fails_lookup=True,
    old_unknown_topic_id_is_final=True,
    old_close_waits_for_coordinator=True,
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
    old_dropped_topic_is_read=True,
    old_no_topic_ids=True,
    fault_expiring_offset_keeps_topic_id=False,  # there is none to keep
)
INTENDED = Profile(name="intended")

#: the newest release with a profile: comparisons with Kafka use it unless a release is given
NEWEST_KAFKA = KAFKA_4_4


class _Profiles(dict[str, Profile]):
    def __missing__(self, name: object) -> Profile:
        raise NoSuchProfile(f"no profile {name!r}; use one of {', '.join(self)}")


#: all profiles by name; an unknown name raises ``NoSuchProfile``, which is a ``KeyError``
PROFILES: Final[Mapping[str, Profile]] = _Profiles(
    (each.name, each) for each in (KAFKA_4_0, KAFKA_4_1, KAFKA_4_2, KAFKA_4_2_2, KAFKA_4_3, KAFKA_4_4, INTENDED)
)
