"""The name of a group of differences: the event, the differing field, and the kind of difference.

``ConsumerGroupHeartbeat: records[ConsumerGroupMetadata].value.epoch +1->+2``. A key is one line of text that is the
same in every run, so that a file can keep it.
"""

from __future__ import annotations

from fencepost.protocol import events as ev

from .leaves import Leaf


def kind_of_event(event: ev.Event) -> str:
    """Return ``JoinGroup``, ``timer heartbeat``, ``AppendFailed`` …"""
    if isinstance(event, ev.Request):
        return type(event.body).__name__.removesuffix("Request")
    if isinstance(event, ev.TimerFired):
        return f"timer {event.key.kind.value}"
    if isinstance(event, ev.TaskDone):
        return f"task {event.key.kind.value}"
    return type(event).__name__


def key_of(event: ev.Event, leaf: Leaf) -> str:
    """Return the key. An answer belongs to its request, whenever it comes: ``JoinGroup: reply.error_code NONE->…``."""
    if leaf.path.startswith("replies["):
        api, rest = leaf.kind.removeprefix("replies[").split("]", 1)
        return f"{api}: reply{rest}"
    return f"{kind_of_event(event)}: {leaf.kind}"
