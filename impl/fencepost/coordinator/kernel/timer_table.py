"""The timers that are set: what the driver was told, and what a timer will need to know when it fires.

Each has a slot of its own, which says as much as its key; setting a timer replaces what is in the slot (C-TMR-11), and
what a group or member that goes has left there stays (C-TMR-12). In Kafka the slot is a text: `heartbeat-GROUP-MEMBER`,
`session-timeout-GROUP-MEMBER`, `rebalance-timeout-GROUP-MEMBER`, and `join-` and `sync-` before GROUP for a classic
group, before GROUP-MEMBER for a member of a consumer group. Groups and members may have the hyphen in their names, so
two timers may have one slot, and setting or cancelling the one does so to the other (M-TMR-01).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple, TypeAlias

from fencepost.protocol.events import TimerKey, TimerKind
from fencepost.protocol.profile import Profile


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


#: A text is Kafka's, which several timers may have.
Slot: TypeAlias = tuple[str, str, str] | int | str
TimerTable: TypeAlias = Mapping[Slot, Armed]

NO_TIMERS: Final[TimerTable] = {}
_NAMES: Final = {
    TimerKind.SESSION.value: "heartbeat",
    TimerKind.CONSUMER_SESSION.value: "session-timeout",
    TimerKind.CONSUMER_REBALANCE.value: "rebalance-timeout",
    TimerKind.CONSUMER_JOIN.value: "join",
    TimerKind.CONSUMER_SYNC.value: "sync",
}


def slot_of(key: TimerKey, profile: Profile) -> Slot:
    """Where in the table a timer is; those of operations have no text in Kafka either."""
    kind = key.kind
    if kind is TimerKind.OPERATION:
        return key.operation
    if not profile.fault_timer_keys_collide:
        return kind._value_, key.group_id, key.member_id  # the key itself would take three times as long to hash
    if kind is TimerKind.JOIN or kind is TimerKind.SYNC:
        return f"{kind._value_}-{key.group_id}"
    return f"{_NAMES[kind._value_]}-{key.group_id}-{key.member_id}"


def may_meet(group_ids: Iterable[str]) -> bool:
    """Whether timers of two of these groups can have one text: the name of one begins with that of the other, and goes
    on with a hyphen."""
    known = frozenset(group_ids)
    return any(name[:at] in known for name in known for at, letter in enumerate(name) if letter == "-")


def in_order(timers: Iterable[Armed]) -> list[Armed]:
    """As they fire, each on time."""
    return sorted(timers, key=_order)


def _order(armed: Armed) -> tuple[int, str, str, str, int]:
    key = armed.key
    return armed.due, key.kind.value, key.group_id, key.member_id, key.operation
