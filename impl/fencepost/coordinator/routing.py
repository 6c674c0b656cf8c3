"""The kind of a request's group decides which handler serves the request.

A request is of one protocol, and its group may be of the other. Then ``mixed`` serves the classic protocol, and the
consumer protocol converts the group, if that is allowed (``conversion``).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from fencepost.protocol.consumer_messages import (
    LEAVE_EPOCH,
    STATIC_LEAVE_EPOCH,
    ConsumerGroupDescribeRequest,
    ConsumerGroupHeartbeatRequest,
)
from fencepost.protocol.errors import ErrorCode
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

from . import conversion
from .admin import delete, expire, list_groups
from .classic import describe, expiry
from .classic import heartbeat as classic_heartbeat
from .classic import join as classic_join
from .classic import leave as classic_leave
from .classic import sync as classic_sync
from .consumer import access, departure, group_heartbeat, timers
from .consumer import describe as consumer_describe
from .kernel import completion, operations
from .kernel.errors import InternalError, Refused
from .kernel.replies import refusal
from .kernel.step import Step
from .mixed import classic_heartbeat as mixed_heartbeat
from .mixed import classic_join as mixed_join
from .mixed import classic_leave as mixed_leave
from .mixed import classic_sync as mixed_sync
from .mixed import departure as mixed_departure
from .mixed import upgrade
from .offsets import commit, deletion, fetch, transactions


def join(step: Step, request: Request, body: JoinGroupRequest) -> None:
    """A JoinGroup goes to the group of that name, of any kind, or to a new one (C-JOIN-09, C-JOIN-10,
    C-JOIN-15)."""
    other = access.find(step, body.group_id)
    if other is None:
        classic_join.join(step, request, body)
    elif other.members:
        mixed_join.join(step, request, body, other)
    elif not body.member_id:
        classic_join.join(step, request, body, conversion.for_join(step, other))
    else:
        join_as_member(step, request, body)


@varies
def join_as_member(step: Step, request: Request, body: JoinGroupRequest) -> None:
    """An empty consumer group is not a group of classic members: it stays, and the member id of the request is unknown
    (C-JOIN-15)."""
    classic_join.join(step, request, body)


def sync(step: Step, request: Request, body: SyncGroupRequest) -> None:
    """A SyncGroup goes to the group of that name, of any kind (C-SYNC-06)."""
    other = access.find(step, body.group_id)
    if other is not None and other.members:
        mixed_sync.sync(step, request, body, other)
    else:
        classic_sync.sync(step, request, body)


def heartbeat(step: Step, request: Request, body: HeartbeatRequest) -> None:
    """A Heartbeat goes to the group of that name, of any kind (C-HB-06)."""
    other = access.find(step, body.group_id)
    if other is None:
        classic_heartbeat.heartbeat(step, request, body)
    else:
        mixed_heartbeat.heartbeat(step, request, body, other)


def leave(step: Step, request: Request, body: LeaveGroupRequest) -> None:
    """A LeaveGroup goes to the group of that name, of any kind (C-LEAVE-04)."""
    other = access.find(step, body.group_id)
    if other is None:
        classic_leave.leave(step, request, body)
    else:
        mixed_leave.leave(step, request, body, other)


@varies
def consumer_heartbeat(step: Step, request: Request, body: ConsumerGroupHeartbeatRequest) -> None:
    """Errors are answered at once; other answers are never ahead of the log (F-RT-26, M-HB-11)."""
    try:
        if body.member_epoch in (LEAVE_EPOCH, STATIC_LEAVE_EPOCH):
            reply = departure.leave(step, body, mixed_departure.fence)
        else:
            accepted = partial(upgrade.accepted, step, body.group_id)
            reply = group_heartbeat.stay(step, request, body, conversion.for_heartbeat(step, body), accepted)
    except Refused as refused:
        step.reply(request.id, refusal(request, refused.error, why=refused.why))
        return
    except InternalError:
        step.reply(request.id, refusal(request, ErrorCode.UNKNOWN_SERVER_ERROR))
        return
    operations.done(step, request, reply=reply)


def timer(step: Step, event: TimerFired) -> None:
    """The kind of the timer says which kind of group it belongs to."""
    key = event.key
    armed = step.timers.fires(key)
    if key.kind is TimerKind.OPERATION:
        completion.timed_out(step, key.operation)
    elif key.kind is TimerKind.EXPIRY:
        expire(step)
    elif key.kind in timers.KINDS:
        departure.fired(step, key, armed.epoch, mixed_departure.fence)
    else:
        expiry.fired(step, armed)


HANDLERS: dict[type, Callable[[Step, Request, Any], None]] = {
    JoinGroupRequest: join,
    SyncGroupRequest: sync,
    HeartbeatRequest: heartbeat,
    LeaveGroupRequest: leave,
    DescribeGroupsRequest: describe.describe,
    ListGroupsRequest: list_groups,
    DeleteGroupsRequest: delete,
    ConsumerGroupHeartbeatRequest: consumer_heartbeat,
    ConsumerGroupDescribeRequest: consumer_describe.describe,
    OffsetCommitRequest: commit.commit,
    OffsetFetchRequest: fetch.fetch,
    OffsetDeleteRequest: deletion.delete,
    TxnOffsetCommitRequest: transactions.commit,
    WriteTxnMarkerRequest: transactions.end,
}
