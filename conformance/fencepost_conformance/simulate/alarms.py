"""The timers of a member as its host knows them: those that it was told to set and not told to cancel."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Self

from fencepost.member.events import CancelMemberTimer, MemberTimer, SetMemberTimer

from .beside import NEVER


@dataclass(frozen=True, slots=True)
class Alarms:
    """``running``: by the timer's name the delay, in ms, with which the last step set it; None if an earlier one did.

    A pair moves deadlines that are not its business to ``NEVER``. A timer that stood still and runs again keeps such a
    deadline: it was set by an earlier step too."""

    running: dict[str, int | None] = field(default_factory=dict)

    def kept(self) -> Self:
        """Before a step."""
        return type(self)(dict.fromkeys(self.running))

    def without(self, timer: MemberTimer) -> Self:
        """That timer has run out."""
        return type(self)({name: delay for name, delay in self.running.items() if name != timer.value})

    def after(self, commands: Iterable[object]) -> Self:
        """What a step says of timers."""
        running = dict(self.running)
        for command in commands:
            match command:
                case SetMemberTimer(timer=timer, delay_ms=delay):
                    running[timer.value] = None if delay > NEVER // 2 else delay
                case CancelMemberTimer(timer=timer):
                    del running[timer.value]
        return type(self)(running)
