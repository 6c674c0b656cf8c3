"""What does not count as a difference: orders that nobody promises, null and empty where the wire has one for both.

Kafka shows members and groups in the order of hash maps, and answers parked requests in that order (NOT-10), so rows
are sorted by id and answers by request. The order of records is kept, but for the tombstones of one deletion
(C-ADM-09), for records of one kind that stand for the members or regular expressions of a group (F-ORD-06), and for the
members that are fenced together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

from fencepost.protocol import messages as m
from fencepost.protocol.consumer_messages import (
    ConsumerGroupDescribeResponse,
    ConsumerGroupHeartbeatResponse,
    DescribedConsumerGroup,
)
from fencepost.protocol.consumer_records import (
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupTargetAssignmentMemberKey,
)
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import Reply
from fencepost.protocol.records import Record

from ..targets.base import Observation


def normal_body(body: m.ResponseBody) -> m.ResponseBody:
    """The answer with its rows in order, and a null protocol name as ``""`` (C-JOIN-77)."""
    if isinstance(body, m.JoinGroupResponse):
        return replace(body, protocol_name=body.protocol_name or "", members=_by_member(body.members))
    if isinstance(body, m.DescribeGroupsResponse):
        return m.DescribeGroupsResponse(tuple(_described(group) for group in body.groups))
    if isinstance(body, m.ListGroupsResponse):
        return replace(body, groups=tuple(sorted(body.groups, key=lambda row: row.group_id)))
    if isinstance(body, m.DeleteGroupsResponse):
        return m.DeleteGroupsResponse(tuple(sorted(body.results, key=lambda row: row.group_id)))  # C-ADM-09
    if isinstance(body, ConsumerGroupHeartbeatResponse):
        # beside an error a coordinator may say what it likes, or nothing
        return body if body.error_code is ErrorCode.NONE else replace(body, error_message=None)
    if isinstance(body, ConsumerGroupDescribeResponse):
        rows = sorted(body.groups, key=lambda row: row.group_id)
        return ConsumerGroupDescribeResponse(tuple(_described_consumer(row) for row in rows))
    return body


def _message(words: str | None) -> str | None:
    """That there is a message is the protocol's; its words are Kafka's (C-ADM-02)."""
    return None if words is None else "…"


def _described_consumer(group: DescribedConsumerGroup) -> DescribedConsumerGroup:
    return replace(group, members=_by_member(group.members), error_message=_message(group.error_message))


def _described(group: m.DescribedGroup) -> m.DescribedGroup:
    return replace(group, members=_by_member(group.members), error_message=_message(group.error_message))


def _by_member(rows: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(sorted(rows, key=lambda row: row.member_id)) if len(rows) > 1 else rows


def normal_record(record: Record) -> Record:
    """The record with its members in order of their ids."""
    value = record.group_metadata
    if value is None or len(value.members) < 2:
        return record
    return Record(record.key, replace(value, members=tuple(sorted(value.members, key=lambda row: row.member_id))))


def normal(seen: Observation) -> Observation:
    """The observation as it is compared. ``error`` is left out: only Kafka tells it, and its answers show it."""
    replies = tuple(
        Reply(reply.request_id, normal_body(reply.body))
        for reply in sorted(seen.replies, key=lambda reply: reply.request_id)
    )
    records = tuple(normal_record(record) for record in seen.records)
    if len(records) > 1:
        if all(record.value is None for record in records):
            records = tuple(sorted(records, key=lambda record: record.key.group))
        records = _rows_in_order(records)
    return Observation(
        records, replies, seen.timers, seen.groups, consumer_groups=seen.consumer_groups, tasks=seen.tasks
    )


def _rows_in_order(records: Sequence[Record]) -> tuple[Record, ...]:
    """Records that follow each other and are the rows of one table, in order of their member or regex."""
    ordered: list[Record] = []
    for table, run in groupby(records, key=_table):
        rows = list(run)
        ordered += sorted(rows, key=_row) if table is not None else rows
    return tuple(ordered)


def _table(record: Record) -> object:
    key, removed = record.key, record.value is None
    if isinstance(key, ConsumerGroupRegularExpressionKey):
        return key.group, type(key), removed
    if removed and hasattr(key, "member_id"):
        return key.group, removed  # Current, Target and MemberMetadata of one member, then of the next (M-LEAVE-03)
    return (key.group, type(key)) if isinstance(key, ConsumerGroupTargetAssignmentMemberKey) else None


def _row(record: Record) -> Any:
    key: Any = record.key
    return key.regular_expression if isinstance(key, ConsumerGroupRegularExpressionKey) else key.member_id
