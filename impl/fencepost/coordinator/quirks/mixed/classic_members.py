"""Classic members of consumer groups: permission to join, trust in their claims, and when they have to join again."""

from __future__ import annotations

from fencepost.protocol.consumer_messages import TopicPartitions
from fencepost.protocol.embedded import Subscription
from fencepost.quirks import quirk

from ...consumer.group import ConsumerGroup, ConsumerMember
from ...kernel.step import Step
from ...mixed import classic_join, classic_member
from ...mixed.embedded import owned_rows


@quirk("old_disabled_policy_accepts_joins", of=classic_join.require_accepting)
def accepts_under_any_policy(step: Step) -> None:
    """Before 4.3, except 4.2.2, the policy is checked only where a group would change its kind (X-POL-04, V-60)."""


@quirk("fault_join_generation_ignored", of=classic_join.owned_by)
def believes_any_generation(
    step: Step, group: ConsumerGroup, member_id: str, subscription: Subscription
) -> tuple[TopicPartitions, ...] | None:
    """Kafka does not check the generation, nor whether the member is known. A JoinGroup that arrives late frees
    partitions that the member got since, and a fenced member does not get an error: a partition has two owners for a
    while (X-JOIN-06, X-JOIN-12, INV-KIP-09)."""
    return owned_rows(subscription.owned_partitions, step.topics)


@quirk("old_classic_members_follow_group_epoch", of=classic_member.is_behind)
def group_epoch_counts(step: Step, group: ConsumerGroup, member: ConsumerMember) -> bool:
    """Before 4.3 every join computes a target, so the group epoch says whether there is a newer one (V-61)."""
    return member.epoch < group.epoch


@quirk("fault_classic_members_starve", of=classic_member.is_behind)
def waits_for_others(step: Step, group: ConsumerGroup, member: ConsumerMember) -> bool:
    """Kafka asks no member to join before there is a newer target, but with classic members only a join computes one: a
    group of classic members alone keeps its old assignment for ever (X-HB-03, LIV-14)."""
    return member.epoch < group.assignment_epoch
