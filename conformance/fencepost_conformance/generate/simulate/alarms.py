"""The timers of a member as its host knows them: those that the member has set and has not cancelled."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Self

from fencepost.member.events import CancelMemberTimer, MemberTimer, SetMemberTimer

from .beside import NEVER


@dataclass(frozen=True, slots=True)
class Alarms:
    """Running timers. ``running`` maps a timer's name to the delay in ms with which the last step set it, or to None if
    an earlier step set it.

    A pair moves deadlines that do not matter to ``NEVER``. A timer that was stopped and runs again keeps such a
    deadline, because an earlier step set it too."""

    running: dict[str, int | None] = field(default_factory=dict)

    def kept(self) -> Self:
        """Return the timers as they are before a step."""
        return type(self)(dict.fromkeys(self.running))

    def without(self, timer: MemberTimer) -> Self:
        """Return the timers without one that has expired."""
        return type(self)({name: delay for name, delay in self.running.items() if name != timer.value})

    def after(self, commands: Iterable[object]) -> Self:
        """Return the timers after the commands of a step."""
        running = dict(self.running)
        for command in commands:
            match command:
                case SetMemberTimer(timer=timer, delay_ms=delay):
                    running[timer.value] = None if delay > NEVER // 2 else delay
                case CancelMemberTimer(timer=timer):
                    del running[timer.value]
        return type(self)(running)
