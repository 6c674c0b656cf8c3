"""Kafka's faults of one consumer group: the model of the group finds each of them by itself.

Each is found as a shortest trace to a property that it breaks: with its switch alone, and under Kafka's profile within
as many moves; mended there is none. The traces are those of ``docs/findings``: Kafka's own coordinator does the same
(``tests/unit/core/test_findings.py``).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import pytest
from shortest import NOW, TOPICS, Ask, Move, Resolve, Search, join, read_events

from fencepost.protocol.consumer_messages import (
    ConsumerGroupHeartbeatRequest,
)
from fencepost.protocol.events import Event
from fencepost.protocol.settings import INTENDED, KAFKA_4_3, Profile
from fencepost_model.consumer import Beat, Canonical, ConsumerGroupModel, Image, World
from fencepost_model.consumer.open import (
    OpenGroup,
    Point,
    everything_is_owned,
    instances_can_be_taken,
    restarts_with_its_id,
)

TOPIC = TOPICS[0]


def _matcher(regex: str) -> Callable[[str], bool] | None:
    return lambda name: re.fullmatch(regex, name) is not None


class Fault:
    """A switch, the trace in ``docs/findings/consumer``, the rule that describes it, clients that can meet it, the
    property, and how many steps break it. ``shown``: what makes it visible afterwards."""

    def __init__(
        self,
        switch: str,
        trace: str,
        joins: tuple[ConsumerGroupHeartbeatRequest, ...],
        holds: Callable[[OpenGroup, Point], bool],
        length: int,
        *shown: ConsumerGroupHeartbeatRequest,
    ) -> None:
        self.switch, self.trace, self.joins, self.holds, self.length = switch, trace, joins, holds, length
        self.shown = shown

    def system(self, profile: Profile) -> OpenGroup:
        world = World(100_000, Image((TOPIC,), 1), oracle=Canonical(_matcher))
        return OpenGroup(ConsumerGroupModel(NOW, profile), world, self.joins)


FAULTS = (
    Fault(  # LIV-13, M-TGT-06
        "fault_stale_subscription_type",
        "stale-type",
        (join("m1"), join("m2"), join("m0", ())),
        everything_is_owned,
        4,
    ),
    Fault(  # LIV-15
        "fault_resolved_regex_change_no_bump",
        "pruned-and-unowned",
        (join("m1", None, regex="t"), join("m2", None, regex="t"), join("m2", None, regex="z")),
        everything_is_owned,
        4,
    ),
    Fault(  # LIV-16, M-HB-07
        "fault_new_instance_has_no_target",
        "new-instance",
        (join("m1"), join("m1", instance="i1"), join("m2")),
        everything_is_owned,
        3,
    ),
    Fault(  # M-STATIC-15, A-UHOM-08
        "fault_replacement_merges_members",
        "kept-from-everybody",
        (join("m1"), join("m2", (), instance="i1"), join("m1", instance="i1")),
        everything_is_owned,
        4,
    ),
    Fault(  # M-STATIC-02
        "fault_static_rejoin_unreleased",
        "own-instance-refused",
        (join("m1", instance="i1"), join("m2", instance="i2")),
        restarts_with_its_id,
        1,
        join("m1", instance="i1"),
    ),
    Fault(  # M-STATIC-13
        "fault_relabelled_instance_stays",
        "instance-of-nobody",
        (join("m1", instance="i1"), join("m1", instance="i2")),
        instances_can_be_taken,
        2,
        join("new", instance="i1"),
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


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.trace)
def test_the_trace_is_in_the_findings(fault: Fault) -> None:
    assert read_events(fault.trace) == (NOW, _as_events(fault))


def _as_events(fault: Fault) -> tuple[Event, ...]:
    """The shortest trace as the whole coordinator of a release meets it."""
    steps = fault.system(replace(INTENDED, **{fault.switch: True})).shortest(fault.holds, fault.length)  # type: ignore[arg-type]
    assert steps is not None
    moves: list[Move] = [Ask(step.body) if isinstance(step, Beat) else Resolve() for step in steps]
    return Search(NOW, KAFKA_4_3, ()).again([*moves, *map(Ask, fault.shown)]).events
