"""Timers that share one key in Kafka.

In Kafka the key of a timer is a string: `heartbeat-GROUP-MEMBER`, `session-timeout-GROUP-MEMBER`,
`rebalance-timeout-GROUP-MEMBER`, and `join-` and `sync-` before GROUP for a classic group, before GROUP-MEMBER for a
member of a consumer group. Names of groups and members may contain a hyphen, so two timers may share one slot, and
setting or cancelling one of them also affects the other (M-TMR-01).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from fencepost.protocol.events import TimerKey, TimerKind
from fencepost.quirks import HasQuirks, Next, quirk

from .. import lifecycle
from ..kernel import timers
from ..kernel.step import Step

_NAMES: Final = {
    TimerKind.SESSION.value: "heartbeat",
    TimerKind.CONSUMER_SESSION.value: "session-timeout",
    TimerKind.CONSUMER_REBALANCE.value: "rebalance-timeout",
    TimerKind.CONSUMER_JOIN.value: "join",
    TimerKind.CONSUMER_SYNC.value: "sync",
    TimerKind.EXPIRY.value: "expire-group-metadata",
}


@quirk("fault_timer_keys_collide", of=timers.slot_of)
def text_of(_: Next[timers.Slot], subject: HasQuirks, key: TimerKey) -> timers.Slot:
    """The slot is a string, which several timers may share: setting or cancelling one of them ends the other (M-TMR-01,
    C-TMR-11). Timers of operations have no such string in Kafka either."""
    kind = key.kind
    if kind is TimerKind.OPERATION:
        return key.operation
    if kind is TimerKind.JOIN or kind is TimerKind.SYNC:
        return f"{kind._value_}-{key.group_id}"
    return f"{_NAMES[kind._value_]}-{key.group_id}-{key.member_id}"


@quirk("fault_timer_keys_collide", of=lifecycle.to_watch)
def in_table_order(_: Next[Iterable[str]], step: Step) -> Iterable[str]:
    """The order in which timers are set; it is visible where timers of two groups may share a string (C-TMR-11)."""
    names = list(step.memory.groups)
    return step.choices.table("", names) if may_meet(names) else names


def may_meet(group_ids: Iterable[str]) -> bool:
    """Whether timers of two of these groups can share a string: the name of one is the name of the other followed by a
    hyphen and more."""
    known = frozenset(group_ids)
    return any(name[:at] in known for name in known for at, letter in enumerate(name) if letter == "-")
