"""The name of a group of differences: what happened, where in it the two differ, and how.

``ConsumerGroupHeartbeat: records[ConsumerGroupMetadata].value.epoch +1->+2``. A key is one line of text that is the
same for every run, so that it can be kept in a file.
"""

from __future__ import annotations

from fencepost.protocol import events as ev

from .leaves import Leaf


def kind_of_event(event: ev.Event) -> str:
    """``JoinGroup``, ``timer heartbeat``, ``AppendFailed`` …"""
    if isinstance(event, ev.Request):
        return type(event.body).__name__.removesuffix("Request")
    if isinstance(event, ev.TimerFired):
        return f"timer {event.key.kind.value}"
    if isinstance(event, ev.TaskDone):
        return f"task {event.key.kind.value}"
    return type(event).__name__


def key_of(event: ev.Event, leaf: Leaf) -> str:
    """An answer is one to its request, whenever it comes: ``JoinGroup: reply.error_code NONE->UNKNOWN_MEMBER_ID``."""
    if leaf.path.startswith("replies["):
        api, rest = leaf.kind.removeprefix("replies[").split("]", 1)
        return f"{api}: reply{rest}"
    return f"{kind_of_event(event)}: {leaf.kind}"
