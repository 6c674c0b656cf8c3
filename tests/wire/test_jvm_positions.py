"""A reader's knowledge of its partitions equals Kafka's own ``SubscriptionState``, call by call (8.7)."""

from __future__ import annotations

from collections.abc import Iterator
from random import SystemRandom

import pytest

from fencepost_conformance.common.errors import CannotRun
from fencepost_conformance.run.mutants.catalogue import MUTANTS
from fencepost_conformance.run.mutants.mutant import planted
from fencepost_conformance.run.mutants.replacement import Replacement, in_place
from fencepost_conformance.targets.jvm.positions import KafkaPositions, differences

pytestmark = pytest.mark.jvm
WALKS = 300


@pytest.fixture(scope="module", params=["4.4.0", "4.3.1"])
def kafka(request: pytest.FixtureRequest) -> Iterator[KafkaPositions]:
    try:
        asked = KafkaPositions(request.param)
    except CannotRun as reason:
        pytest.skip(str(reason))
    yield asked
    asked.close()


def test_both_show_the_same_after_every_call(kafka: KafkaPositions) -> None:
    first = SystemRandom().randrange(10**9)
    assert list(differences(kafka, range(first, first + WALKS))) == []


@pytest.mark.parametrize(
    "name", ["leader-not-asked-again", "truncation-not-seen", "reset-beats-seek", "revoked-while-read"]
)
def test_a_planted_fault_is_found(kafka: KafkaPositions, name: str) -> None:
    with planted(MUTANTS[name]):
        assert list(differences(kafka, range(60)))


def test_another_order_of_fetches_is_found(kafka: KafkaPositions) -> None:
    """K-SUB-14."""
    as_given = Replacement(
        "fencepost_consumer/subscribing.py", "by_topic", "[each for several in topics.values() for each in several]",
        "sorted(each for several in topics.values() for each in several)",
    )  # fmt: skip
    with in_place([as_given]):
        assert list(differences(kafka, range(60)))
