"""The timers that are set, as the driver knows them, and what each timer needs to know when it fires.

Each timer has its own slot, which says as much as its key. Setting a timer replaces the one in its slot (C-TMR-11). A
timer stays in its slot when its group or member is removed (C-TMR-12).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple, TypeAlias

from fencepost.protocol.events import TimerKey, TimerKind
from fencepost.quirks import HasQuirks, varies


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


#: A string is one of Kafka's timer names, which several timers may share (``quirks.timers``).
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
