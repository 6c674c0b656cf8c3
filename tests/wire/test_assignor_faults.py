"""Faults of the client's sticky assignors (A-STICKY-25…27): a search finds a smallest group for each. Kafka's own class
gives the same result for it and for all others.

The search goes through groups of one to three members by size: members, the topics and claims of each, and partitions.
It looks for assignments that are not allowed: a partition that does not exist, that its owner does not subscribe to, or
that has two owners; or no answer at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import cache
from itertools import chain, combinations, product
from random import Random
from typing import NamedTuple

import pytest

from fencepost.member.assignors.base import GroupMember
from fencepost.member.assignors.sticky import CooperativeStickyAssignor
from fencepost.member.consumer_protocol import Subscription
from fencepost.member.partitions import TopicPartition
from fencepost.protocol.events import Topic
from fencepost_conformance.targets.jvm.assignors import KafkaAssignors, client

AssignorsOf = Callable[[str], AbstractContextManager[KafkaAssignors]]
Shares = Mapping[str, tuple[TopicPartition, ...]] | None


class Joiner(NamedTuple):
    """A member's subscription, its claims, and their generation."""

    topics: str
    claims: tuple[TopicPartition, ...]
    generation: int

    @property
    def size(self) -> int:
        return 1 + len(self.topics) + len(self.claims)


class Group(NamedTuple):
    """``partitions``: the number of partitions of each topic."""

    partitions: tuple[tuple[str, int], ...]
    joiners: tuple[Joiner, ...]

    @property
    def size(self) -> int:
        return sum(count for _, count in self.partitions) + sum(each.size for each in self.joiners)

    @property
    def topics(self) -> dict[str, Topic]:
        return {name: Topic(name, b"", count) for name, count in self.partitions}

    @property
    def members(self) -> dict[str, GroupMember]:
        rows = zip("abc", self.joiners, strict=False)
        return {
            name: GroupMember(Subscription(tuple(each.topics), None, each.claims, each.generation))
            for name, each in rows
        }


class Fault(NamedTuple):
    """A search.

    - ``least``: a member subscribes to at least so many topics.
    - ``partitions``: the numbers of partitions of the topics.
    - ``beyond``: how many numbers it may claim that a topic does not have.
    - ``size``: the size of the smallest group.
    """

    rule: str
    least: int
    partitions: tuple[tuple[str, int], ...]
    beyond: int
    most: int
    size: int


FAULTS = (
    Fault("A-STICKY-25", 1, (("t", 1), ("u", 1)), 0, 3, 12),
    Fault("A-STICKY-26", 0, (("t", 1),), 0, 2, 4),
    Fault("A-STICKY-27", 1, (("t", 1),), 1, 2, 4),
)


def _subsets(of: tuple[str | TopicPartition, ...], least: int, most: int) -> Iterator[tuple[str | TopicPartition, ...]]:
    return chain.from_iterable(combinations(of, count) for count in range(least, most + 1))


def groups(fault: Fault) -> list[Group]:
    """Yield all groups, the smallest first."""
    real = [TopicPartition(name, n) for name, count in fault.partitions for n in range(count + fault.beyond)]
    joiners = [
        Joiner(
            "".join(map(str, topics)), tuple(each for each in claims if isinstance(each, TopicPartition)), generation
        )
        for topics in _subsets(tuple(name for name, _ in fault.partitions), fault.least, len(fault.partitions))
        for claims in _subsets(tuple(real), 0, 2)
        for generation in ((1, 2) if claims else (2,))
    ]
    found = [
        Group(fault.partitions, each) for count in range(1, fault.most + 1) for each in product(joiners, repeat=count)
    ]
    return sorted(found, key=lambda group: group.size)


def ours(group: Group, *, faults: bool) -> Shares:
    """Return the result of this project's assignor; None: it raises."""
    try:
        answer = CooperativeStickyAssignor(faults=faults).assign(group.topics, group.members)
    except (KeyError, IndexError):
        return None
    return {name: share.partitions for name, share in answer.assignments.items()}


def is_allowed(group: Group, shares: Shares) -> bool:
    """A-PROP-02, A-PROP-03, and A-PROP-01 as far as one round of a cooperative assignor goes."""
    if shares is None:
        return False
    given, counts = [each for share in shares.values() for each in share], dict(group.partitions)
    real = all(0 <= each.partition < counts.get(each.topic, 0) for each in given)
    wanted = all(each.topic in group.members[name].subscription.topics for name in shares for each in shares[name])
    return real and wanted and len(given) == len(set(given))


@cache
def smallest(rule: str) -> Group | None:
    fault = next(each for each in FAULTS if each.rule == rule)
    return next((group for group in groups(fault) if not is_allowed(group, ours(group, faults=True))), None)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.rule)
def test_fault_of_the_assignor_is_found(fault: Fault) -> None:
    found = smallest(fault.rule)
    assert found is not None
    assert found.size == fault.size


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.rule)
def test_without_the_faults_no_group_is_found(fault: Fault) -> None:
    """Neither does any larger group of these."""
    assert all(is_allowed(group, ours(group, faults=False)) for group in groups(fault))


@pytest.fixture(scope="module")
def kafka(assignors_of: AssignorsOf) -> Iterator[Callable[[Sequence[Group]], list[Shares]]]:
    def shares(answer: str) -> Shares:
        try:
            return {name: tuple(share) for name, share in client.shares(answer).items()}
        except client.Raised:
            return None

    def assign(asking: Sequence[Group]) -> list[Shares]:
        questions = [client.assign("cooperative-sticky", each.topics.values(), each.members) for each in asking]
        return [shares(answer) for answer in asked.ask(questions)]

    with assignors_of("4.3.1") as asked:
        yield assign


@pytest.mark.jvm
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.rule)
def test_kafka_does_the_same(kafka: Callable[[Sequence[Group]], list[Shares]], fault: Fault) -> None:
    every = groups(fault)
    theirs = dict(zip(every, kafka(every), strict=True))
    found = smallest(fault.rule)
    assert found is not None
    assert not is_allowed(found, theirs[found])
    assert [ours(each, faults=True) for each in every] == list(theirs.values())


@pytest.mark.jvm
def test_kafka_believes_every_claim(kafka: Callable[[Sequence[Group]], list[Shares]]) -> None:
    """A-STICKY-27 if all members subscribe to the same topics: two topics that were recreated with fewer partitions."""
    draw = Random("shrunk")
    numbers = [TopicPartition(name, number) for name in "tu" for number in range(4)]

    def joiner() -> Joiner:
        return Joiner("tu", tuple(draw.sample(numbers, draw.randint(0, 4))), draw.choice((1, 2, 2, 2)))

    every = [Group((("t", 2), ("u", 2)), tuple(joiner() for _ in range(draw.randint(1, 3)))) for _ in range(2_000)]
    theirs = kafka(every)
    assert [ours(each, faults=True) for each in every] == theirs
    wrong = [each for each, shares in zip(every, theirs, strict=True) if not is_allowed(each, shares)]
    assert 200 < len(wrong) < len(every)
