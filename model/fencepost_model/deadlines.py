"""Which timers are armed, and until when: what the commands of a step come to."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from fencepost.protocol.events import Event, SetTimer, TimerFired, TimerKey

from .classic.coordinator import Step

#: Armed timers, to the absolute time in ms at which they run out. Never changed in place.
Deadlines: TypeAlias = dict[TimerKey, int]


class TimerChanges(NamedTuple):
    """The armed timers after a step, and the net change that led there (a timer armed to the same time is none)."""

    deadlines: Deadlines
    net: dict[TimerKey, int | None]


def after_step(deadlines: Deadlines, event: Event, step: Step) -> TimerChanges:
    """Applies a step's commands. The timer that fired is no longer armed, unless the step armed it again."""
    cancelled = list(deadlines) if step.cancels_all else []
    fired = event.key if isinstance(event, TimerFired) else None
    if not step.outcome.timers and not cancelled and fired is None:
        return TimerChanges(deadlines, {})
    after = dict(deadlines)
    net: dict[TimerKey, int | None] = dict.fromkeys(cancelled)
    if fired is not None:
        net[fired] = None
    for key in net:
        after.pop(key, None)
    for command in step.outcome.timers:
        key = command.key
        deadline = event.at_ms + command.delay_ms if isinstance(command, SetTimer) else None
        if deadline is None:
            after.pop(key, None)
        else:
            after[key] = deadline
        if deadlines.get(key) == deadline:
            net.pop(key, None)
        else:
            net[key] = deadline
    return TimerChanges(after, net)
