"""Deviations of Kafka in routing requests to groups and in deciding the kind of a group."""

from __future__ import annotations

from fencepost.protocol.consumer_messages import ConsumerGroupHeartbeatRequest
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import Request
from fencepost.protocol.messages import JoinGroupRequest
from fencepost.quirks import Next, quirk, varies

from .. import consumer_group_heartbeat, reversion, routing
from ..consumer import validation
from ..consumer.group import ConsumerGroup
from ..kernel.replies import error_response
from ..kernel.state import CoordinatorState, Group
from ..kernel.step import Step
from ..mixed import upgrade


@quirk("old_checks_after_load", of=validation.wrong_at_once)
def nothing_at_once(
    _: Next[ErrorCode | None], state: CoordinatorState, request: Request, body: ConsumerGroupHeartbeatRequest
) -> ErrorCode | None:
    """4.0 first checks whether it owns the partition and has loaded it (V-29)."""
    return None


@quirk("old_checks_after_load", of=consumer_group_heartbeat.consumer_group_heartbeat)
def checks_when_loaded(
    call_next: Next[None], step: Step, request: Request, body: ConsumerGroupHeartbeatRequest
) -> None:
    """4.0 checks the fields of a heartbeat after it knows that it owns the partition and has loaded it (V-29)."""
    error = validation.invalid(request.version, body, step.settings)
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


@quirk("fault_empty_group_counts_anew", of=upgrade.left_off)
def counts_anew(_: Next[int], step: Step, group: Group) -> int:
    """An empty group that changes its kind counts from the start. A late copy of a join may then give a member an epoch
    that it had before its session ended, so that no fencing happens (C-JOIN-16, M-VAL-22, INV-CONV-01)."""
    return 0


@quirk("fault_downgrade_leaves_timers", of=reversion.undo_downgrade)
def timers_were_left(_: Next[None], step: Step, before: ConsumerGroup) -> None:
    """A downgrade leaves the timers of the consumer group set, so there are none to restore (X-DOWN-33)."""


@quirk("fault_failed_append_loses_timers", of=reversion.undo_change)
def timers_stay_lost(_: Next[None], step: Step, before: ConsumerGroup, now: ConsumerGroup | None) -> None:
    """A member that a failed append restores has lost the timers that the step had cancelled, and is never fenced
    (M-HB-13, M-LEAVE-03, M-TMR-02)."""
