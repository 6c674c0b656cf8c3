"""The requests of administrators: DescribeGroups, ListGroups and DeleteGroups (5.4), and ConsumerGroupDescribe (7.10).

Reads show the *map* of groups as of the high watermark (F-RT-11). They show the current content of a classic group
(C-ADM-08), and a consumer group as of the high watermark too, with the current topics.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from fencepost.protocol.consumer_messages import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedConsumerGroup,
    DescribedConsumerMember,
    NamedTopicPartitions,
)
from fencepost.protocol.embedded import PROTOCOL_TYPE
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import Request
from fencepost.protocol.messages import (
    DeleteGroupsRequest,
    DescribedGroup,
    DescribedMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    ListedGroup,
    ListGroupsRequest,
    ListGroupsResponse,
)
from fencepost.protocol.view import GroupState
from fencepost.quirks import varies

from .classic import records
from .classic.group import ClassicGroup
from .consumer import target
from .consumer.consumer_appliers import write_records
from .consumer.group import NO_SHARE, ConsumerGroup, ConsumerGroupMember
from .consumer.records import removed_group
from .groups import is_empty, known
from .kernel import operations
from .kernel.replies import deletion_response, described_error
from .kernel.rules import Rules
from .kernel.state import Group
from .kernel.step import Step
from .offsets import deletion, expiry

#: From this version on a missing group is an error with a message (C-ADM-02).
GROUP_ID_NOT_FOUND_SINCE = 6


def describe_groups(step: Step, request: Request, body: DescribeGroupsRequest) -> None:
    """Answer with the state and the members of each requested group (C-ADM-01…04, C-ADM-12, C-ADM-13).

    Groups that the caller may not see come first, as in Kafka's handler.
    """
    rejected = [described_error(name) for name in body.groups if name in request.denied]
    rows = [
        _described_group(request.version, name, operations.committed_group(step, name))
        for name in body.groups
        if name not in request.denied
    ]
    step.reply(request.id, DescribeGroupsResponse((*rejected, *rows)))


def _described_group(version: int, name: str, group: Group | None) -> DescribedGroup:
    if not isinstance(group, ClassicGroup):
        if version < GROUP_ID_NOT_FOUND_SINCE:
            return DescribedGroup(ErrorCode.NONE, group_id=name, group_state=GroupState.DEAD.value)
        message = f"Group {name} not found." if group is None else f"Group {name} is not a classic group."
        return DescribedGroup(
            ErrorCode.GROUP_ID_NOT_FOUND, group_id=name, group_state=GroupState.DEAD.value, error_message=message
        )
    stable = group.state is GroupState.STABLE
    members = tuple(
        DescribedMember(
            member.member_id,
            group_instance_id=member.instance_id,
            client_id=member.client_id,
            client_host=member.client_host,
            member_metadata=(member.metadata(group.protocol_name) or b"") if stable else b"",
            member_assignment=member.assignment,
        )
        for member in group.members.values()
    )
    data = (group.protocol_name or "") if stable else ""
    return DescribedGroup(
        ErrorCode.NONE,
        group_id=name,
        group_state=group.state.value,
        protocol_type=group.protocol_type or "",
        protocol_data=data,
        members=members,
    )


def list_groups(step: Step, request: Request, body: ListGroupsRequest) -> None:
    """List the groups of the coordinator as of the high watermark, filtered as requested (C-ADM-05). ``denied`` has the
    groups that the caller may not describe."""
    states = {state.lower().strip() for state in body.states_filter}
    types = {kind.lower() for kind in body.types_filter}
    rows = {
        (name, ""): ListedGroup(name, protocol_type=protocol_type, group_state=state, group_type=kind)
        for name, group in operations.committed_groups(step).items()
        for protocol_type, state, kind in (_listed(group),)
        if (not states or state.lower() in states) and (not types or kind in types) and name not in request.denied
    }
    step.reply(request.id, ListGroupsResponse(ErrorCode.NONE, operations.visible_rows(step, rows)))


def _listed(group: Group) -> tuple[str, str, str]:
    """Protocol type, state and kind of a group."""
    group = known(group)
    if isinstance(group, ConsumerGroup):
        return PROTOCOL_TYPE, group.state.value, "consumer"
    return group.protocol_type or "", group.state.value, "classic"


@varies
def delete(step: Step, request: Request, body: DeleteGroupsRequest) -> None:
    """Delete the groups at once (C-ADM-09)."""
    delete_empty(step, request, body)


def delete_empty(step: Step, request: Request, body: DeleteGroupsRequest) -> None:
    """Delete groups that are empty, with one result for each name (C-ADM-09). Tombstones are the only records of a
    classic group that the live coordinator applies (C-SYNC-31)."""
    denied = request.denied
    results = {
        name: ErrorCode.GROUP_AUTHORIZATION_FAILED if name in denied else _delete(step, name)
        for name in dict.fromkeys(body.groups_names)
    }
    reply = deletion_response(request, results)
    if results.keys() <= denied:
        step.reply(request.id, reply)
    else:
        operations.done(step, request, reply=reply)


def _delete(step: Step, name: str) -> ErrorCode:
    group = step.memory.groups.get(name)
    if group is None:
        return ErrorCode.GROUP_ID_NOT_FOUND
    if not is_empty(group):
        return ErrorCode.NON_EMPTY_GROUP
    deletion.delete_all(step, name)
    remove(step, group)
    return ErrorCode.NONE


def remove(step: Step, group: Group) -> None:
    """Remove an empty group by its tombstones (F-ORD-09, F-ORD-13), even if no record backs it (C-ADM-10)."""
    if isinstance(group, ConsumerGroup):
        write_records(step, removed_group(group))  # F-ORD-09
        return
    step.change_map(group.group_id, None)
    step.log.records.append(records.tombstone(group.group_id))  # F-ORD-13


def expire(step: Step) -> None:
    """Run the offset expiry: remove old offsets, and empty groups without any (O-EXP-20)."""
    expiry.run(step, remove)


#: From this version on an answer contains the protocol of a member (G-WIRE-11).
MEMBER_TYPE_SINCE = 1
_CLASSIC, _CONSUMER = 0, 1


def describe_consumer_groups(step: Step, request: Request, body: ConsumerGroupDescribeRequest) -> None:
    """Describe consumer groups in full, as of the high watermark (M-DESC-01, C-ADM-06). Groups that the caller may not
    see come first, as in Kafka's handler."""
    denied = [
        DescribedConsumerGroup(ErrorCode.GROUP_AUTHORIZATION_FAILED, group_id=name)
        for name in body.group_ids
        if name in request.denied
    ]
    rows = [
        _described_consumer_group(step, request, name, operations.committed_group(step, name))
        for name in body.group_ids
        if name not in request.denied
    ]
    step.reply(request.id, ConsumerGroupDescribeResponse((*denied, *rows)))


