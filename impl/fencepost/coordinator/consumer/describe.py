"""ConsumerGroupDescribe (7.10): groups as of the high watermark (F-RT-11), with the current topics."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from fencepost.protocol.consumer_messages import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedConsumerGroup,
    DescribedConsumerMember,
    NamedTopicPartitions,
)
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import Request

from ..kernel import reads
from ..kernel.rules import Rules
from ..kernel.step import Step
from . import target
from .group import NO_SHARE, ConsumerGroup, ConsumerMember

#: From this version on an answer contains the protocol of a member (G-WIRE-11).
MEMBER_TYPE_SINCE = 1
_CLASSIC, _CONSUMER = 0, 1


def describe(step: Step, request: Request, body: ConsumerGroupDescribeRequest) -> None:
    """Describe consumer groups in full, as of the high watermark (M-DESC-01, C-ADM-06). Groups that the caller may not
    see come first, as in Kafka's handler."""
    denied = [
        DescribedConsumerGroup(ErrorCode.GROUP_AUTHORIZATION_FAILED, group_id=name)
        for name in body.group_ids
        if name in request.denied
    ]
    rows = [
        _row(step, request, name, reads.committed_group(step, name))
        for name in body.group_ids
        if name not in request.denied
    ]
    step.reply(request.id, ConsumerGroupDescribeResponse((*denied, *rows)))


def _row(step: Step, request: Request, name: str, group: object) -> DescribedConsumerGroup:
    if not name:
        return DescribedConsumerGroup(ErrorCode.INVALID_GROUP_ID, group_id="")
    if not isinstance(group, ConsumerGroup):
        return DescribedConsumerGroup(
            ErrorCode.GROUP_ID_NOT_FOUND,
            group_id=name,
            error_message=f"Group {name} {'not found' if group is None else 'is not a consumer group'}.",
        )
    with_type = request.version >= MEMBER_TYPE_SINCE
    rows = {
        (name, member_id): _member(step, group, group.members[member_id], with_type=with_type)
        for member_id in sorted(group.members)
    }
    members = reads.visible_rows(step, rows)
    shown = {row.topic_name for member in members for row in (*member.assignment, *member.target_assignment)}
    if not request.denied_topics.isdisjoint(shown):
        return DescribedConsumerGroup(
            ErrorCode.TOPIC_AUTHORIZATION_FAILED,
            group_id=name,
            error_message="The group has described topic(s) that the client is not authorized to describe.",
        )
    return DescribedConsumerGroup(
        ErrorCode.NONE,
        group_id=name,
        group_state=group.state.value,
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=target.preferred(step, name, group.votes),
        members=members,
    )


def _member(step: Step, group: ConsumerGroup, member: ConsumerMember, *, with_type: bool) -> DescribedConsumerMember:
    kind = _CONSUMER if member.classic is None else _CLASSIC
    return DescribedConsumerMember(
        member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=tuple(sorted(member.topic_names)),
        subscribed_topic_regex=member.regex,
        assignment=_named(step, _shown_as_assigned(step.rules, member)),
        target_assignment=_named(step, group.target.get(member.member_id, NO_SHARE)),
        member_type=kind if with_type else -1,
    )


def _shown_as_assigned(rules: Rules, member: ConsumerMember) -> Mapping[bytes, Collection[int]]:
    """The partitions that a member may own: those that it has, and those that it has yet to revoke (M-DESC-01)."""
    if not rules.pending_revocation_described:
        return member.assigned
    held = {topic_id: set(partitions) for topic_id, partitions in member.assigned.items()}
    for topic_id, partitions in member.revoking.items():
        held.setdefault(topic_id, set()).update(partitions)
    return held


def _named(step: Step, partitions: Mapping[bytes, Collection[int]]) -> tuple[NamedTopicPartitions, ...]:
    known = step.topics.by_id
    return tuple(
        NamedTopicPartitions(topic_id, known[topic_id].name, tuple(sorted(partitions[topic_id])))
        for topic_id in sorted(partitions)
        if topic_id in known
    )
