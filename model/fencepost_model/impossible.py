"""Events that cannot happen (F-RT-04, F-RT-17, M-RX-03), so no driver may send them; ``IllegalEvent`` names the
reasons.

A target that refuses such an event must be unchanged; the model does not allow a target to accept it.
"""

from __future__ import annotations

from collections.abc import Collection

from fencepost.protocol.events import Appended, AppendFailed, Event, TaskDone, TimerFired

from .classic.coordinator import ACTIVE
from .classic.coordinator_state import CoordinatorState
from .deadlines import Deadlines


def impossible(
    state: CoordinatorState, deadlines: Deadlines, ends: Collection[int] | None, event: Event
) -> tuple[str, str]:
    """Return the reason, one of ``IMPOSSIBLE``, and an explanation; both empty if the event can happen. ``ends``: the
    end offsets of the steps that are not replicated, or None if they are not known."""
    if isinstance(event, TimerFired):
        return _timer(deadlines, event)
    if isinstance(event, TaskDone):
        known = {task.group_id for task in state.consumer.tasks}
        if state.phase == ACTIVE and event.key.group_id not in known:  # one from before an unload is only late
            return "NoSuchTask", f"the task {event.key} is not running"
    if isinstance(event, AppendFailed) and state.written is None:
        return "NothingToAppend", "the previous step wrote nothing"
    if isinstance(event, Appended):
        end = state.durable + state.undurable
        if event.offset > end:
            return "OffsetBeyondLog", f"the log ends at {end}"
        if ends is not None and event.offset > state.durable and event.offset not in ends:
            return "OffsetInsideBatch", f"the records of one step are replicated together: {sorted(ends)}"
    return "", ""


def _timer(deadlines: Deadlines, event: TimerFired) -> tuple[str, str]:
    deadline = deadlines.get(event.key)
    if deadline is None:
        return "NoSuchTimer", f"the timer {event.key} is not armed"
    if deadline > event.at_ms:
        return "NoSuchTimer", f"the timer {event.key} is due at {deadline}, not at {event.at_ms}"
    return "", ""
