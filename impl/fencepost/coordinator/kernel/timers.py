"""The timers while a step sets and cancels them."""

from __future__ import annotations

from fencepost.protocol.events import CancelTimer, SetTimer, TimerCommand, TimerKey
from fencepost.quirks import Quirks

from .persistent import changed
from .state import CoordinatorState
from .timer_table import NO_TIMERS, Armed, InitialDelay, Slot, TimerTable, slot_of


class Timers:
    """``commands``: the timer commands for the driver, in order."""

    __slots__ = ("_at_ms", "_before", "_changes", "commands", "quirks")

    def __init__(self, state: CoordinatorState, at_ms: int) -> None:
        self._before = state.timers
        self._changes: dict[Slot, Armed | None] = {}
        self._at_ms = at_ms
        self.commands: list[TimerCommand] = []
        self.quirks: Quirks | None = state.rules.quirks

    def armed(self, key: TimerKey) -> Armed | None:
        """The timer of this key, None if it is not set."""
        found = self._in_slot(slot_of(self, key))
        return found if found is not None and found.key == key else None

    def set(self, key: TimerKey, delay_ms: int, *, initial: InitialDelay | None = None, epoch: int = 0) -> None:
        """Set the timer of this key, or set it again (C-TMR-11). ``initial`` and ``epoch`` as in ``Armed``."""
        slot = slot_of(self, key)
        if type(slot) is str:
            other = self._in_slot(slot)
            if other is not None and other.key != key:
                self.commands.append(CancelTimer(other.key))
        self._changes[slot] = Armed(key, self._at_ms + delay_ms, initial, epoch)
        self.commands.append(SetTimer(key, delay_ms))

    def cancel(self, key: TimerKey) -> None:
        """Cancel the timer in the slot of this key, if there is one."""
        slot = slot_of(self, key)
        found = self._in_slot(slot)
        if found is not None:
            self._changes[slot] = None
            self.commands.append(CancelTimer(found.key))

    def fires(self, key: TimerKey) -> Armed:
        """The timer of this key, which has fired and is no longer set."""
        slot = slot_of(self, key)
        self._changes[slot] = None
        return self._before[slot]

    def forget(self) -> None:
        """Drop all timers. The caller decides whether the driver has to cancel them."""
        self._before = NO_TIMERS
        self._changes.clear()

    def table(self) -> TimerTable:
        """The timers that are set after the step."""
        return changed(self._before, self._changes) if self._changes else self._before

    def _in_slot(self, slot: Slot) -> Armed | None:
        if slot in self._changes:
            return self._changes[slot]
        found: Armed | None = self._before.get(slot)
        return found
