"""What does not count as a difference: orders that nobody promises, null and empty where the wire has one for both.

Kafka shows members and groups in the order of hash maps, and answers parked requests in that order (NOT-10), so rows
are sorted by id and answers by request. The order of records is kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from fencepost.protocol import messages as m
from fencepost.protocol.events import Reply
from fencepost.protocol.records import Record

from ..targets.base import Observation


def on_the_wire(body: m.ResponseBody, version: int) -> m.ResponseBody:
    """The answer without what its version does not carry (G-WIRE-01…04, 12…14), rows in order, and a null protocol name
    as ``""`` (G-WIRE-20, C-JOIN-77)."""
    if isinstance(body, m.JoinGroupResponse):
        members = body.members if version >= 5 else tuple(replace(row, group_instance_id=None) for row in body.members)
        return replace(
            body,
            protocol_type=body.protocol_type if version >= 7 else None,
            protocol_name=body.protocol_name or "",
            skip_assignment=body.skip_assignment and version >= 9,
            members=_by_member(members),
        )
    if isinstance(body, m.SyncGroupResponse):
        return body if version >= 5 else replace(body, protocol_type=None, protocol_name=None)
    if isinstance(body, m.DescribeGroupsResponse):
        return m.DescribeGroupsResponse(tuple(_described(group, version) for group in body.groups))
    if isinstance(body, m.ListGroupsResponse):
        rows = sorted(body.groups, key=lambda row: row.group_id)
        return replace(
            body,
            groups=tuple(
                replace(
                    row,
                    group_state=row.group_state if version >= 4 else "",
                    group_type=row.group_type if version >= 5 else "",
                )
                for row in rows
            ),
        )
    if isinstance(body, m.DeleteGroupsResponse):
        return m.DeleteGroupsResponse(tuple(sorted(body.results, key=lambda row: row.group_id)))  # C-ADM-09
    return body


def _described(group: m.DescribedGroup, version: int) -> m.DescribedGroup:
    members = group.members if version >= 4 else tuple(replace(row, group_instance_id=None) for row in group.members)
    # that there is a message is the protocol's; its words are Kafka's (C-ADM-02)
    message = "…" if version >= 6 and group.error_message is not None else None
    return replace(group, members=_by_member(members), error_message=message)


def _by_member(rows: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(sorted(rows, key=lambda row: row.member_id)) if len(rows) > 1 else rows


def normal_record(record: Record) -> Record:
    """The record with its members in order of their ids."""
    value = record.value
    if value is None or len(value.members) < 2:
        return record
    return Record(record.key, replace(value, members=tuple(sorted(value.members, key=lambda row: row.member_id))))


def normal(seen: Observation, versions: Mapping[int, int]) -> Observation:
    """The observation as it is compared; ``versions`` tells each request's. ``error`` is left out: only Kafka tells it,
    and its answers show it."""
    replies = tuple(
        Reply(reply.request_id, on_the_wire(reply.body, versions[reply.request_id]))
        for reply in sorted(seen.replies, key=lambda reply: reply.request_id)
    )
    return Observation(tuple(normal_record(record) for record in seen.records), replies, seen.timers, seen.groups)
