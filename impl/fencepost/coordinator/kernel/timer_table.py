"""The timers that are set: what the driver was told, and what a timer will need to know when it fires.

Each has a slot of its own, which says as much as its key; setting a timer replaces what is in the slot (C-TMR-11), and
what a group or member that goes has left there stays (C-TMR-12).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple, TypeAlias

from fencepost.protocol.events import TimerKey, TimerKind
from fencepost.quirks import HasQuirks, varies


class InitialDelay(NamedTuple):
    """The initial delay that runs (C-JOIN-43): its length and what may be added later, both in ms."""

    length: int
    remaining: int


class Armed(NamedTuple):
    """A timer that is set, and when it is due, in ms."""

    key: TimerKey
    due: int
    initial: InitialDelay | None = None  #: of a join timer: the delay that it ends, None if it ends the join phase
    epoch: int = 0  #: of a member of a consumer group: the epoch that it had when the timer was set (M-TMR-02)


#: A text is Kafka's, which several timers may have (``quirks.timers``).
Slot: TypeAlias = tuple[str, str, str] | int | str
TimerTable: TypeAlias = Mapping[Slot, Armed]

NO_TIMERS: Final[TimerTable] = {}


@varies
def slot_of(work: HasQuirks, key: TimerKey) -> Slot:
    """Where in the table a timer is: one of an operation by its number, any other by what its key says (M-TMR-01)."""
    kind = key.kind
    if kind is TimerKind.OPERATION:
        return key.operation
    return kind._value_, key.group_id, key.member_id  # the key itself would take three times as long to hash


def in_order(timers: Iterable[Armed]) -> list[Armed]:
    """As they fire, each on time."""
    return sorted(timers, key=_order)


def _order(armed: Armed) -> tuple[int, str, str, str, int]:
    key = armed.key
    return armed.due, key.kind.value, key.group_id, key.member_id, key.operation
