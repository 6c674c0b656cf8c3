"""Sticky, cooperative-sticky and the server assignors compared with Kafka's own classes, over rounds of random
groups."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

import pytest

from fencepost.member.assignors.base import GroupMember
from fencepost.member.assignors.sticky import CooperativeStickyAssignor, StickyAssignor
from fencepost.member.consumer_protocol import Assignment, Subscription
from fencepost.member.partitions import TopicPartition
from fencepost.protocol.events import Topic
from fencepost_conformance.targets.java_order import java_order, timeline_order
from fencepost_conformance.targets.jvm.assignors import KafkaAssignors, client
from fencepost_conformance.targets.jvm.assignors.rounds import NAMES, Round, server_rounds, sticky_rounds

pytestmark = pytest.mark.jvm
#: seeds of groups, each with several rounds. No seed comes twice: Kafka's assignor of a seed remembers its rounds.
SEEDS = pytest.mark.parametrize(
    "seeds", [range(200), pytest.param(range(200, 500), marks=pytest.mark.all)], ids=["200", "500"]
)
AssignorsOf = Callable[[str], AbstractContextManager[KafkaAssignors]]


@pytest.fixture(scope="module", params=["4.4.0", pytest.param("4.3.1", marks=pytest.mark.all), "4.0.2"])
def kafka(request: pytest.FixtureRequest, assignors_of: AssignorsOf) -> Iterator[KafkaAssignors]:
    with assignors_of(request.param) as asked:
        yield asked


def compare(kafka: KafkaAssignors, seeds: range, rounds: Callable[[int], Iterator[Round]]) -> int:
    """Return the number of rounds in which both refused."""
    refused = 0
    asked = [each for seed in seeds for each in rounds(seed)]
    for each, answer in zip(asked, kafka.ask([each.question for each in asked]), strict=True):
        theirs = each.theirs(answer)
        assert each.ours == theirs, each.question
        refused += theirs is None
    assert len(asked) > 4 * len(seeds)
    return refused


@SEEDS
@pytest.mark.parametrize("name", ["range", "uniform"])
def test_same_targets_as_kafka(kafka: KafkaAssignors, name: str, seeds: range) -> None:
    assert compare(kafka, seeds, lambda seed: server_rounds(name, seed)) > 0


@SEEDS
@pytest.mark.parametrize("racks", [False, True], ids=["plain", "racks"])
@pytest.mark.parametrize("name", ["sticky", "cooperative-sticky"])
def test_same_sticky_shares_as_kafka(kafka: KafkaAssignors, name: str, racks: bool, seeds: range) -> None:
    compare(kafka, seeds, lambda seed: sticky_rounds(name, seed, racks=racks))


@pytest.mark.parametrize("assignor", [StickyAssignor(), CooperativeStickyAssignor()], ids=lambda each: each.name)
def test_same_user_data_as_kafka(kafka: KafkaAssignors, assignor: StickyAssignor | CooperativeStickyAssignor) -> None:
    draw = random.Random(assignor.name)
    cases: list[tuple[tuple[TopicPartition, ...] | None, int]] = [(None, -1)]
    for _ in range(500):
        held = {TopicPartition(draw.choice(NAMES), draw.randint(0, 99)) for _ in range(draw.randint(0, 40))}
        cases.append((tuple(draw.sample(sorted(held), len(held))), draw.randint(0, 2**31 - 1)))
    answers = kafka.ask([client.user_data(assignor.name, held, generation) for held, generation in cases])
    for (held, generation), answer in zip(cases, answers, strict=True):
        member = assignor if held is None else assignor.on_assignment(Assignment(held), generation)
        assert member.user_data(frozenset({"t"})) == client.data(answer), held


def test_members_reach_an_assignor_in_this_order(kafka: KafkaAssignors) -> None:
    draw = random.Random("order")
    groups = [[f"{draw.choice(NAMES)}{draw.randint(0, 999)}" for _ in range(draw.randint(1, 60))] for _ in range(500)]
    groups = [list(dict.fromkeys(names)) for names in groups] + [["Aa", "BB"], ["BB", "Aa"]]
    for names, answer in zip(groups, kafka.ask([client.order(names) for names in groups]), strict=True):
        assert client.names(answer) == java_order(timeline_order(names))


# --- faults of Kafka's client, as it was seen to commit them ---


def claims(held: str, topics: str, generation: int = 1) -> GroupMember:
    """Return partitions from names: ``t0 u1`` are partition 0 of t and partition 1 of u."""
    owned = tuple(TopicPartition(word[0], int(word[1:])) for word in held.split())
    return GroupMember(Subscription(tuple(topics), None, owned, generation))


UNSUBSCRIBED = {"a": claims("", "tu", 2), "b": claims("t0", "u"), "c": claims("t0 u0", "tu", 2)}
OUT_OF_THE_GAME = {"a": claims("t0 t1", "u"), "b": claims("t0 t1", "t", 2), "c": claims("", "t")}
NOTHING = {"a": claims("", ""), "b": claims("", "t")}
SHRUNK = {"a": claims("t0 t3", "t"), "b": claims("t1 u0 u1", "tu")}


def both(
    kafka: KafkaAssignors, topics: dict[str, Topic], members: dict[str, GroupMember], *, faults: bool
) -> list[dict[str, list[str]] | str]:
    """Return Kafka's answer and the answer of this project."""
    answers: list[dict[str, list[str]] | str] = []
    (answer,) = kafka.ask([client.assign("cooperative-sticky", topics.values(), members)])
    for ask in (
        lambda: client.shares(answer),
        lambda: {
            name: share.partitions
            for name, share in CooperativeStickyAssignor(faults=faults).assign(topics, members).assignments.items()
        },
    ):
        try:
            shares = ask()
            answers.append(
                {name: [f"{each.topic}{each.partition}" for each in shares[name]] for name in sorted(shares)}
            )
        except client.Raised as raised:
            answers.append(str(raised))
        except KeyError:
            answers.append("NullPointerException")
        except IndexError:
            answers.append("IllegalStateException")
    return answers


