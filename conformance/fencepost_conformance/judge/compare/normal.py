"""Differences that do not count: unspecified orders, and null or empty where the wire has one form for both.

Kafka lists members and groups in the order of hash maps, and answers parked requests in that order (NOT-10), so rows
are sorted by id and answers by request. The order of records is kept, with these exceptions: the tombstones of one
deletion (C-ADM-09), records of one kind for the members or regular expressions of a group (F-ORD-06), members that are
fenced together, and offsets of a group that are removed together (O-EXP-12). Topics within an encoded assignment are in
the order of a hash map too, where Kafka encodes it (X-SYNC-06, X-DOWN-04).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import groupby
from typing import Any

from fencepost.protocol import messages as m
from fencepost.protocol.consumer_messages import (
    ConsumerGroupDescribeResponse,
    ConsumerGroupHeartbeatResponse,
    DescribedConsumerGroup,
)
from fencepost.protocol.consumer_records import ConsumerGroupRegularExpressionKey
from fencepost.protocol.embedded import SchemaError, decode_assignment, encode_assignment, version_of
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import Reply
from fencepost.protocol.offset_messages import (
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponseTopic,
)
from fencepost.protocol.offset_records import OffsetCommitKey
from fencepost.protocol.records import Record
from fencepost.protocol.view import GroupView

from ...traces.observation import Observation


def normal_body(body: m.ResponseBody) -> m.ResponseBody:
    """Return the answer with its rows in order, and a null protocol name as ``""`` (C-JOIN-77)."""
    if isinstance(body, m.JoinGroupResponse):
        return replace(body, protocol_name=body.protocol_name or "", members=_by_member(body.members))
    if isinstance(body, m.SyncGroupResponse):
        return replace(body, assignment=_assignment(body.assignment))
    if isinstance(body, m.DescribeGroupsResponse):
        return m.DescribeGroupsResponse(tuple(_described(group) for group in body.groups))
    if isinstance(body, m.ListGroupsResponse):
        return replace(body, groups=tuple(sorted(body.groups, key=lambda row: row.group_id)))
    if isinstance(body, m.DeleteGroupsResponse):
        return m.DeleteGroupsResponse(tuple(sorted(body.results, key=lambda row: row.group_id)))  # C-ADM-09
    if isinstance(body, ConsumerGroupHeartbeatResponse):
        # the text beside an error is free, and may be absent
        return body if body.error_code is ErrorCode.NONE else replace(body, error_message=None)
    if isinstance(body, ConsumerGroupDescribeResponse):
        rows = sorted(body.groups, key=lambda row: row.group_id)
        return ConsumerGroupDescribeResponse(tuple(_described_consumer(row) for row in rows))
    if isinstance(body, OffsetFetchResponse):
        return OffsetFetchResponse(tuple(_fetched(group) for group in body.groups))
    return body


def _fetched(group: OffsetFetchResponseGroup) -> OffsetFetchResponseGroup:
    """Sort the rows of a fetch: Kafka lists all offsets in the order of a hash map, so the requested order does not
    count. After a failed append Kafka may list a row several times (O-FETCH-15); here it is listed once."""
    topics: dict[tuple[str, bytes], dict[OffsetFetchResponsePartition, None]] = {}
    for topic in group.topics:
        topics.setdefault((topic.name, topic.topic_id), {}).update(dict.fromkeys(topic.partitions))
    rows = (
        OffsetFetchResponseTopic(
            name=name, topic_id=topic_id, partitions=tuple(sorted(found, key=lambda row: row.partition_index))
        )
        for (name, topic_id), found in sorted(topics.items())
    )
    return replace(group, topics=tuple(rows))


@lru_cache(maxsize=4_096)
def _assignment(data: bytes) -> bytes:
    """Return the bytes with their topics in order; bytes in another format stay as they are."""
    try:
        assignment = decode_assignment(data)
        version = version_of(data)
        if encode_assignment(assignment, version) != data:
            return data
        return encode_assignment(replace(assignment, partitions=tuple(sorted(assignment.partitions))), version)
    except SchemaError:
        return data


def _described_consumer(group: DescribedConsumerGroup) -> DescribedConsumerGroup:
    return replace(group, members=_by_member(group.members))


def _described(group: m.DescribedGroup) -> m.DescribedGroup:
    rows = tuple(replace(row, member_assignment=_assignment(row.member_assignment)) for row in group.members)
    return replace(group, members=_by_member(rows))


def _by_member(rows: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(sorted(rows, key=lambda row: row.member_id)) if len(rows) > 1 else rows


def normal_record(record: Record) -> Record:
    """Return the record with its members in order of their ids."""
    value = record.group_metadata
    if value is None or not value.members:
        return record
    rows = [replace(row, assignment=_assignment(row.assignment)) for row in value.members]
    return Record(record.key, replace(value, members=tuple(sorted(rows, key=lambda row: row.member_id))))


def normal(seen: Observation) -> Observation:
    """Return the observation as it is compared. ``error`` is left out: only Kafka reports it, and its answers show
    it."""
    replies = tuple(
        Reply(reply.request_id, normal_body(reply.body))
        for reply in sorted(seen.replies, key=lambda reply: reply.request_id)
    )
    records = tuple(normal_record(record) for record in seen.records)
    if len(records) > 1:
        if all(record.value is None for record in records):
            records = tuple(sorted(records, key=lambda record: record.key.group))
        records = _rows_in_order(records)
    groups = {name: None if view is None else _view(view) for name, view in seen.groups.items()}
    return Observation(
        records,
        replies,
        seen.timers,
        groups,
        consumer_groups=seen.consumer_groups,
        tasks=seen.tasks,
        offsets=seen.offsets,
    )


def _view(group: GroupView) -> GroupView:
    rows = tuple(replace(member, assignment=_assignment(member.assignment)) for member in group.members)
    return replace(group, members=rows)


def _rows_in_order(records: Sequence[Record]) -> tuple[Record, ...]:
    """Sort neighbouring records that are rows of one table by their member or regex."""
    ordered: list[Record] = []
    for table, run in groupby(records, key=_table):
        rows = list(run)
        ordered += sorted(rows, key=_row) if table is not None else rows
    return tuple(ordered)


def _table(record: Record) -> object:
    key, removed = record.key, record.value is None
    if isinstance(key, ConsumerGroupRegularExpressionKey):
        return key.group, type(key), removed
    if removed and isinstance(key, OffsetCommitKey):
        return key.group, type(key), removed
    if removed and hasattr(key, "member_id"):
        return key.group, removed  # Current, Target and MemberMetadata of one member, then of the next (M-LEAVE-03)
    return (key.group, type(key)) if hasattr(key, "member_id") else None  # rows of targets, of an upgrade (X-UP-10)


def _row(record: Record) -> Any:
    key: Any = record.key
    if isinstance(key, OffsetCommitKey):
        return key.topic, key.partition
    return key.regular_expression if isinstance(key, ConsumerGroupRegularExpressionKey) else key.member_id
