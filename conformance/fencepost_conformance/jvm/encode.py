"""Traces as the harness reads them: one line of JSON arrays. Byte strings are text, one character a byte."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from fencepost.protocol.events import (
    Appended,
    AppendFailed,
    Event,
    Load,
    LoadFailed,
    LoadStarted,
    Request,
    TimerFired,
    TopicsChanged,
    Unload,
)
from fencepost.protocol.messages import (
    DeleteGroupsRequest,
    DescribeGroupsRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    ListGroupsRequest,
    SyncGroupRequest,
)
from fencepost.protocol.records import GroupMetadataKey, Record
from fencepost.protocol.settings import Settings

#: Kafka's number of each API.
API_KEYS: dict[type, int] = {
    JoinGroupRequest: 11,
    HeartbeatRequest: 12,
    LeaveGroupRequest: 13,
    SyncGroupRequest: 14,
    DescribeGroupsRequest: 15,
    ListGroupsRequest: 16,
    DeleteGroupsRequest: 42,
}
GROUP_METADATA = 2

_write = json.JSONEncoder(separators=(",", ":")).encode


def trace(settings: Settings, events: Sequence[Event], *, views: bool, merged: bool) -> bytes:
    """One line, with its end."""
    if settings.new_member_join_timeout_ms != Settings().new_member_join_timeout_ms:
        raise ValueError("Kafka's timeout for a new member is a constant (G-CFG-26); a trace cannot change it")
    told = [
        settings.group_min_session_timeout_ms,
        settings.group_max_session_timeout_ms,
        settings.group_initial_rebalance_delay_ms,
        settings.group_max_size,
        settings.offsets_commit_timeout_ms,
    ]
    return (_write([told, int(views), int(merged), [_EVENTS[type(event)](event) for event in events]]) + "\n").encode()


def _text(data: bytes) -> str:
    return data.decode("latin-1")


def _request(event: Request) -> list[Any]:
    body = event.body
    kind = type(body)
    return [
        "q",
        event.at_ms,
        event.id,
        API_KEYS[kind],
        event.version,
        event.client_id,
        event.client_host,
        sorted(event.denied),
        _BODIES[kind](body),
    ]


def _timer(event: TimerFired) -> list[Any]:
    key = event.key
    return ["t", event.at_ms, key.kind.value, key.group_id, key.member_id, key.operation]


def _load(event: Load) -> list[Any]:
    return ["l", event.at_ms, event.leader_epoch, [_record(record) for record in event.records]]


def _record(record: Record) -> list[Any]:
    if not isinstance(record.key, GroupMetadataKey):
        raise TypeError(f"the harness cannot load a record with {record.key} yet")
    value = record.group_metadata
    if value is None:
        return [GROUP_METADATA, record.key.group, None]
    members = [
        [
            member.member_id,
            member.group_instance_id,
            member.client_id,
            member.client_host,
            member.rebalance_timeout,
            member.session_timeout,
            _text(member.subscription),
            _text(member.assignment),
        ]
        for member in value.members
    ]
    told = [value.protocol_type, value.generation, value.protocol, value.leader, value.current_state_timestamp, members]
    return [GROUP_METADATA, record.key.group, told]


def _join(body: JoinGroupRequest) -> list[Any]:
    protocols: list[str] = []
    for protocol in body.protocols:
        protocols += (protocol.name, _text(protocol.metadata))
    return [
        body.group_id,
        body.session_timeout_ms,
        body.rebalance_timeout_ms,
        body.member_id,
        body.group_instance_id,
        body.protocol_type,
        protocols,
        body.reason,
    ]


def _sync(body: SyncGroupRequest) -> list[Any]:
    assignments: list[str] = []
    for assignment in body.assignments:
        assignments += (assignment.member_id, _text(assignment.assignment))
    return [
        body.group_id,
        body.generation_id,
        body.member_id,
        body.group_instance_id,
        body.protocol_type,
        body.protocol_name,
        assignments,
    ]


def _leave(body: LeaveGroupRequest) -> list[Any]:
    members: list[str | None] = []
    for member in body.members:
        members += (member.member_id, member.group_instance_id, member.reason)
    return [body.group_id, members]


_BODIES: dict[type, Callable[[Any], list[Any]]] = {
    JoinGroupRequest: _join,
    SyncGroupRequest: _sync,
    HeartbeatRequest: lambda body: [body.group_id, body.generation_id, body.member_id, body.group_instance_id],
    LeaveGroupRequest: _leave,
    DescribeGroupsRequest: lambda body: [body.groups],
    ListGroupsRequest: lambda body: [body.states_filter, body.types_filter],
    DeleteGroupsRequest: lambda body: [body.groups_names],
}
_EVENTS: dict[type, Callable[[Any], list[Any]]] = {
    Request: _request,
    TimerFired: _timer,
    Appended: lambda event: ["a", event.at_ms, event.offset],
    AppendFailed: lambda event: ["f", event.at_ms, int(event.error)],
    TopicsChanged: lambda event: ["m", event.at_ms],
    LoadStarted: lambda event: ["s", event.at_ms, event.leader_epoch],
    Load: _load,
    LoadFailed: lambda event: ["x", event.at_ms, event.leader_epoch],
    Unload: lambda event: ["u", event.at_ms, event.leader_epoch],
}
