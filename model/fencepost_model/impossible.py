"""Events that cannot happen (F-RT-04, F-RT-17, M-RX-03): what no driver may say, in the words of ``IllegalEvent``.

A target that refuses such an event is as it was before; one that takes it is not allowed by the model.
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
    """The reason, one of ``IMPOSSIBLE``, and why in a sentence; empty if the event can happen. ``ends``: where the
    records of each step end that are not replicated, None if that is not known."""
    if isinstance(event, TimerFired):
        return _timer(deadlines, event)
    if isinstance(event, TaskDone):
        known = {task.group_id for task in state.around.tasks}
        if state.phase == ACTIVE and event.key.group_id not in known:  # one of before an unload is only late
            return "NoSuchTask", f"the task {event.key} is not under way"
    if isinstance(event, AppendFailed) and state.written is None:
        return "NothingToAppend", "nothing was written in the step before"
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
