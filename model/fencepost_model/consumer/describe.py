"""ConsumerGroupDescribe (rule book, 7.10): a read at the committed offset."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fencepost.protocol.consumer_messages import (
    DescribedConsumerGroup,
    DescribedConsumerMember,
    NamedTopicPartitions,
)
from fencepost.protocol.errors import ErrorCode

from .derive import by_id, group_state
from .rows import target_rows, without_epochs
from .state import ConsumerGroup, Image, Member, Target

if TYPE_CHECKING:
    from ..variant import Variant


def describe(
    group_id: str,
    group: ConsumerGroup,
    members: tuple[DescribedConsumerMember, ...],
    assignor: str,
    denied_topics: frozenset[str],
) -> DescribedConsumerGroup:
    """Return the answer for one group (M-DESC-01). ``assignor``: the one with the most votes; ``members``: their
    rows."""
    shown = {row.topic_name for member in members for row in (*member.assignment, *member.target_assignment)}
    if not shown.isdisjoint(denied_topics):
        return DescribedConsumerGroup(ErrorCode.TOPIC_AUTHORIZATION_FAILED, group_id=group_id)
    return DescribedConsumerGroup(
        ErrorCode.NONE,
        group_id=group_id,
        group_state=group_state(group),
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=assignor,
        members=members,
    )


def describe_members(variant: Variant, group: ConsumerGroup, image: Image) -> tuple[DescribedConsumerMember, ...]:
    """Return the rows of the members. Deleted topics are left out."""
    return tuple(_member(variant, member, group.target_of(member.member_id) or (), image) for member in group.members)


def _member(variant: Variant, member: Member, target: Target, image: Image) -> DescribedConsumerMember:
    held = member.assigned
    if variant.consumer.describes_revoking:
        held = tuple(sorted((*held, *member.revoking)))
    return DescribedConsumerMember(
        member.member_id,
        instance_id=member.instance,
        rack_id=member.rack,
        member_epoch=member.epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=member.names,
        subscribed_topic_regex=member.regex,
        assignment=_named(without_epochs(held), image),
        target_assignment=_named(target, image),
        member_type=0 if member.classic is not None else 1,
    )


def _named(partitions: Target, image: Image) -> tuple[NamedTopicPartitions, ...]:
    topics = by_id(image)
    return tuple(
        NamedTopicPartitions(row.topic_id, topics[row.topic_id].name, row.partitions)
        for row in target_rows(partitions)
        if row.topic_id in topics
    )
