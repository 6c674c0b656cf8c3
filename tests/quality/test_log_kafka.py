"""Kafka's own coordinator loads the log that it wrote, in each way: the state is the same, or a known fault explains
the loss."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from test_log import LOSSES, recorded

from fencepost.protocol.profiles import KAFKA_4_3
from fencepost_conformance.common.errors import CannotRun
from fencepost_conformance.generate.cleaner import Reading
from fencepost_conformance.generate.generator import generate
from fencepost_conformance.generate.plan import GroupProtocol
from fencepost_conformance.judge.compaction.kafka import check_on_kafka
from fencepost_conformance.targets.jvm import harness
from fencepost_conformance.targets.kafka_jvm import KafkaJvm

pytestmark = pytest.mark.jvm

#: the loss remains when every record is replicated
LAST = ("leader-sends-two-assignments", "consumer/former-instance-id-stays-taken")


@pytest.fixture(scope="module")
def kafka() -> Iterator[KafkaJvm]:
    try:
        harness.command("4.3.1")
    except CannotRun as reason:
        pytest.skip(str(reason).splitlines()[0])
    with KafkaJvm("4.3.1") as target:
        yield target


@pytest.mark.parametrize("protocol", GroupProtocol)
def test_kafka_restores_the_state_that_it_had(kafka: KafkaJvm, protocol: GroupProtocol) -> None:
    """The loaded state is the previous one; the core agrees at every step before and after the load (INV-REPLAY-01,
    11.5, 11.6)."""
    traces = {f"{protocol} {n}": generate(n, KAFKA_4_3, 60, protocol) for n in range(300, 306)}
    found = check_on_kafka(kafka, traces)
    assert not found.complaints
    assert set(found.loads) == set(Reading)
    assert found.steps > 500


@pytest.mark.parametrize(("path", "name"), [row for row in LOSSES if row[0] in LAST])
def test_losses_of_kafka_have_a_name(kafka: KafkaJvm, path: str, name: str) -> None:
    """C-SYNC-19, M-STATIC-13."""
    found = check_on_kafka(kafka, {path: recorded(path)})
    assert not found.complaints
    assert name in found.named
