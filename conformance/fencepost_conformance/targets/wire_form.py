"""Answers as their API version carries them: fields that the version lacks do not arrive."""

from __future__ import annotations

from dataclasses import replace

from fencepost.protocol import messages as m
from fencepost.protocol.offset_messages import ZERO_ID, OffsetFetchResponse, OffsetFetchResponseGroup
from fencepost.protocol.offset_records import OffsetCommitValue
from fencepost.protocol.records import Record


def wire_form(body: m.ResponseBody, version: int) -> m.ResponseBody:
    """Return the answer that a client of this version decodes (G-WIRE-01…04, 12…14, 20)."""
    if isinstance(body, m.JoinGroupResponse):
        return _join(body, version)
    if isinstance(body, m.SyncGroupResponse):
        return body if version >= 5 else replace(body, protocol_type=None, protocol_name=None)
    if isinstance(body, m.DescribeGroupsResponse):
        return body if version >= 6 else replace(body, groups=tuple(_described(row, version) for row in body.groups))
    if isinstance(body, m.ListGroupsResponse):
        return body if version >= 5 else replace(body, groups=tuple(_listed(row, version) for row in body.groups))
    if isinstance(body, OffsetFetchResponse) and version < 5:
        return replace(body, groups=tuple(_fetched(group) for group in body.groups))
    return body


def _fetched(group: OffsetFetchResponseGroup) -> OffsetFetchResponseGroup:
    """Return the group without leader epochs (O-FETCH-11)."""
    rows = tuple(
        replace(topic, partitions=tuple(replace(row, committed_leader_epoch=-1) for row in topic.partitions))
        for topic in group.topics
    )
    return replace(group, topics=rows)


def record_form(record: Record) -> Record:
    """Return the record as the log has it: with an expiry time it has no field for a topic's id (F-REC-11,
    F-REC-20)."""
    value = record.value
    if not isinstance(value, OffsetCommitValue) or value.topic_id == ZERO_ID:
        return record
    if value.expire_timestamp != -1 or value.expires_at_minus_one:
        return replace(record, value=replace(value, topic_id=ZERO_ID, leader_epoch=-1))
    return record


def _join(body: m.JoinGroupResponse, version: int) -> m.JoinGroupResponse:
    name = body.protocol_name or (None if version >= 7 else "")  # G-WIRE-20
    if version >= 9:
        return body if body.protocol_name == name else replace(body, protocol_name=name)
    members = body.members if version >= 5 else tuple(replace(row, group_instance_id=None) for row in body.members)
    return replace(
        body,
        protocol_type=body.protocol_type if version >= 7 else None,
        protocol_name=name,
        skip_assignment=False,
        members=members,
    )


def _described(group: m.DescribedGroup, version: int) -> m.DescribedGroup:
    members = group.members if version >= 4 else tuple(replace(row, group_instance_id=None) for row in group.members)
    return replace(group, members=members, error_message=None)


def _listed(group: m.ListedGroup, version: int) -> m.ListedGroup:
    return replace(group, group_type="", group_state=group.group_state if version >= 4 else "")
