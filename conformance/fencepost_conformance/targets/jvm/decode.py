"""Converts the harness's observations from lines of JSON arrays to the suite's types."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from fencepost.codec import Codec, CodecError, Opaque
from fencepost.protocol.consumer_messages import (
    ConsumerGroupDescribeResponse,
    ConsumerGroupHeartbeatResponse,
    DescribedConsumerGroup,
    DescribedConsumerMember,
    NamedTopicPartitions,
    TopicPartitions,
)
from fencepost.protocol.events import Reply, TaskKey, TaskKind, TimerKey, TimerKind
from fencepost.protocol.messages import (
    DeletedGroup,
    DeleteGroupsResponse,
    DescribedGroup,
    DescribedMember,
    DescribeGroupsResponse,
    HeartbeatResponse,
    JoinGroupMember,
    JoinGroupResponse,
    LeaveGroupMemberResponse,
    LeaveGroupResponse,
    ListedGroup,
    ListGroupsResponse,
    Protocol,
    SyncGroupResponse,
)
from fencepost.protocol.offset_messages import (
    OffsetCommitResponse,
    OffsetDeleteResponse,
    OffsetFetchResponse,
    TxnOffsetCommitResponse,
    WriteTxnMarkerResponse,
)
from fencepost.protocol.offset_records import Producer
from fencepost.protocol.records import Record
from fencepost.protocol.view import GroupState, GroupView, MemberView

from ...traces.observation import Observation
from .consumer_view import consumer_view
from .error_codes import error_of as _error
from .offset_decode import committed, fetched, offsets_view
from .process import ProcessFault
from .record_order import in_order
from .text_form import text_to_bytes, text_to_id

_KINDS = {kind.value: kind for kind in TimerKind}
_STATES = {state.value: state for state in GroupState}
_QUIET = Observation()
#: The key of a record that ends a transaction: version and kind (F-REC-26). Any other key also has a group.
CONTROL_KEY_BYTES = 4


def observations(line: bytes, codec: Codec) -> list[Observation]:
    """Return one observation for each event. ``codec``: of the release that wrote the line.

    Raises ``ProcessFault`` if the harness could not run the trace."""
    return [_observation(row, codec) for row in _answer_of(line)]


def last_of(line: bytes, codec: Codec) -> tuple[int, Observation]:
    """For a continued trace: return the number of random ids drawn so far, and the last observation.

    Raises as ``observations``."""
    drawn, rows = _answer_of(line)
    return drawn, _observation(rows[-1], codec)


def _answer_of(line: bytes) -> list[Any]:
    rows: list[Any] = json.loads(line)
    if rows and isinstance(rows[0], str):
        raise ProcessFault(f"the harness could not run a trace: {rows[0]}")
    return rows


def _observation(row: list[Any], codec: Codec) -> Observation:
    records, replies, timers, groups, consumer_groups, offsets, tasks, error = row
    if not (records or replies or timers or groups or consumer_groups or offsets or tasks or error):
        return _QUIET
    return Observation(
        tuple([_record(record, codec) for record in records]),
        tuple([Reply(reply[0], _REPLIES[reply[1]](reply[2:])) for reply in replies]),
        {
            TimerKey(_KINDS[kind], group, member, operation): deadline
            for kind, group, member, operation, deadline in timers
        },
        {group: None if view is None else _view(group, view) for group, view in groups},
        error,
        {group: None if view is None else consumer_view(group, view) for group, view in consumer_groups},
        tuple([TaskKey(TaskKind(kind), group) for kind, group in tasks]),
        None if offsets is None else offsets_view(offsets),
    )


def _record(fields: list[Any], codec: Codec) -> Record:
    """Decode a record; raises ``ProcessFault`` if the codec does not encode it as Kafka did (F-REC-20)."""
    key, value = (None if each is None else text_to_bytes(each) for each in fields[:2])
    producer = Producer(*fields[2:4]) if len(fields) > 2 else None
    try:
        if producer is not None and key is not None and len(key) == CONTROL_KEY_BYTES:
            return _end(codec, key, value, producer)
        read = codec.decode(key, value, producer)
    except CodecError as reason:
        raise ProcessFault(f"Kafka wrote something that is not a group record: {reason}") from None
    if isinstance(read, Opaque):
        raise ProcessFault(f"Kafka wrote a record of {read.name}, which is not in the rule book")
    again = codec.encode(read)
    if again != (key, value):
        raise ProcessFault(f"Kafka wrote {read} as {key!r} {value!r}, but the codec writes {again[0]!r} {again[1]!r}")
    return in_order(read)


def _end(codec: Codec, key: bytes, value: bytes | None, producer: Producer) -> Record:
    read = codec.decode_marker(key, value, producer)
    if read is None or codec.encode(read) != (key, value):
        raise ProcessFault(f"Kafka ended a transaction with {key!r} {value!r}, but the codec reads {read}")
    return read


def _join(row: list[Any]) -> JoinGroupResponse:
    error, generation, protocol_type, protocol_name, leader, skip, member_id, members = row
    return JoinGroupResponse(
        _error(error),
        generation_id=generation,
        protocol_type=protocol_type,
        protocol_name=protocol_name,
        leader=leader,
        skip_assignment=bool(skip),
        member_id=member_id,
        members=tuple(
            [
                JoinGroupMember(member, group_instance_id=instance, metadata=text_to_bytes(metadata))
                for member, instance, metadata in members
            ]
        ),
    )


def _sync(row: list[Any]) -> SyncGroupResponse:
    error, protocol_type, protocol_name, assignment = row
    return SyncGroupResponse(
        _error(error), protocol_type=protocol_type, protocol_name=protocol_name, assignment=text_to_bytes(assignment)
    )


def _leave(row: list[Any]) -> LeaveGroupResponse:
    error, members = row
    rows = [
        LeaveGroupMemberResponse(member, group_instance_id=instance, error_code=_error(code))
        for member, instance, code in members
    ]
    return LeaveGroupResponse(_error(error), tuple(rows))


def _describe(row: list[Any]) -> DescribeGroupsResponse:
    return DescribeGroupsResponse(tuple([_described(group) for group in row[0]]))


def _described(row: list[Any]) -> DescribedGroup:
    error, group, state, protocol_type, protocol, members, message = row
    rows = [
        DescribedMember(
            member,
            group_instance_id=instance,
            client_id=client,
            client_host=host,
            member_metadata=text_to_bytes(metadata),
            member_assignment=text_to_bytes(assignment),
        )
        for member, instance, client, host, metadata, assignment in members
    ]
    return DescribedGroup(
        _error(error),
        group_id=group,
        group_state=state,
        protocol_type=protocol_type,
        protocol_data=protocol,
        members=tuple(rows),
        error_message=message,
    )


def _list(row: list[Any]) -> ListGroupsResponse:
    error, groups = row
    return ListGroupsResponse(
        _error(error),
        tuple(
            [
                ListedGroup(group, protocol_type=protocol_type, group_state=state, group_type=kind)
                for group, protocol_type, state, kind in groups
            ]
        ),
    )


def _delete(row: list[Any]) -> DeleteGroupsResponse:
    return DeleteGroupsResponse(tuple([DeletedGroup(group, _error(error)) for group, error in row[0]]))


def _topics(rows: list[Any]) -> tuple[TopicPartitions, ...]:
    found = [TopicPartitions(text_to_id(topic), tuple(sorted(partitions))) for topic, partitions in rows]
    return tuple(sorted(found, key=lambda row: row.topic_id))


def _consumer_heartbeat(row: list[Any]) -> ConsumerGroupHeartbeatResponse:
    error, message, member_id, epoch, interval, assignment = row
    return ConsumerGroupHeartbeatResponse(
        _error(error),
        error_message=message,
        member_id=member_id,
        member_epoch=epoch,
        heartbeat_interval_ms=interval,
        assignment=None if assignment is None else _topics(assignment),
    )


def _named_topics(rows: list[Any]) -> tuple[NamedTopicPartitions, ...]:
    found = [NamedTopicPartitions(text_to_id(topic), name, tuple(sorted(ps))) for topic, name, ps in rows]
    return tuple(sorted(found, key=lambda row: row.topic_id))


def _described_consumer(row: list[Any]) -> DescribedConsumerGroup:
    error, message, group, state, epoch, assignment_epoch, assignor, members = row
    rows = [
        DescribedConsumerMember(
            member,
            instance_id=instance,
            rack_id=rack,
            member_epoch=member_epoch,
            client_id=client,
            client_host=host,
            subscribed_topic_names=tuple(sorted(names)),
            subscribed_topic_regex=regex,
            assignment=_named_topics(assigned),
            target_assignment=_named_topics(target),
            member_type=kind,
        )
        for member, instance, rack, member_epoch, client, host, names, regex, assigned, target, kind in members
    ]
    return DescribedConsumerGroup(
        _error(error),
        group_id=group,
        group_state=state,
        group_epoch=epoch,
        assignment_epoch=assignment_epoch,
        assignor_name=assignor,
        members=tuple(rows),
        error_message=message,
    )


_REPLIES: dict[int, Callable[[list[Any]], Any]] = {
    8: lambda row: OffsetCommitResponse(committed(row[0])),
    9: lambda row: OffsetFetchResponse(fetched(row[0])),
    11: _join,
    12: lambda row: HeartbeatResponse(_error(row[0])),
    13: _leave,
    14: _sync,
    15: _describe,
    16: _list,
    27: lambda row: WriteTxnMarkerResponse(_error(row[0])),
    28: lambda row: TxnOffsetCommitResponse(committed(row[0])),
    42: _delete,
    47: lambda row: OffsetDeleteResponse(_error(row[0]), committed(row[1])),
    68: _consumer_heartbeat,
    69: lambda row: ConsumerGroupDescribeResponse(tuple([_described_consumer(group) for group in row[0]])),
}


def _view(group: str, row: list[Any]) -> GroupView:
    (
        state,
        previous,
        generation,
        protocol_type,
        protocol_name,
        leader,
        members,
        static_members,
        pending_join,
        pending_sync,
        new_member_added,
    ) = row
    return GroupView(
        group,
        state=_STATES[state],
        previous_state=_STATES[previous],
        generation_id=generation,
        protocol_type=protocol_type,
        protocol_name=protocol_name,
        leader=leader,
        members=tuple(sorted([_member(member) for member in members], key=lambda member: member.member_id)),
        static_members=tuple(sorted([(instance, member) for instance, member in static_members])),
        pending_join=frozenset(pending_join),
        pending_sync=frozenset(pending_sync),
        new_member_added=bool(new_member_added),
    )


def _member(row: list[Any]) -> MemberView:
    member, instance, client, host, rebalance, session, protocols, assignment, is_new, awaiting_join, awaiting_sync = (
        row
    )
    return MemberView(
        member,
        group_instance_id=instance,
        client_id=client,
        client_host=host,
        rebalance_timeout_ms=rebalance,
        session_timeout_ms=session,
        protocols=tuple([Protocol(protocols[i], text_to_bytes(protocols[i + 1])) for i in range(0, len(protocols), 2)]),
        assignment=text_to_bytes(assignment),
        is_new=bool(is_new),
        awaiting_join=bool(awaiting_join),
        awaiting_sync=bool(awaiting_sync),
    )
