"""Kafka's faults of consumer groups, each found as a shortest trace to a property that it breaks."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import pytest

from fencepost.protocol.consumer_messages import ConsumerGroupHeartbeatRequest
from fencepost.protocol.events import Appended, Load, LoadStarted, Request, Topic, TopicsChanged
from fencepost.protocol.messages import JoinGroupRequest, Protocol
from fencepost.protocol.settings import INTENDED, KAFKA_4_3, Profile, Settings
from fencepost_model.classic.coordinator import CoordinatorModel, CoordinatorState
from fencepost_model.consumer import Canonical, ConsumerGroupModel, Image, World
from fencepost_model.consumer.open import (
    OpenGroup,
    Point,
    everything_is_owned,
    instances_can_be_taken,
    restarts_with_its_id,
)

TOPIC = Topic("t", b"1" * 16, 2)


def _matcher(regex: str) -> Callable[[str], bool] | None:
    return lambda name: re.fullmatch(regex, name) is not None


def _join(
    member_id: str, names: tuple[str, ...] | None = ("t",), *, instance: str | None = None, regex: str | None = None
) -> ConsumerGroupHeartbeatRequest:
    return ConsumerGroupHeartbeatRequest("g", member_id, 0, instance, None, 5_000, names, regex, None, ())


class Fault:
    """A switch, the rule that describes it, clients that can meet it, and the property."""

    def __init__(
        self,
        switch: str,
        joins: tuple[ConsumerGroupHeartbeatRequest, ...],
        holds: Callable[[OpenGroup, Point], bool],
        length: int,
    ) -> None:
        self.switch, self.joins, self.holds, self.length = switch, joins, holds, length

    def system(self, profile: Profile) -> OpenGroup:
        settings = Settings(group_consumer_assignment_interval_ms=0)
        world = World(100_000, Image((TOPIC,), 1), oracle=Canonical(_matcher))
        return OpenGroup(ConsumerGroupModel(settings, profile), world, self.joins)


FAULTS = (
    Fault(  # LIV-13, M-TGT-06
        "fault_stale_subscription_type",
        (_join("m1"), _join("m2"), _join("m0", ())),
        everything_is_owned,
        4,
    ),
    Fault(  # LIV-15
        "fault_resolved_regex_change_no_bump",
        (_join("m1", None, regex="t"), _join("m2", None, regex="t"), _join("m2", None, regex="z")),
        everything_is_owned,
        4,
    ),
    Fault(  # LIV-16, M-HB-07
        "fault_new_instance_has_no_target",
        (_join("m1"), _join("m1", instance="i1"), _join("m2")),
        everything_is_owned,
        3,
    ),
    Fault(  # M-STATIC-02
        "fault_static_rejoin_unreleased",
        (_join("m1", instance="i1"), _join("m2", instance="i2")),
        restarts_with_its_id,
        1,
    ),
    Fault(  # M-STATIC-13
        "fault_relabelled_instance_stays",
        (_join("m1", instance="i1"), _join("m1", instance="i2")),
        instances_can_be_taken,
        2,
    ),
)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.switch)
def test_fault_is_found(fault: Fault) -> None:
    """With the switch alone, and under Kafka's profile, there is a trace; its length is the shortest. Without, none."""
    alone = fault.system(replace(INTENDED, **{fault.switch: True}))  # type: ignore[arg-type]
    trace = alone.shortest(fault.holds, fault.length)
    assert trace is not None
    assert len(trace) == fault.length
    kafka = fault.system(KAFKA_4_3).shortest(fault.holds, fault.length)
    assert kafka is not None
    assert fault.system(INTENDED).shortest(fault.holds, fault.length + 1) is None


# ---- C-JOIN-15: a JoinGroup drops an empty group from memory only ---------------------------------------------------

_EMPTY_GROUP = (
    TopicsChanged(0, (TOPIC,), 1),
    LoadStarted(0, 1),
    Load(0, 1, ()),
    Request(0, 1, 1, "c", "/h", _join("m1")),
    Request(0, 2, 1, "c", "/h", ConsumerGroupHeartbeatRequest("g", "m1", -1)),
)
_STEPS = (
    JoinGroupRequest("g", 10_000, 10_000, "nobody", None, "consumer", (Protocol("range", b""),)),
    _join("m2"),
    ConsumerGroupHeartbeatRequest("g", "m2", -1),
)


def _run(model: CoordinatorModel, state: CoordinatorState, requests: tuple[Request, ...]) -> CoordinatorState:
    for request in requests:
        state = model.successors(state, request)[0].state
        state = model.successors(state, Appended(0, state.durable + state.undurable))[0].state
    return state


def _shortest_fall(profile: Profile, depth: int) -> int | None:
    """The number of requests after which the epoch of a group is below one that its log holds (INV-KIP-04)."""
    model = CoordinatorModel(Settings(), profile)
    state = model.initial()
    for event in _EMPTY_GROUP[:3]:
        state = model.successors(state, event)[0].state
    state = _run(model, state, tuple(each for each in _EMPTY_GROUP if isinstance(each, Request)))
    level = [state]
    for length in range(1, depth + 1):
        following = []
        for before in level:
            for at, body in enumerate(_STEPS):
                after = _run(model, before, (Request(0, 10 * length + at, 1, "c", "/h", body),))
                old, new = before.consumer_group("g"), after.consumer_group("g")
                last = max([0 if old is None else old.epoch, *[group.epoch for _, group in before.dropped]])
                if new is not None and new.epoch < last:
                    return length
                following.append(after)
        level = following
    return None


def test_dropped_group_starts_anew() -> None:
    """C-JOIN-15, INV-KIP-04: found in two requests; with the fault mended not at all."""
    assert _shortest_fall(KAFKA_4_3, 3) == 2
    assert _shortest_fall(replace(INTENDED, fault_empty_group_dropped_from_memory=True), 3) == 2
    assert _shortest_fall(INTENDED, 3) is None