@pytest.mark.parametrize("members", [UNSUBSCRIBED, OUT_OF_THE_GAME, NOTHING])
def test_faults_can_be_followed(kafka: KafkaAssignors, members: dict[str, GroupMember]) -> None:
    topics = {"t": Topic("t", b"", 2 if members is OUT_OF_THE_GAME else 1), "u": Topic("u", b"", 1)}
    theirs, ours = both(kafka, topics, members, faults=True)
    assert theirs == ours
    theirs, ours = both(kafka, topics, members, faults=False)
    assert theirs != ours


def test_a_former_owner_that_unsubscribed(kafka: KafkaAssignors) -> None:
    topics = {"t": Topic("t", b"", 1), "u": Topic("u", b"", 1)}
    theirs, ours = both(kafka, topics, UNSUBSCRIBED, faults=False)
    assert theirs == {"a": [], "b": ["t0"], "c": ["u0"]}  # A-STICKY-25: b subscribes only to u
    assert isinstance(ours, dict)
    assert ours["b"] == []


def test_a_former_owner_that_is_out_of_the_game(kafka: KafkaAssignors) -> None:
    topics = {"t": Topic("t", b"", 2), "u": Topic("u", b"", 1)}
    assert both(kafka, topics, OUT_OF_THE_GAME, faults=False)[0] == "NullPointerException"  # A-STICKY-25


def test_a_member_without_topics_gets_the_topics_of_others(kafka: KafkaAssignors) -> None:
    theirs, ours = both(kafka, {"t": Topic("t", b"", 1)}, NOTHING, faults=False)
    assert theirs == {"a": ["t0"], "b": []}  # A-STICKY-26
    assert ours == {"a": [], "b": ["t0"]}


def test_a_topic_that_came_back_smaller(kafka: KafkaAssignors) -> None:
    topics = {"t": Topic("t", b"", 2), "u": Topic("u", b"", 2)}
    theirs, ours = both(kafka, topics, SHRUNK, faults=True)
    assert theirs == {"a": ["t0", "t3"], "b": ["t1", "u0", "u1"]}  # A-STICKY-27: t3 does not exist
    assert ours == {"a": ["t0"], "b": ["u0", "u1"]}  # t1 goes to a, in the next round
    alike = {"a": claims("t0 t5", "tu"), "b": claims("u0 u1", "tu")}
    theirs, ours = both(kafka, topics, alike, faults=True)
    assert theirs == ours == "IllegalStateException"
    assert both(kafka, topics, alike, faults=False)[1] == {"a": ["t0", "t1"], "b": ["u0", "u1"]}
