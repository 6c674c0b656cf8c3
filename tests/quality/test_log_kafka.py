"""Kafka's own coordinator loads what it wrote, in each way: it knows what it knew, or a fault of it has a name."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from test_log import LOSSES, recorded

from fencepost.protocol.profiles import KAFKA_4_3
from fencepost_conformance.compaction.kafka import check_on_kafka
from fencepost_conformance.console import CannotRun
from fencepost_conformance.generate.cleaner import Reading
from fencepost_conformance.generate.generator import generate
from fencepost_conformance.generate.plan import GroupProtocol
from fencepost_conformance.jvm import harness
from fencepost_conformance.targets.kafka_jvm import KafkaJvm

pytestmark = pytest.mark.jvm

#: the loss is still there when everything is replicated
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
def test_kafka_knows_again_what_it_knew(kafka: KafkaJvm, protocol: GroupProtocol) -> None:
    """INV-REPLAY-01, 11.5, 11.6; and the core does the same at every step, before the load and after."""
    traces = {f"{protocol} {n}": generate(n, KAFKA_4_3, 60, protocol) for n in range(300, 306)}
    found = check_on_kafka(kafka, traces)
    assert not found.complaints
    assert set(found.loads) == set(Reading)
    assert found.steps > 500


@pytest.mark.parametrize(("path", "name"), [row for row in LOSSES if row[0] in LAST])
def test_what_kafka_loses_has_a_name(kafka: KafkaJvm, path: str, name: str) -> None:
    """C-SYNC-19, M-STATIC-13."""
    found = check_on_kafka(kafka, {path: recorded(path)})
    assert not found.complaints
    assert name in found.named
