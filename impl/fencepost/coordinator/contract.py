"""What no driver may do (``fencepost.protocol.events``): each event is looked at before anything is done with it.

Every check raises ``IllegalEvent``, which says what is wrong and what would be right.
"""

from __future__ import annotations

from fencepost.protocol.errors import IllegalEvent
from fencepost.protocol.events import Event, TimerFired, TimerKey

from .state import CoordinatorState


def check(state: CoordinatorState, event: Event) -> None:
    """Raises ``IllegalEvent`` if no driver may deliver this event now."""
    if isinstance(event, TimerFired):
        _timer(state, event)


def _timer(state: CoordinatorState, event: TimerFired) -> None:
    """F-RT-17."""
    armed = state.armed(event.key)
    if armed is None:
        raise IllegalEvent(
            f"{_name(event.key)} is not set: it was never set, was cancelled, or has fired; "
            "drop a timer when an outcome cancels it, and when its partition is unloaded"
        )
    if event.at_ms < armed.due:
        raise IllegalEvent(
            f"{_name(event.key)} is due at {armed.due} ms, not at {event.at_ms} ms; deliver it then or later"
        )


def _name(key: TimerKey) -> str:
    what = f"operation {key.operation}" if not key.group_id and not key.member_id else f"group {key.group_id!r}"
    member = f", member {key.member_id!r}" if key.member_id else ""
    return f"the {key.kind.value} timer of {what}{member}"
