"""What the harness observed, from its line of JSON arrays into the suite's own types."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import Reply, TimerKey, TimerKind
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
from fencepost.protocol.records import GroupMetadataKey, GroupMetadataMember, GroupMetadataValue, Record
from fencepost.protocol.view import GroupState, GroupView, MemberView

from ..targets.base import Observation
from .encode import GROUP_METADATA
from .process import ProcessFault

VALUE_VERSION = 3  # F-REC-20

_ERRORS = {int(code): code for code in ErrorCode}
_KINDS = {kind.value: kind for kind in TimerKind}
_STATES = {state.value: state for state in GroupState}
_QUIET = Observation()


def observations(line: bytes) -> list[Observation]:
    """One observation an event. Raises ``ProcessFault`` if the harness could not run the trace."""
    told = json.loads(line)
    if told and isinstance(told[0], str):
        raise ProcessFault(f"the harness could not run a trace: {told[0]}")
    return [_observation(*row) for row in told]


def _observation(
    records: list[Any], replies: list[Any], timers: list[Any], groups: list[Any], error: str | None
) -> Observation:
    if not (records or replies or timers or groups or error):
        return _QUIET
    return Observation(
        tuple([_record(*record) for record in records]),
        tuple([Reply(reply[0], _REPLIES[reply[1]](reply[2:])) for reply in replies]),
        {
            TimerKey(_KINDS[kind], group, member, operation): deadline
            for kind, group, member, operation, deadline in timers
        },
        {group: None if view is None else _view(group, view) for group, view in groups},
        error,
    )


def _bytes(text: str) -> bytes:
    return text.encode("latin-1")


def _error(code: int) -> ErrorCode:
    found = _ERRORS.get(code)
    if found is None:
        raise ProcessFault(f"Kafka answered with error code {code}, which no rule of groups names")
    return found


def _record(kind: int, group: str, value: list[Any] | None) -> Record:
    if kind != GROUP_METADATA:
        raise ProcessFault(f"Kafka wrote a record of type {kind}, which this target cannot show yet")
    if value is None:
        return Record(GroupMetadataKey(group), None)
    version, protocol_type, generation, protocol, leader, timestamp, members = value
    if version != VALUE_VERSION:
        raise ProcessFault(f"Kafka wrote a GroupMetadata value of version {version}, not {VALUE_VERSION}")
    rows = tuple(
        [
            GroupMetadataMember(
                member, instance, client, host, rebalance, session, _bytes(subscribed), _bytes(assigned)
            )
            for member, instance, client, host, rebalance, session, subscribed, assigned in members
        ]
    )
    return Record(
        GroupMetadataKey(group), GroupMetadataValue(protocol_type, generation, protocol, leader, timestamp, rows)
    )


def _join(row: list[Any]) -> JoinGroupResponse:
    error, generation, protocol_type, protocol_name, leader, skip, member_id, members = row
    return JoinGroupResponse(
        _error(error),
        generation,
        protocol_type,
        protocol_name,
        leader,
        bool(skip),
        member_id,
        tuple([JoinGroupMember(member, instance, _bytes(metadata)) for member, instance, metadata in members]),
    )


def _sync(row: list[Any]) -> SyncGroupResponse:
    error, protocol_type, protocol_name, assignment = row
    return SyncGroupResponse(_error(error), protocol_type, protocol_name, _bytes(assignment))


def _leave(row: list[Any]) -> LeaveGroupResponse:
    error, members = row
    rows = [LeaveGroupMemberResponse(member, instance, _error(code)) for member, instance, code in members]
    return LeaveGroupResponse(_error(error), tuple(rows))


def _describe(row: list[Any]) -> DescribeGroupsResponse:
    return DescribeGroupsResponse(tuple([_described(group) for group in row[0]]))


def _described(row: list[Any]) -> DescribedGroup:
    error, group, state, protocol_type, protocol, members, message = row
    rows = [
        DescribedMember(member, instance, client, host, _bytes(metadata), _bytes(assignment))
        for member, instance, client, host, metadata, assignment in members
    ]
    return DescribedGroup(_error(error), group, state, protocol_type, protocol, tuple(rows), message)


def _list(row: list[Any]) -> ListGroupsResponse:
    error, groups = row
    return ListGroupsResponse(_error(error), tuple([ListedGroup(*group) for group in groups]))


def _delete(row: list[Any]) -> DeleteGroupsResponse:
    return DeleteGroupsResponse(tuple([DeletedGroup(group, _error(error)) for group, error in row[0]]))


_REPLIES: dict[int, Callable[[list[Any]], Any]] = {
    11: _join,
    12: lambda row: HeartbeatResponse(_error(row[0])),
    13: _leave,
    14: _sync,
    15: _describe,
    16: _list,
    42: _delete,
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
        _STATES[state],
        _STATES[previous],
        generation,
        protocol_type,
        protocol_name,
        leader,
        tuple([_member(member) for member in members]),
        tuple([(instance, member) for instance, member in static_members]),
        frozenset(pending_join),
        frozenset(pending_sync),
        bool(new_member_added),
    )


def _member(row: list[Any]) -> MemberView:
    member, instance, client, host, rebalance, session, protocols, assignment, is_new, awaiting_join, awaiting_sync = (
        row
    )
    return MemberView(
        member,
        instance,
        client,
        host,
        rebalance,
        session,
        tuple([Protocol(protocols[i], _bytes(protocols[i + 1])) for i in range(0, len(protocols), 2)]),
        _bytes(assignment),
        bool(is_new),
        bool(awaiting_join),
        bool(awaiting_sync),
    )
