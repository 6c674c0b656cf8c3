"""Traces as the harness reads them: one line of JSON arrays. Byte strings are text, one character a byte."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from fencepost.codec import Codec
from fencepost.protocol.consumer_messages import ConsumerGroupDescribeRequest, ConsumerGroupHeartbeatRequest
from fencepost.protocol.events import (
    Appended,
    AppendFailed,
    Event,
    GroupConfig,
    GroupConfigChanged,
    Load,
    LoadFailed,
    LoadStarted,
    Request,
    TaskDone,
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
from fencepost.protocol.offset_messages import (
    OffsetCommitRequest,
    OffsetCommitRequestTopic,
    OffsetDeleteRequest,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    TxnOffsetCommitRequest,
    WriteTxnMarkerRequest,
)
from fencepost.protocol.offset_records import ControlKey
from fencepost.protocol.records import Record
from fencepost.protocol.settings import Settings

from .settings import kafka_config
from .text_form import bytes_to_text, id_to_text

#: Kafka's number of each API.
API_KEYS: dict[type, int] = {
    OffsetCommitRequest: 8,
    OffsetFetchRequest: 9,
    JoinGroupRequest: 11,
    HeartbeatRequest: 12,
    LeaveGroupRequest: 13,
    SyncGroupRequest: 14,
    DescribeGroupsRequest: 15,
    ListGroupsRequest: 16,
    WriteTxnMarkerRequest: 27,
    TxnOffsetCommitRequest: 28,
    DeleteGroupsRequest: 42,
    OffsetDeleteRequest: 47,
    ConsumerGroupHeartbeatRequest: 68,
    ConsumerGroupDescribeRequest: 69,
}
_GROUP_CONFIGS = {
    "consumer_session_timeout_ms": "consumer.session.timeout.ms",
    "consumer_heartbeat_interval_ms": "consumer.heartbeat.interval.ms",
    "consumer_assignment_interval_ms": "consumer.assignment.interval.ms",
}

_write = json.JSONEncoder(separators=(",", ":")).encode


def trace(settings: Settings, events: Sequence[Event], codec: Codec, *, views: bool, merged: bool) -> bytes:
    """Return one line, with its line end. ``codec``: of the release that reads it."""
    return _line(_trace(settings, [row(event, codec) for event in events], views=views, merged=merged))


def beginning(settings: Settings, rows: Sequence[list[Any]]) -> bytes:
    """Return a line that begins a continued trace (``more``): ``rows`` of its first events."""
    return _line(["=", _trace(settings, rows, views=True, merged=False)])


def more(rows: Sequence[list[Any]]) -> bytes:
    """Return a line with more events of the trace that was begun last."""
    return _line(["+", rows])


def row(event: Event, codec: Codec) -> list[Any]:
    """One event."""
    if isinstance(event, Load):
        return ["l", event.at_ms, event.leader_epoch, [_record(record, codec) for record in event.records]]
    return _EVENTS[type(event)](event)


def next_id(number: int) -> list[Any]:
    """Not an event: set the number of the next random id. Not before an ``AppendFailed``, which belongs to the event
    before."""
    return ["i", number]


def _trace(settings: Settings, rows: Sequence[list[Any]], *, views: bool, merged: bool) -> list[Any]:
    return [kafka_config(settings), int(settings.consumer_protocol_enabled), int(views), int(merged), rows]


def _line(row: list[Any]) -> bytes:
    return (_write(row) + "\n").encode()


def _request(event: Request) -> list[Any]:
    body = event.body
    kind = type(body)
    row = [
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
    if event.denied_topics or event.denied_transactional_ids:
        row.append(sorted(event.denied_topics))
    if event.denied_transactional_ids:
        row.append(sorted(event.denied_transactional_ids))
    return row


def _topics(event: TopicsChanged) -> list[Any]:
    topics = [
        [topic.name, id_to_text(topic.topic_id), topic.partitions, [sorted(racks) for racks in topic.racks]]
        for topic in event.topics
    ]
    return ["m", event.at_ms, event.version, topics]


def _config(event: GroupConfigChanged) -> list[Any]:
    config = event.config or GroupConfig()
    values = {name: getattr(config, field) for field, name in _GROUP_CONFIGS.items()}
    return ["g", event.at_ms, event.group_id, {name: value for name, value in values.items() if value is not None}]


def _task(event: TaskDone) -> list[Any]:
    return ["k", event.at_ms, event.key.kind.value, event.key.group_id, int(event.failed)]


def _timer(event: TimerFired) -> list[Any]:
    key = event.key
    return ["t", event.at_ms, key.kind.value, key.group_id, key.member_id, key.operation]


def _record(record: Record, codec: Codec) -> list[str | int | None]:
    key, value = codec.encode(record)
    row: list[str | int | None] = [bytes_to_text(key), None if value is None else bytes_to_text(value)]
    if record.producer is not None:
        row += (record.producer.producer_id, record.producer.producer_epoch)
    if isinstance(record.key, ControlKey):
        row.append(int(record.key.committed))
    return row


def _join(body: JoinGroupRequest) -> list[Any]:
    protocols: list[str] = []
    for protocol in body.protocols:
        protocols += (protocol.name, bytes_to_text(protocol.metadata))
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
        assignments += (assignment.member_id, bytes_to_text(assignment.assignment))
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


def _consumer_heartbeat(body: ConsumerGroupHeartbeatRequest) -> list[Any]:
    owned = body.topic_partitions
    return [
        body.group_id,
        body.member_id,
        body.member_epoch,
        body.instance_id,
        body.rack_id,
        body.rebalance_timeout_ms,
        body.subscribed_topic_names,
        body.subscribed_topic_regex,
        body.server_assignor,
        None if owned is None else [[id_to_text(row.topic_id), row.partitions] for row in owned],
    ]


def _commits(topics: tuple[OffsetCommitRequestTopic, ...]) -> list[Any]:
    return [
        [
            topic.name,
            id_to_text(topic.topic_id),
            [
                [row.partition_index, row.committed_offset, row.committed_leader_epoch, row.committed_metadata]
                for row in topic.partitions
            ],
        ]
        for topic in topics
    ]


def _commit(body: OffsetCommitRequest) -> list[Any]:
    return [
        body.group_id,
        body.generation_id_or_member_epoch,
        body.member_id,
        body.group_instance_id,
        body.retention_time_ms,
        _commits(body.topics),
    ]


def _txn_commit(body: TxnOffsetCommitRequest) -> list[Any]:
    return [
        body.group_id,
        body.generation_id,
        body.member_id,
        body.group_instance_id,
        body.transactional_id,
        body.producer_id,
        body.producer_epoch,
        _commits(body.topics),
    ]


def _fetch(body: OffsetFetchRequest) -> list[Any]:
    return [int(body.require_stable), [_fetch_group(group) for group in body.groups]]


def _fetch_group(group: OffsetFetchRequestGroup) -> list[Any]:
    topics = group.topics
    if topics is None:
        return [group.group_id, group.member_id, group.member_epoch, None]
    rows = [[topic.name, id_to_text(topic.topic_id), topic.partition_indexes] for topic in topics]
    return [group.group_id, group.member_id, group.member_epoch, rows]


def _marker(body: WriteTxnMarkerRequest) -> list[Any]:
    return [
        body.producer_id,
        body.producer_epoch,
        body.coordinator_epoch,
        int(body.committed),
        body.transaction_version,
    ]


_BODIES: dict[type, Callable[[Any], list[Any]]] = {
    JoinGroupRequest: _join,
    SyncGroupRequest: _sync,
    HeartbeatRequest: lambda body: [body.group_id, body.generation_id, body.member_id, body.group_instance_id],
    LeaveGroupRequest: _leave,
    DescribeGroupsRequest: lambda body: [body.groups],
    ListGroupsRequest: lambda body: [body.states_filter, body.types_filter],
    DeleteGroupsRequest: lambda body: [body.groups_names],
    ConsumerGroupHeartbeatRequest: _consumer_heartbeat,
    ConsumerGroupDescribeRequest: lambda body: [body.group_ids],
    OffsetCommitRequest: _commit,
    OffsetFetchRequest: _fetch,
    OffsetDeleteRequest: lambda body: [
        body.group_id,
        [[topic.name, topic.partition_indexes] for topic in body.topics],
    ],
    TxnOffsetCommitRequest: _txn_commit,
    WriteTxnMarkerRequest: _marker,
}
_EVENTS: dict[type, Callable[[Any], list[Any]]] = {
    Request: _request,
    TimerFired: _timer,
    Appended: lambda event: ["a", event.at_ms, event.offset],
    AppendFailed: lambda event: ["f", event.at_ms, int(event.error)],
    TaskDone: _task,
    TopicsChanged: _topics,
    GroupConfigChanged: _config,
    LoadStarted: lambda event: ["s", event.at_ms, event.leader_epoch],
    LoadFailed: lambda event: ["x", event.at_ms, event.leader_epoch],
    Unload: lambda event: ["u", event.at_ms, event.leader_epoch],
}