def _described_consumer_group(step: Step, request: Request, name: str, group: object) -> DescribedConsumerGroup:
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
        (name, member_id): _described_member(step, group, group.members[member_id], with_type=with_type)
        for member_id in sorted(group.members)
    }
    members = operations.visible_rows(step, rows)
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


def _described_member(
    step: Step, group: ConsumerGroup, member: ConsumerGroupMember, *, with_type: bool
) -> DescribedConsumerMember:
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
        assignment=_named_partitions(step, _shown_as_assigned(step.rules, member)),
        target_assignment=_named_partitions(step, group.target.get(member.member_id, NO_SHARE)),
        member_type=kind if with_type else -1,
    )


def _shown_as_assigned(rules: Rules, member: ConsumerGroupMember) -> Mapping[bytes, Collection[int]]:
    """The partitions that a member may own: those that it has, and those that it has yet to revoke (M-DESC-01)."""
    if not rules.pending_revocation_described:
        return member.assigned
    held = {topic_id: set(partitions) for topic_id, partitions in member.assigned.items()}
    for topic_id, partitions in member.revoking.items():
        held.setdefault(topic_id, set()).update(partitions)
    return held


def _named_partitions(step: Step, partitions: Mapping[bytes, Collection[int]]) -> tuple[NamedTopicPartitions, ...]:
    known = step.topics.by_id
    return tuple(
        NamedTopicPartitions(topic_id, known[topic_id].name, tuple(sorted(partitions[topic_id])))
        for topic_id in sorted(partitions)
        if topic_id in known
    )
