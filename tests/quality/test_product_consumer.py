"""E2 for consumer groups and groups of both protocols: every transition of bounded configurations, on the core and the
model."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fencepost.protocol.events import Topic
from fencepost.protocol.profiles import KAFKA_4_3
from fencepost.protocol.settings import Settings
from fencepost_conformance.generate.simulate.product import Bounds, Client, explore
from fencepost_conformance.generate.simulate.product.consumer_moves import consumer_moves
from fencepost_conformance.generate.simulate.product.mixed_moves import mixed_moves
from fencepost_conformance.run.mutants.catalogue import MUTANTS
from fencepost_conformance.run.mutants.mutant import planted

T1, T2 = (Topic("t", b"T" * 16, partitions) for partitions in (1, 2))
TT, U = Topic("tt", b"V" * 16, 1), Topic("u", b"U" * 16, 1)
SETTINGS = Settings(
    group_min_session_timeout_ms=1, group_initial_rebalance_delay_ms=10, group_consumer_assignment_interval_ms=0
)
#: Two members and two partitions, any number of joins and leaves, one write at a time.
TWO = Bounds(
    ids=0,
    generation=None,
    depth=99,
    transitions=20_000,
    prompt=True,
    settings=SETTINGS,
    clients=(Client("k1"), Client("k2")),
    images=((T2,),),
)
STATIC = replace(TWO, clients=(Client("k1", "i"), Client("k2", "i"), Client("k3")))
REGEX = replace(
    TWO,
    clients=(Client("k1", None, (("t",), "t.*")), Client("k2", None, ("t.*",))),
    images=((T1,), (T1, TT)),
)
TOPICS = replace(TWO, clients=(Client("k1", None, (("t",), ("t", "u"))), Client("k2")), images=((T1,), (T1, U), (U,)))
SLOW = replace(TWO, prompt=False, images=((T1,),))
INTERVAL = replace(TWO, settings=replace(SETTINGS, group_consumer_assignment_interval_ms=1_000))
KAFKA = replace(STATIC, profile=KAFKA_4_3)
#: One member of each protocol, which may change its protocol and keep its id.
MIXED = replace(TWO, ids=1, static=False, clients=(Client("k1"),))
#: A program that joins with either protocol under its instance id, and a dynamic one.
MIXED_STATIC = replace(TWO, ids=2, clients=(Client("k1", "i"),))


def test_two_members_and_two_partitions_completely():
    explored = explore(TWO, (consumer_moves,))
    assert explored.problem is None, (explored.trail, explored.problem)
    assert explored.complete
    assert explored.states > 3_500
    assert explored.transitions > 15_000
    assert {"owns what it should not", "timer consumer-rebalance", "is behind and owns"} <= set(explored.inputs)


AGREEING = {
    "static": (STATIC, {"leaves for a while", "UNRELEASED_INSTANCE_ID", "FENCED_INSTANCE_ID"}),
    "regex": (REGEX, {"task is done", "task fails", "topics change", "changes to t.*"}),
    "topics": (TOPICS, {"topics change", "changes to t+u"}),
    "slow log": (SLOW, {"replicated"}),
    "put off": (INTERVAL, {"heartbeats later"}),
    "kafka": (KAFKA, {"leaves for a while", "UNRELEASED_INSTANCE_ID"}),
}


#: Where less shows all that must be reached, ``make test`` has less.
WHOLE, SAMPLE = 7_000, 4_000


@pytest.mark.parametrize(
    ("name", "transitions"),
    [
        *((name, WHOLE if name == "slow log" else SAMPLE) for name in AGREEING),
        *(pytest.param(name, WHOLE, marks=pytest.mark.all) for name in AGREEING if name != "slow log"),
    ],
)
def test_core_and_model_agree(name, transitions):
    bounds, reached = AGREEING[name]
    explored = explore(replace(bounds, transitions=transitions), (consumer_moves,))
    assert explored.problem is None, (explored.trail, explored.problem)
    assert explored.transitions == transitions
    always = {"append fails", "moves", "loads what a cleaner left", "timer consumer-session", "FENCED_MEMBER_EPOCH"}
    assert reached | always <= set(explored.inputs) | set(explored.answers)


@pytest.mark.parametrize("transitions", [5_000, pytest.param(9_000, marks=pytest.mark.all)])
@pytest.mark.parametrize(
    ("bounds", "reached"),
    [
        (MIXED, {"rejoins with what it has", "rejoins with what it may keep", "timer consumer-join", "timer join"}),
        (MIXED_STATIC, {"static joins", "leaves for a while", "FENCED_INSTANCE_ID"}),
    ],
    ids=["dynamic", "static"],
)
def test_core_and_model_agree_on_groups_of_both_protocols(bounds, reached, transitions):
    explored = explore(replace(bounds, transitions=transitions), (consumer_moves, mixed_moves))
    assert explored.problem is None, (explored.trail, explored.problem)
    assert explored.transitions == transitions
    always = {"append fails", "moves", "REBALANCE_IN_PROGRESS", "ILLEGAL_GENERATION"}
    required = {
        "uses its id and generation",
        "rejoins at its epoch",
        "rejoins at its previous epoch",
        "rejoins and claims all",
    }
    assert reached | always | required <= set(explored.inputs) | set(explored.answers)


@pytest.mark.parametrize(
    ("mutant", "steps"),
    [
        ("taken-from-its-holder", 3),
        ("epoch-before-revocation", 5),
        ("revocation-not-awaited", 5),
        ("old-epoch-accepted", 7),
    ],
)
def test_a_fault_is_found_by_a_shortest_run(mutant, steps):
    with planted(MUTANTS[mutant]):
        explored = explore(TWO, (consumer_moves,))
    assert explored.problem is not None
    assert len(explored.trail) <= steps, explored.trail
