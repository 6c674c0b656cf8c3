"""A coordinator that never got the list of topics: Kafka, core and model agree (M-RX-03, M-RX-04, V-43)."""

from __future__ import annotations

from dataclasses import replace

import pytest
from jvm_traces import LOADED, KafkaOf, request

from fencepost.protocol import events as ev
from fencepost.protocol.consumer_messages import ConsumerGroupHeartbeatRequest
from fencepost.protocol.consumer_records import ConsumerGroupRegularExpressionValue
from fencepost.protocol.profiles import PROFILES
from fencepost.protocol.settings import Settings
from fencepost_conformance.judge.compare.lockstep import compare
from fencepost_conformance.judge.compare.model import follow
from fencepost_conformance.targets.core import Core
from fencepost_conformance.targets.jvm.releases import RELEASES
from fencepost_conformance.targets.registry import profile_of_version

pytestmark = pytest.mark.jvm

BODY = ConsumerGroupHeartbeatRequest(
    "g",
    member_id="m",
    member_epoch=0,
    rebalance_timeout_ms=45_000,
    subscribed_topic_regex="t.*",
    server_assignor="uniform",
    topic_partitions=(),
)
RESOLVED = ev.TaskDone(1, ev.TaskKey(ev.TaskKind.REGEX, "g"))
JOINED = (LOADED, request(0, 1, 1, BODY), RESOLVED)
LATER = request(30_000, 2, 1, replace(BODY, member_epoch=1))
#: which lists it gets, and when: none at all; one without topics after the resolution; one before everything, too
IMAGES = {
    "never": (*JOINED, LATER),
    "after": (*JOINED, ev.TopicsChanged(20_000, (), version=5), LATER),
    "before": (ev.TopicsChanged(0, (), version=5), *JOINED, ev.TopicsChanged(20_000, (), version=6), LATER),
}


@pytest.mark.parametrize("release", RELEASES)
def test_before_the_first_image(kafka_of: KafkaOf, release: str) -> None:
    profile, old = PROFILES[profile_of_version(release)], release[:3] in {"4.0", "4.1"}
    kafka = kafka_of(release)
    for when, events in IMAGES.items():
        answers = kafka.run(Settings(), profile, events)
        core, failure = Core().run_until_raised(Settings(), profile, events)
        found = compare(Settings(), profile, events, core, answers)
        assert (failure, found.difference) == (None, None), when
        assert follow(Settings(), profile, events, answers).refused is None, when
        (version,) = [
            record.value.version
            for step in answers
            for record in step.records
            if isinstance(record.value, ConsumerGroupRegularExpressionValue)
        ]
        assert version == (5 if when == "before" else -1 if old else 0)
        asks_again = bool(answers[-1].tasks)
        assert asks_again is (old and when == "after"), when
