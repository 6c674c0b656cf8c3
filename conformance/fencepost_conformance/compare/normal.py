"""What does not count as a difference: orders that nobody promises, null and empty where the wire has one for both.

Kafka shows members and groups in the order of hash maps, and answers parked requests in that order (NOT-10), so rows
are sorted by id and answers by request. The order of records is kept, but for the tombstones of one deletion
(C-ADM-09).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from fencepost.protocol import messages as m
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
    return body


def _described(group: m.DescribedGroup) -> m.DescribedGroup:
    # that there is a message is the protocol's; its words are Kafka's (C-ADM-02)
    message = None if group.error_message is None else "…"
    return replace(group, members=_by_member(group.members), error_message=message)


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
    if len(records) > 1 and all(record.value is None for record in records):
        records = tuple(sorted(records, key=lambda record: record.key.group))
    return Observation(records, replies, seen.timers, seen.groups)
