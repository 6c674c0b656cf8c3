"""What Kafka does otherwise in consumer groups."""

from __future__ import annotations

from fencepost.quirks import quirk

from ..consumer import target
from ..consumer.group import NO_SHARE, ConsumerGroup, ConsumerMember, Share
from ..kernel.step import Step


@quirk("old_no_assignment_interval", of=target.allowed)
def computes_at_once(step: Step, group: ConsumerGroup) -> bool:
    """Before 4.3 there is no interval between two targets (V-11)."""
    return True


@quirk("fault_new_instance_has_no_target", of=target.stored)
def new_instance_has_no_target(step: Step, group: ConsumerGroup, member: ConsumerMember) -> Share:
    """Kafka looks at who has the instance id alone: a member that comes again with one that nobody has gets nothing
    until the next new target (M-HB-07, LIV-16)."""
    instance_id = member.instance_id
    owner = member.member_id if instance_id is None else group.static_members.get(instance_id)
    return NO_SHARE if owner is None else group.target.get(owner, NO_SHARE)
