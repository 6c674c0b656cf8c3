"""The rare kept traces of a release: core and Kafka agree, and the model follows."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from jvm_traces import KafkaOf

from fencepost.protocol.profile import Profile
from fencepost.protocol.profiles import KAFKA_4_3, KAFKA_4_4
from fencepost_conformance.generate.generator import Generated
from fencepost_conformance.generate.plan import GroupProtocol
from fencepost_conformance.judge.compare.lockstep import compare
from fencepost_conformance.judge.compare.model import follow

pytestmark = pytest.mark.jvm


@pytest.mark.parametrize(("release", "profile"), [("4.3.1", KAFKA_4_3), ("4.4.0", KAFKA_4_4)])
def test_kafka_behaves_like_the_core(
    kafka_of: KafkaOf, release: str, profile: Profile, kept: Callable[..., list[Generated]]
) -> None:
    traces = [trace for protocol in GroupProtocol for trace in kept(protocol, profile)]
    answers = kafka_of(release).run_many([(trace.settings, trace.events) for trace in traces])
    for trace, answer in zip(traces, answers, strict=True):
        found = compare(trace.settings, profile, trace.events, trace.observations, answer)
        assert found.difference is None, trace.seed
        assert follow(trace.settings, profile, trace.events, found.ours).refused is None, trace.seed
