"""The time of an assignor beside Kafka's own class of the same name: same input, same answer, Kafka's JVM warm.

The input is a typical rebalance: all topics were assigned, then one member in ten left.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random
from typing import TypeVar

from fencepost.coordinator.consumer.assignors import ASSIGNORS, GroupSpec, MemberSpec
from fencepost.member.assignors.base import Assignor, GroupMember
from fencepost.member.assignors.range import RangeAssignor
from fencepost.member.assignors.round_robin import RoundRobinAssignor
from fencepost.member.assignors.sticky import CooperativeStickyAssignor
from fencepost.member.consumer_protocol import Subscription
from fencepost.protocol.consumer_view import SubscriptionType
from fencepost.protocol.events import Topic

from ...targets.jvm.assignors import KafkaAssignors, client
from .kafka import RELEASE
from .measure import Row

_ROUNDS = 5
_WARM_S = 1.0
#: Numbers of members and partitions, with a topic for each hundred partitions.
_SIZES = ((10, 1_000), (100, 10_000), (1_000, 10_000))
#: Kafka's general algorithm takes seconds beyond this.
_GENERAL = ((10, 1_000), (30, 1_000))

Name = TypeVar("Name", str, bytes)


@dataclass(frozen=True, slots=True)
class _Case:
    what: str
    ours: Callable[[], object]
    question: str


def assignors() -> list[Row]:
    """Milliseconds per assignment; a ratio above 1 is slower than Kafka. Raises ``CannotRun`` without a JDK or jars."""
    kafka = KafkaAssignors(RELEASE, timed=True)
    try:
        return [_measure(case, kafka) for case in _cases()]
    finally:
        kafka.close()


def _measure(case: _Case, kafka: KafkaAssignors) -> Row:
    once = client.seconds(kafka.ask([client.timed(case.question, 1)])[0])[0]
    kafka.ask([client.timed(case.question, max(1, int(_WARM_S / once)))])
    pairs = []
    for _ in range(_ROUNDS):
        began = time.perf_counter()
        case.ours()
        ours = time.perf_counter() - began
        pairs.append((ours, client.seconds(kafka.ask([client.timed(case.question, 3)])[0])[-1]))
    return Row(
        "assignors",
        case.what,
        1_000 * statistics.median(ours for ours, _ in pairs),
        "ms",
        "Kafka's in its JVM",
        1_000 * statistics.median(theirs for _, theirs in pairs),
        statistics.median(ours / theirs for ours, theirs in pairs),
    )


def _cases() -> Iterator[_Case]:
    for size, partitions in _SIZES:
        yield _server("range", size, partitions, alike=True)
        yield _server("uniform", size, partitions, alike=True)
        yield _server("uniform", size, partitions, alike=False)
        for assignor in (RangeAssignor(), RoundRobinAssignor(), CooperativeStickyAssignor()):
            yield _client(assignor, size, partitions, alike=True)
    for size, partitions in _GENERAL:
        yield _client(CooperativeStickyAssignor(), size, partitions, alike=False)


def _label(name: str, size: int, partitions: int, alike: bool) -> str:
    return f"{name}, {'equal' if alike else 'different'} subscriptions, {size:,} members, {partitions:,} partitions"


def _server(name: str, size: int, partitions: int, *, alike: bool) -> _Case:
    rng = Random(f"{name} {size}")
    topics = {rng.randbytes(16): 100 for _ in range(partitions // 100)}
    kind = SubscriptionType.HOMOGENEOUS if alike else SubscriptionType.HETEROGENEOUS
    members = {
        f"m{number}": MemberSpec(None, None, frozenset(_wanted(rng, list(topics), alike)), {}) for number in range(size)
    }
    assign = ASSIGNORS[name]
    before = assign(GroupSpec(members, kind, topics))
    staying = {
        each: member._replace(assigned=before[each])
        for number, (each, member) in enumerate(members.items())
        if number % 10
    }
    spec = GroupSpec(staying, kind, topics)
    return _Case(_label(f"server {name}", size, partitions, alike), lambda: assign(spec), client.target(name, spec))


def _client(assignor: Assignor, size: int, partitions: int, *, alike: bool) -> _Case:
    rng = Random(f"{assignor.name} {size}")
    topics = {name: Topic(name, b"", 100) for name in (f"t{number}" for number in range(partitions // 100))}
    members = {
        f"m{number}": GroupMember(Subscription(tuple(_wanted(rng, list(topics), alike)))) for number in range(size)
    }
    before = assignor.assign(topics, members).assignments
    staying = {
        each: GroupMember(Subscription(member.subscription.topics, None, before[each].partitions, 1))
        for number, (each, member) in enumerate(members.items())
        if number % 10
    }
    question = client.assign(assignor.name, topics.values(), staying)
    label = _label(f"client {assignor.name}", size, partitions, alike)
    return _Case(label, lambda: assignor.assign(topics, staying), question)


def _wanted(rng: Random, topics: list[Name], alike: bool) -> list[Name]:
    return topics if alike else rng.sample(topics, len(topics) // 2)
