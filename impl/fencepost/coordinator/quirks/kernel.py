"""Deviations of Kafka in the parts common to all groups: late operations, timers, loading, and routing.

In Kafka, an operation that fails answers its request without the group. A timeout runs its callback as if the append
had failed, although the record is in the log and may still be replicated: memory is restored, the log is not.

In Kafka the key of a timer is a string: `heartbeat-GROUP-MEMBER`, `session-timeout-GROUP-MEMBER`,
`rebalance-timeout-GROUP-MEMBER`, and `join-` and `sync-` before GROUP for a classic group, before GROUP-MEMBER for a
member of a consumer group. Names of groups and members may contain a hyphen, so two timers may share one slot, and
setting or cancelling one of them also affects the other (M-TMR-01).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from fencepost.protocol.consumer_messages import ConsumerGroupHeartbeatRequest
from fencepost.protocol.embedded import PROTOCOL_TYPE
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import Request, TimerKey, TimerKind
from fencepost.protocol.messages import JoinGroupRequest
from fencepost.protocol.records import Record
from fencepost.quirks import HasQuirks, Next, quirk, varies

from .. import consumer_group_heartbeat, lifecycle, routing
from ..checks import invalid
from ..kernel import operations, timers
from ..kernel.replay_context import Replay
from ..kernel.replies import error_response
from ..kernel.state import Operation
from ..kernel.step import Step
from .classic import read_topics


@quirk("fault_timeout_undoes_memory", of=operations.give_up_waiting)
def undoes_memory(_: Next[None], step: Step, number: int, operation: Operation) -> None:
    """A write that times out counts as failed: its changes in memory are undone, while its record stays in the log,
    where every reload finds it (F-RT-09, C-SYNC-33, C-STATIC-06)."""
    operations.fail(step, number, operation, ErrorCode.REQUEST_TIMED_OUT)


_NAMES: Final = {
    TimerKind.SESSION.value: "heartbeat",
    TimerKind.CONSUMER_SESSION.value: "session-timeout",
    TimerKind.CONSUMER_REBALANCE.value: "rebalance-timeout",
    TimerKind.CONSUMER_JOIN.value: "join",
    TimerKind.CONSUMER_SYNC.value: "sync",
    TimerKind.EXPIRY.value: "expire-group-metadata",
}


@quirk("fault_timer_keys_collide", of=timers.slot_of)
def text_of(_: Next[timers.Slot], subject: HasQuirks, key: TimerKey) -> timers.Slot:
    """The slot is a string, which several timers may share: setting or cancelling one of them ends the other (M-TMR-01,
    C-TMR-11). Timers of operations have no such string in Kafka either."""
    kind = key.kind
    if kind is TimerKind.OPERATION:
        return key.operation
    if kind is TimerKind.JOIN or kind is TimerKind.SYNC:
        return f"{kind._value_}-{key.group_id}"
    return f"{_NAMES[kind._value_]}-{key.group_id}-{key.member_id}"


@quirk("fault_timer_keys_collide", of=lifecycle.to_watch)
def in_table_order(_: Next[Iterable[str]], step: Step) -> Iterable[str]:
    """The order in which timers are set; it is visible where timers of two groups may share a string (C-TMR-11)."""
    names = list(step.memory.groups)
    return step.choices.table("", names) if may_meet(names) else names


def may_meet(group_ids: Iterable[str]) -> bool:
    """Whether timers of two of these groups can share a string: the name of one is the name of the other followed by a
    hyphen and more."""
    known = frozenset(group_ids)
    return any(name[:at] in known for name in known for at, letter in enumerate(name) if letter == "-")


@quirk("fault_bad_subscription_is_thrown", of=lifecycle.take_up)
def reads_subscriptions(call_next: Next[None], step: Step, replayed: Replay, record: Record) -> None:
    """Kafka reads the topics that the members of a classic group subscribe to. Impossible lengths in one subscription
    raise an exception that is not caught, and the whole partition is not loaded (G-DATA-10, V-124)."""
    call_next(step, replayed, record)
    value = record.group_metadata
    if value is not None and value.protocol_type == PROTOCOL_TYPE and value.protocol is not None:
        logged = {member.member_id: member.subscription for member in value.members}
        read_topics(step.choices, record.key.group, logged, lengths_throw=True)


@quirk("old_checks_after_load", of=consumer_group_heartbeat.consumer_group_heartbeat)
def checks_when_loaded(
    call_next: Next[None], step: Step, request: Request, body: ConsumerGroupHeartbeatRequest
) -> None:
    """4.0 checks the fields of a heartbeat after it knows that it owns the partition and has loaded it (V-29)."""
    error = invalid(request.version, body, step.settings)
    if error is not None:
        step.reply(request.id, error_response(request, error))
    else:
        call_next(step, request, body)


@quirk("fault_empty_group_dropped_from_memory", of=routing.join_as_member)
def drops_the_group(call_next: Next[None], step: Step, request: Request, body: JoinGroupRequest) -> None:
    """Kafka removes the empty consumer group from memory and then refuses the member. The log keeps the group, and a
    reload restores it (C-JOIN-15)."""
    drop_from_memory(step, body.group_id)
    call_next(step, request, body)


@varies
def drop_from_memory(step: Step, group_id: str) -> None:
    """Remove the group without a record (C-JOIN-15)."""
    step.memory.forget(group_id)
