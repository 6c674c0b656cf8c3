"""The kind of a request's group decides which handler serves the request.

A request is of one protocol, and its group may be of the other. Then ``mixed`` serves the classic protocol, and the
consumer protocol converts the group, if that is allowed (``mixed.upgrade``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from fencepost.protocol.consumer_messages import ConsumerGroupDescribeRequest, ConsumerGroupHeartbeatRequest
from fencepost.protocol.events import Request, TimerFired, TimerKind
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
    OffsetDeleteRequest,
    OffsetFetchRequest,
    TxnOffsetCommitRequest,
    WriteTxnMarkerRequest,
)
from fencepost.quirks import varies

from . import checks
from .admin import delete, describe_consumer_groups, describe_groups, expire, list_groups
from .classic import heartbeat as classic_heartbeat
from .classic import join as classic_join
from .classic import leave as classic_leave
from .classic import sync as classic_sync
from .classic.heartbeat import classic_timer_fired
from .classic.join import Predecessor
from .consumer import timers
from .consumer.group import find_consumer_group
from .consumer.records import removed_group
from .consumer_group_heartbeat import consumer_group_heartbeat
from .kernel import operations
from .kernel.step import Step
from .mixed import classic_join as mixed_join
from .mixed import classic_member
from .mixed.departure import classic_group_leave, timer_fired
from .mixed.upgrade import left_off
from .offsets import commit, deletion, fetch, transactions


def join(step: Step, request: Request, body: JoinGroupRequest) -> None:
    """A JoinGroup goes to the group of that name, of any kind, or to a new one (C-JOIN-09, C-JOIN-15). A new classic
    group replaces an empty consumer group (C-JOIN-10)."""
    other = find_consumer_group(step, body.group_id)
    if other is None:
        classic_join.join(step, request, body)
    elif other.members:
        mixed_join.join(step, request, body, other)
    elif not body.member_id:
        classic_join.join(step, request, body, Predecessor(left_off(step.rules, other), removed_group(other)))
    else:
        join_as_member(step, request, body)


@varies
def join_as_member(step: Step, request: Request, body: JoinGroupRequest) -> None:
    """An empty consumer group is not a group of classic members: it stays, and the member id of the request is unknown
    (C-JOIN-15)."""
    classic_join.join(step, request, body)


def sync(step: Step, request: Request, body: SyncGroupRequest) -> None:
    """A SyncGroup goes to the group of that name, of any kind (C-SYNC-06)."""
    other = find_consumer_group(step, body.group_id)
    if other is not None and other.members:
        classic_member.sync(step, request, body, other)
    else:
        classic_sync.sync(step, request, body)


def heartbeat(step: Step, request: Request, body: HeartbeatRequest) -> None:
    """A Heartbeat goes to the group of that name, of any kind (C-HB-06)."""
    other = find_consumer_group(step, body.group_id)
    if other is None:
        classic_heartbeat.heartbeat(step, request, body)
    else:
        classic_member.heartbeat(step, request, body, other)


def leave(step: Step, request: Request, body: LeaveGroupRequest) -> None:
    """A LeaveGroup goes to the group of that name, of any kind (C-LEAVE-04)."""
    other = find_consumer_group(step, body.group_id)
    if other is None:
        classic_leave.leave(step, request, body)
    else:
        classic_group_leave(step, request, body, other)


def timer(step: Step, event: TimerFired) -> None:
    """The kind of the timer says which kind of group it belongs to."""
    key = event.key
    armed = step.timers.fires(key)
    if key.kind is TimerKind.OPERATION:
        operations.timed_out(step, key.operation)
    elif key.kind is TimerKind.EXPIRY:
        expire(step)
    elif key.kind in timers.KINDS:
        timer_fired(step, key, armed.epoch)
    else:
        classic_timer_fired(step, armed)


class Api(NamedTuple):
    """A request type: the checks before its group is read, and the handler."""

    check: checks.Check
    handle: Callable[[Step, Request, Any], None]


APIS: dict[type, Api] = {
    JoinGroupRequest: Api(checks.of_join, join),
    SyncGroupRequest: Api(checks.of_sync, sync),
    HeartbeatRequest: Api(checks.of_one_group, heartbeat),
    LeaveGroupRequest: Api(checks.of_one_group, leave),
    DescribeGroupsRequest: Api(checks.of_several_groups, describe_groups),
    ListGroupsRequest: Api(checks.of_several_groups, list_groups),
    DeleteGroupsRequest: Api(checks.of_several_groups, delete),
    ConsumerGroupHeartbeatRequest: Api(checks.of_consumer_heartbeat, consumer_group_heartbeat),
    ConsumerGroupDescribeRequest: Api(checks.of_consumer_describe, describe_consumer_groups),
    OffsetCommitRequest: Api(checks.of_offsets, commit.commit),
    OffsetFetchRequest: Api(checks.of_offsets, fetch.fetch),
    OffsetDeleteRequest: Api(checks.of_offsets, deletion.delete),
    TxnOffsetCommitRequest: Api(checks.of_offsets, transactions.commit),
    WriteTxnMarkerRequest: Api(checks.of_offsets, transactions.end),
}
