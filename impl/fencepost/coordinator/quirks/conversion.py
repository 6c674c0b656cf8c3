"""Deviations of Kafka in routing requests to groups and in deciding the kind of a group."""

from __future__ import annotations

from fencepost.protocol.consumer_messages import ConsumerGroupHeartbeatRequest
from fencepost.protocol.events import Request
from fencepost.protocol.messages import JoinGroupRequest
from fencepost.quirks import Next, quirk, varies

from .. import consumer_group_heartbeat, routing
from ..checks import invalid
from ..kernel.replies import error_response
from ..kernel.step import Step


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
