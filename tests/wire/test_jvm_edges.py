"""Numbers at the ends of their ranges: Kafka and the core agree."""

from __future__ import annotations

import pytest
from jvm_traces import KafkaOf

from fencepost.protocol.profiles import PROFILES
from fencepost_conformance.generate.edges import SETTINGS, edges, expiries, last_epochs
from fencepost_conformance.judge.compare.lockstep import compare

pytestmark = pytest.mark.jvm


@pytest.mark.parametrize(("release", "name"), [("4.4.0", "kafka-4.4"), ("4.0.2", "kafka-4.0")])
def test_kafka_does_the_same_with_every_number(kafka_of: KafkaOf, release: str, name: str) -> None:
    """Negative offsets, epochs and partitions are among them (G-VOC-04, G-VOC-07, O-COMMIT-14)."""
    profile = PROFILES[name]
    tried = [*edges(profile), *last_epochs(profile), *expiries(profile)]
    assert len(tried) > 200
    theirs = kafka_of(release).run_many([(SETTINGS, edge.events) for edge in tried])
    found = [
        f"{edge.name}: {compared.difference}"
        for edge, seen in zip(tried, theirs, strict=True)
        if (compared := compare(SETTINGS, profile, edge.events, edge.observations, seen)).difference is not None
    ]
    assert found == []
