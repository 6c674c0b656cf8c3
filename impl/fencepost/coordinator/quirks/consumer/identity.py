"""Who speaks, whether it may, and what it says that it owns."""

from __future__ import annotations

from collections.abc import Iterable

from fencepost.protocol.consumer_messages import ConsumerGroupHeartbeatRequest, TopicPartitions
from fencepost.quirks import quirk

from ...consumer import group_heartbeat, identity
from ...consumer.group import ConsumerGroup, ConsumerMember
from ...kernel.step import Step


@quirk("old_full_group_refuses_statics", of=identity.has_a_place)
def instance_is_no_place(step: Step, group: ConsumerGroup, instance_id: str | None) -> bool:
    """Before 4.4 a full group looks at the member id alone, and a static member that comes back with another one finds
    its own place taken by itself (V-120)."""
    return False


@quirk("old_known_member_at_zero_fenced", of=identity.check_epoch)
def joins_once(step: Step, member: ConsumerMember, claim: identity.Claim) -> None:
    """Up to 4.1 epoch 0 is an epoch like others: who is known, and joins again, is fenced until its session has ended
    (V-32, LIV-12)."""
    identity.require_in_step(member, claim)


@quirk("fault_static_rejoin_unreleased", of=identity.comes_back)
def instance_lets_nobody_in(step: Step, holder: ConsumerMember, member_id: str) -> bool:
    """Kafka does not look who joins with an instance that is in use: its own member is refused too, until its session
    has ended (M-STATIC-02, L-06)."""
    return False


@quirk("fault_replacement_merges_members", of=identity.may_take_place)
def anybody_may_take_place(step: Step, group: ConsumerGroup, holder: ConsumerMember, member_id: str) -> bool:
    """Kafka does not look whether the member has a place of its own. What it had there is nobody's at once, while it
    may go on consuming it (M-STATIC-15, A-UHOM-08)."""
    return True


@quirk("fault_rejoin_confirms_revocation", of=group_heartbeat.said_to_own)
def believed(
    step: Step, body: ConsumerGroupHeartbeatRequest, member: ConsumerMember
) -> Iterable[TopicPartitions] | None:
    """Kafka believes every join, which always says that it owns nothing: a late copy confirms a revocation that the
    member has not heard of (M-FENCE-07, INV-KIP-09)."""
    return body.topic_partitions
