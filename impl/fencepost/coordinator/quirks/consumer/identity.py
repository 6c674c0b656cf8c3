"""The identity of a member, its permissions, and the partitions that it claims to own."""

from __future__ import annotations

from collections.abc import Iterable

from fencepost.protocol.consumer_messages import ConsumerGroupHeartbeatRequest, TopicPartitions
from fencepost.quirks import quirk

from ...consumer import members
from ...consumer.group import ConsumerGroup, ConsumerMember
from ...kernel.step import Step


@quirk("old_full_group_refuses_statics", of=members.has_a_place)
def instance_is_no_place(step: Step, group: ConsumerGroup, instance_id: str | None) -> bool:
    """Before 4.4 a full group checks only the member id. A static member that returns with another member id finds its
    own place taken by itself (V-120)."""
    return False


@quirk("old_known_member_at_zero_fenced", of=members.check_epoch)
def joins_once(step: Step, member: ConsumerMember, claim: members.Claim) -> None:
    """Up to 4.1 epoch 0 is an epoch like any other: a known member that joins again is fenced until its session has
    ended (V-32, LIV-12)."""
    members.reject_wrong_epoch(member, claim)


@quirk("fault_static_rejoin_unreleased", of=members.comes_back)
def instance_lets_nobody_in(step: Step, holder: ConsumerMember, member_id: str) -> bool:
    """Kafka does not check which member joins with an instance id that is in use: even its own member is refused until
    its session has ended (M-STATIC-02, L-06)."""
    return False


@quirk("fault_replacement_merges_members", of=members.may_take_place)
def anybody_may_take_place(step: Step, group: ConsumerGroup, holder: ConsumerMember, member_id: str) -> bool:
    """Kafka does not check whether the member already has a place. Its partitions there are free at once, while it may
    still consume them (M-STATIC-15, A-UHOM-08)."""
    return True


@quirk("fault_rejoin_confirms_revocation", of=members.owned_partitions)
def believed(
    step: Step, body: ConsumerGroupHeartbeatRequest, member: ConsumerMember
) -> Iterable[TopicPartitions] | None:
    """Kafka believes every join, which always claims to own nothing: a late copy confirms a revocation that the member
    has not received (M-FENCE-07, INV-KIP-09)."""
    return body.topic_partitions
