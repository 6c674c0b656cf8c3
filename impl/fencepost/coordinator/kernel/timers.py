"""The timers of a coordinator: those that are set, as the driver knows them, and how a step sets and cancels them.

Each timer has its own slot, which says as much as its key. Setting a timer replaces the one in its slot (C-TMR-11). A
timer stays in its slot when its group or member is removed (C-TMR-12).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple, TypeAlias

from fencepost.protocol.events import CancelTimer, SetTimer, TimerCommand, TimerKey, TimerKind
from fencepost.quirks import HasQuirks, Quirks, varies

from .persistent import changed


class InitialDelay(NamedTuple):
    """The initial delay in progress (C-JOIN-43): its length and what may be added later, both in ms."""

    length: int
    remaining: int


class Armed(NamedTuple):
    """A timer that is set, and when it is due, in ms."""

    key: TimerKey
    due: int
    initial: InitialDelay | None = None  #: of a join timer: the delay that it ends, None if it ends the join phase
    epoch: int = 0  #: of a member of a consumer group: the member's epoch when the timer was set (M-TMR-02)


#: A string is one of Kafka's timer names, which several timers may share (``quirks.kernel``).
Slot: TypeAlias = tuple[str, str, str] | int | str
TimerTable: TypeAlias = Mapping[Slot, Armed]

NO_TIMERS: Final[TimerTable] = {}


@varies
def slot_of(subject: HasQuirks, key: TimerKey) -> Slot:
    """The place of a timer in the table: its number for an operation, else the parts of its key (M-TMR-01)."""
    kind = key.kind
    if kind is TimerKind.OPERATION:
        return key.operation
    return kind._value_, key.group_id, key.member_id  # the key itself would take three times as long to hash


def in_order(timers: Iterable[Armed]) -> list[Armed]:
    """The timers in the order in which they fire if each fires on time."""
    return sorted(timers, key=_order)


def _order(armed: Armed) -> tuple[int, str, str, str, int]:
    key = armed.key
    return armed.due, key.kind.value, key.group_id, key.member_id, key.operation


class Timers:
    """The timers while a step sets and cancels them. ``commands``: the timer commands for the driver, in order."""

    __slots__ = ("_at_ms", "_before", "_changes", "commands", "quirks")

    def __init__(self, before: TimerTable, at_ms: int, quirks: Quirks | None) -> None:
        self._before = before
        self._changes: dict[Slot, Armed | None] = {}
        self._at_ms = at_ms
        self.commands: list[TimerCommand] = []
        self.quirks = quirks

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
