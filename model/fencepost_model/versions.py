"""The fields of an answer that an API version carries (G-WIRE-01…04, 12, 13).

The model answers with all fields. A field that the request's version does not carry reaches the client as the default
of Kafka's generated classes.
"""

from __future__ import annotations

from dataclasses import replace

from fencepost.protocol.consumer_messages import ConsumerGroupDescribeResponse
from fencepost.protocol.messages import (
    DescribeGroupsResponse,
    JoinGroupMember,
    JoinGroupResponse,
    ListGroupsResponse,
    ResponseBody,
    SyncGroupResponse,
)
from fencepost.protocol.offset_messages import OffsetFetchResponse, OffsetFetchResponseGroup


def carried(body: ResponseBody, version: int) -> ResponseBody:
    """Return the answer as a client sees it that asked with this version. LeaveGroup is unchanged here (G-WIRE-23)."""
    if isinstance(body, JoinGroupResponse):
        members = body.members
        if version >= 9 or (body.protocol_type is None and not body.skip_assignment and not members):
            return body
        return JoinGroupResponse(
            body.error_code,
            generation_id=body.generation_id,
            protocol_type=body.protocol_type if version >= 7 else None,
            protocol_name=body.protocol_name,
            leader=body.leader,
            member_id=body.member_id,
            members=members
            if version >= 5
            else tuple(JoinGroupMember(row.member_id, metadata=row.metadata) for row in members),
        )
    if isinstance(body, SyncGroupResponse):
        if version >= 5 or (body.protocol_type is None and body.protocol_name is None):
            return body
        return replace(body, protocol_type=None, protocol_name=None)
    if isinstance(body, DescribeGroupsResponse) and version < 4:
        return DescribeGroupsResponse(
            tuple(
                replace(group, members=tuple(replace(row, group_instance_id=None) for row in group.members))
                for group in body.groups
            )
        )
    if isinstance(body, OffsetFetchResponse) and version < 5:
        return OffsetFetchResponse(tuple([_without_epochs(group) for group in body.groups]))
    if isinstance(body, ConsumerGroupDescribeResponse) and version < 1:
        described = (
            replace(group, members=tuple(replace(row, member_type=-1) for row in group.members))
            for group in body.groups
        )
        return ConsumerGroupDescribeResponse(tuple(described))
    if isinstance(body, ListGroupsResponse) and version < 5:
        rows = (replace(row, group_type="") for row in body.groups)
        return replace(body, groups=tuple(rows if version >= 4 else (replace(row, group_state="") for row in rows)))
    return body


def _without_epochs(group: OffsetFetchResponseGroup) -> OffsetFetchResponseGroup:
    """Return offsets without the leader epochs of their commits."""
    rows = [
        replace(topic, partitions=tuple([replace(row, committed_leader_epoch=-1) for row in topic.partitions]))
        for topic in group.topics
    ]
    return replace(group, topics=tuple(rows))
