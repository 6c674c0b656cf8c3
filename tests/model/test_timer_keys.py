"""Timers that share one key in Kafka (M-TMR-01, C-TMR-11): the core and the model agree, each in its own way."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import pytest

from fencepost.coordinator import initial_state
from fencepost.coordinator.kernel.timers import slot_of
from fencepost.protocol.events import TimerKey, TimerKind
from fencepost.protocol.profiles import INTENDED, KAFKA_4_3
from fencepost.protocol.settings import Settings
from fencepost_model.classic.collisions import mistaken
from fencepost_model.classic.state import Timer

GROUPS = ("g", "g-0", "g-0-x", "0-x", "other")
MEMBERS = ("x", "0-x", "0", "x-0")
BEGINNINGS = {
    TimerKind.SESSION: "heartbeat",
    TimerKind.CONSUMER_SESSION: "session-timeout",
    TimerKind.CONSUMER_REBALANCE: "rebalance-timeout",
    TimerKind.CONSUMER_JOIN: "join",
    TimerKind.CONSUMER_SYNC: "sync",
}
OF_MEMBERS = {TimerKey(kind, group, member) for kind, group, member in product(BEGINNINGS, GROUPS, MEMBERS)}
OF_GROUPS = {TimerKey(kind, group) for kind, group in product((TimerKind.JOIN, TimerKind.SYNC), GROUPS)}
MODEL_KINDS = {TimerKind.JOIN: "join", TimerKind.SYNC: "sync", TimerKind.SESSION: "session"}


def text(key: TimerKey) -> str:
    """Return Kafka's key."""
    if key in OF_GROUPS:
        return f"{key.kind.value}-{key.group_id}"
    return f"{BEGINNINGS[key.kind]}-{key.group_id}-{key.member_id}"


def by_the_model(key: TimerKey) -> set[TimerKey]:
    def name(kind: TimerKind) -> str:
        return MODEL_KINDS.get(kind, kind.value)

    kinds = {name(kind): kind for kind in TimerKind}
    others = mistaken(key.group_id, Timer(name(key.kind), key.member_id))
    return {TimerKey(kinds[timer.kind], group, timer.member_id) for group, timer in others}


def by_the_core(key: TimerKey) -> set[TimerKey]:
    state = initial_state(Settings(), KAFKA_4_3)
    slot = slot_of(state, key)
    return {other for other in OF_MEMBERS | OF_GROUPS if other != key and slot_of(state, other) == slot}


@pytest.mark.parametrize("same_keys", [by_the_core, by_the_model], ids=["core", "model"])
def test_timers_with_the_same_text_are_taken_for_one_another(same_keys: Callable[[TimerKey], set[TimerKey]]) -> None:
    keys = OF_MEMBERS | OF_GROUPS
    same = {key: {other for other in keys if other != key and text(other) == text(key)} for key in keys}
    assert {key: same_keys(key) & keys for key in keys} == same
    assert any(same.values())


def test_with_the_fix_each_timer_has_its_own_slot() -> None:
    keys = OF_MEMBERS | OF_GROUPS | {TimerKey(TimerKind.OPERATION, operation=number) for number in (-1, 0, 1)}
    assert len({slot_of(initial_state(Settings(), INTENDED), key) for key in keys}) == len(keys)
