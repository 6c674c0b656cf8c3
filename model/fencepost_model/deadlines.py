"""The armed timers and their deadlines, computed from the commands of a step."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from fencepost.protocol.events import Event, SetTimer, TimerFired, TimerKey

from .classic.coordinator_state import Step

#: Armed timers, to the absolute time in ms at which they expire. Never changed in place.
Deadlines: TypeAlias = dict[TimerKey, int]


class TimerChanges(NamedTuple):
    """The armed timers after a step, and the net change. A timer that is armed again to the same time is not a
    change."""

    deadlines: Deadlines
    net: dict[TimerKey, int | None]


def after_step(deadlines: Deadlines, event: Event, step: Step) -> TimerChanges:
    """Apply a step's commands. The timer that fired is no longer armed, unless the step armed it again."""
    commands = step.outcome.timers
    fired = event.key if isinstance(event, TimerFired) else None
    if not commands and fired is None and not step.cancels_all:
        return TimerChanges(deadlines, {})
    after = {} if step.cancels_all else deadlines.copy()
    net: dict[TimerKey, int | None] = dict.fromkeys(deadlines) if step.cancels_all else {}
    if fired is not None:
        net[fired] = None
        after.pop(fired, None)
    for command in commands:
        key = command.key
        deadline = None
        if isinstance(command, SetTimer):
            deadline = after[key] = event.at_ms + command.delay_ms
        elif after.pop(key, None) is None:
            continue  # it was not armed
        if deadlines.get(key) == deadline:
            net.pop(key, None)
        else:
            net[key] = deadline
    return TimerChanges(after, net)
