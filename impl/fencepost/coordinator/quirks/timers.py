"""Timers that have one key in Kafka.

There the key of a timer is a text: `heartbeat-GROUP-MEMBER`, `session-timeout-GROUP-MEMBER`,
`rebalance-timeout-GROUP-MEMBER`, and `join-` and `sync-` before GROUP for a classic group, before GROUP-MEMBER for a
member of a consumer group. Groups and members may have the hyphen in their names, so two timers may have one slot, and
setting or cancelling the one does so to the other (M-TMR-01).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from fencepost.protocol.events import TimerKey, TimerKind
from fencepost.quirks import HasQuirks, quirk

from .. import lifecycle
from ..kernel import timer_table
from ..kernel.step import Step

_NAMES: Final = {
    TimerKind.SESSION.value: "heartbeat",
    TimerKind.CONSUMER_SESSION.value: "session-timeout",
    TimerKind.CONSUMER_REBALANCE.value: "rebalance-timeout",
    TimerKind.CONSUMER_JOIN.value: "join",
    TimerKind.CONSUMER_SYNC.value: "sync",
    TimerKind.EXPIRY.value: "expire-group-metadata",
}


@quirk("fault_timer_keys_collide", of=timer_table.slot_of)
def text_of(work: HasQuirks, key: TimerKey) -> timer_table.Slot:
    """The slot is a text, which several timers may have: who sets or cancels its own ends another's (M-TMR-01,
    C-TMR-11). Those of operations have none in Kafka either."""
    kind = key.kind
    if kind is TimerKind.OPERATION:
        return key.operation
    if kind is TimerKind.JOIN or kind is TimerKind.SYNC:
        return f"{kind._value_}-{key.group_id}"
    return f"{_NAMES[kind._value_]}-{key.group_id}-{key.member_id}"


@quirk("fault_timer_keys_collide", of=lifecycle.to_watch)
def in_table_order(step: Step) -> Iterable[str]:
    """Where timers of two groups may have one text, the order in which they are set shows (C-TMR-11)."""
    names = list(step.memory.groups)
    return step.choices.table("", names) if may_meet(names) else names


def may_meet(group_ids: Iterable[str]) -> bool:
    """Whether timers of two of these groups can have one text: the name of one begins with that of the other, and goes
    on with a hyphen."""
    known = frozenset(group_ids)
    return any(name[:at] in known for name in known for at, letter in enumerate(name) if letter == "-")
