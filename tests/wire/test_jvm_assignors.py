"""Sticky, cooperative-sticky and the server assignors beside Kafka's own classes, over rounds of random groups."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import pytest

from fencepost.member.assignors.sticky import CooperativeStickyAssignor, StickyAssignor
from fencepost.member.consumer_protocol import Assignment
from fencepost.member.partitions import TopicPartition
from fencepost_conformance.console import CannotRun
from fencepost_conformance.generate.java_order import java_order, timeline_order
from fencepost_conformance.jvm.assignors import KafkaAssignors, client
from fencepost_conformance.jvm.assignors.rounds import NAMES, Round, server_rounds, sticky_rounds

pytestmark = pytest.mark.jvm
SEEDS = 500


@pytest.fixture(scope="module", params=["4.3.1", "4.0.2"])
def kafka(request: pytest.FixtureRequest) -> Iterator[KafkaAssignors]:
    try:
        asked = KafkaAssignors(request.param)
    except CannotRun as reason:
        pytest.skip(str(reason))
    yield asked
    asked.close()


def compare(kafka: KafkaAssignors, rounds: Callable[[int], Iterator[Round]]) -> int:
    """Returns in how many rounds both refused."""
    refused = 0
    asked = [each for seed in range(SEEDS) for each in rounds(seed)]
    for each, answer in zip(asked, kafka.ask([each.question for each in asked]), strict=True):
        theirs = each.theirs(answer)
        assert each.ours == theirs, each.question
        refused += theirs is None
    assert len(asked) > 4 * SEEDS
    return refused


@pytest.mark.parametrize("name", ["range", "uniform"])
def test_same_targets_as_kafka(kafka: KafkaAssignors, name: str) -> None:
    assert compare(kafka, lambda seed: server_rounds(name, seed)) > 0


@pytest.mark.parametrize("racks", [False, True], ids=["plain", "racks"])
@pytest.mark.parametrize("name", ["sticky", "cooperative-sticky"])
def test_same_sticky_shares_as_kafka(kafka: KafkaAssignors, name: str, racks: bool) -> None:
    compare(kafka, lambda seed: sticky_rounds(name, seed, racks=racks))


@pytest.mark.parametrize("assignor", [StickyAssignor(), CooperativeStickyAssignor()], ids=lambda each: each.name)
def test_same_user_data_as_kafka(kafka: KafkaAssignors, assignor: StickyAssignor | CooperativeStickyAssignor) -> None:
    draw = random.Random(assignor.name)
    cases: list[tuple[tuple[TopicPartition, ...] | None, int]] = [(None, -1)]
    for _ in range(500):
        held = {TopicPartition(draw.choice(NAMES), draw.randint(0, 99)) for _ in range(draw.randint(0, 40))}
        cases.append((tuple(draw.sample(sorted(held), len(held))), draw.randint(0, 2**31 - 1)))
    answers = kafka.ask([client.user_data(assignor.name, held, generation) for held, generation in cases])
    for (held, generation), answer in zip(cases, answers, strict=True):
        told = assignor if held is None else assignor.on_assignment(Assignment(held), generation)
        assert told.user_data(frozenset({"t"})) == client.data(answer), held


def test_members_come_to_an_assignor_in_this_order(kafka: KafkaAssignors) -> None:
    draw = random.Random("order")
    groups = [[f"{draw.choice(NAMES)}{draw.randint(0, 999)}" for _ in range(draw.randint(1, 60))] for _ in range(500)]
    groups = [list(dict.fromkeys(names)) for names in groups] + [["Aa", "BB"], ["BB", "Aa"]]
    for names, answer in zip(groups, kafka.ask([client.order(names) for names in groups]), strict=True):
        assert client.names(answer) == java_order(timeline_order(names))
