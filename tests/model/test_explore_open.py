"""Kafka's faults that the closed system leaves out: found as shortest traces, and absent once fixed."""

from __future__ import annotations

import pytest

from fencepost.protocol.profiles import INTENDED, KAFKA_4_4
from fencepost_model.explore.interface import PlainSystem
from fencepost_model.explore.search import explore
from fencepost_model.system.open import PROPERTIES, OpenSystem

#: The property, the number of requests, the kinds of requests, and the shortest way to break the property.
FAULTS = [
    ("NoAnsweredMemberIsParked", 2, ("StaticJoin",), ["StaticJoin 0", "OperationTimesOut 1"]),  # C-JOIN-16 (ii)
    ("NoTimerOutlivesItsGroup", 2, ("Join",), ["Join 0", "AppendFails"]),  # C-TMR-12
    (  # C-JOIN-72
        "EveryPreparingGroupHasAJoinTimer",
        2,
        ("Join", "JoinWithDoubledName"),
        ["Join 0", "JoinWithDoubledName 1", "TimerFires join"],
    ),
    (  # C-SYNC-33
        "NoTimeOutUndoesAChange",
        2,
        ("StaticJoin", "LeaderSyncs"),
        ["StaticJoin 0", "TimerFires join", "LeaderSyncs 0", "OperationTimesOut 2"],
    ),
    (  # C-STATIC-18
        "SupportIsCountedCorrectly",
        4,
        ("StaticJoin", "StaticJoinWithOther", "LeaderSyncs"),
        [
            *("StaticJoin 0", "TimerFires join", "LeaderSyncs 0", "AppendSucceeds", "AppendSucceeds"),
            *("StaticJoinWithOther 0", "StaticJoin 0", "OperationTimesOut 3"),
        ],
    ),
]


def test_every_property_has_its_fault() -> None:
    assert {each.name for each in PROPERTIES} == {name for name, *_ in FAULTS}


@pytest.mark.parametrize(("name", "limit", "kinds", "expected"), FAULTS, ids=lambda each: str(each)[:30])
def test_kafka_has_the_fault(name: str, limit: int, kinds: tuple[str, ...], expected: list[str]) -> None:
    found = explore(PlainSystem(OpenSystem(KAFKA_4_4, limit, kinds, (name,))))
    (violation,) = found.violations
    assert violation.property == name
    assert [" ".join(step.label or ()).strip() for step in violation.trace[1:]] == expected


@pytest.mark.parametrize(
    "kinds", [("Join", "StaticJoin", "JoinWithDoubledName"), ("StaticJoin", "StaticJoinWithOther")]
)
def test_the_intended_protocol_has_none_of_them(kinds: tuple[str, ...]) -> None:
    found = explore(PlainSystem(OpenSystem(INTENDED, 3, (*kinds, "LeaderSyncs"))))
    assert (found.complete, found.violations) == (True, [])
