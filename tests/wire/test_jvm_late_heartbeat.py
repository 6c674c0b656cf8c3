"""A full heartbeat that arrives after its client has given it up confirms a revocation that the member has not made
(M-REC-04, M-REC-18), in Kafka and under ``intended``: two members own a partition until the first is fenced.
"""

from __future__ import annotations

import pytest
from jvm_traces import KafkaOf

from fencepost.protocol import events as ev
from fencepost.protocol.consumer_messages import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.profile import Profile
from fencepost.protocol.profiles import INTENDED, PROFILES
from fencepost.protocol.settings import Settings
from fencepost_conformance.targets.core import Core
from fencepost_conformance.traces.observation import Observation

TOPIC = b"\1" * 16
SETTINGS = Settings(group_consumer_assignment_interval_ms=0)


def _asks(number: int, member: str, epoch: int, owned: tuple[int, ...] | None = None) -> ev.Request:
    """A full heartbeat if it says what the member owns."""
    full = owned is not None
    body = ConsumerGroupHeartbeatRequest(
        "g",
        member_id=member,
        member_epoch=epoch,
        rebalance_timeout_ms=60_000 if full else -1,
        subscribed_topic_names=("t",) if full else None,
        topic_partitions=(TopicPartitions(TOPIC, owned),) if owned else () if full else None,
    )
    return ev.Request(100 * number, id=number, version=1, client_id="client", client_host="/127.0.0.1", body=body)


#: m1 waits for partitions of m2, and sends a full heartbeat that is delayed. It gets partitions at the same epoch, and
#: has to give one up to m4. Then the delayed heartbeat arrives: at epoch 3, the member owns nothing.
EVENTS = (
    ev.TopicsChanged(0, (ev.Topic("t", TOPIC, 4),), version=1),
    ev.Load(0, leader_epoch=1, records=()),
    _asks(1, "m2", 0, ()),
    ev.Appended(101, offset=5),
    _asks(2, "m1", 0, ()),
    ev.Appended(201, offset=11),
    _asks(3, "m2", 2),
    ev.Appended(301, offset=12),
    _asks(4, "m2", 2, (0, 1)),
    ev.Appended(401, offset=13),
    _asks(5, "m1", 3),
    ev.Appended(501, offset=14),
    _asks(6, "m1", 3, (2, 3)),
    _asks(7, "m3", 0, ()),
    ev.Appended(701, offset=20),
    _asks(8, "m4", 0, ()),
    ev.Appended(801, offset=26),
    _asks(9, "m1", 3),
    ev.Appended(901, offset=27),
    _asks(10, "m1", 3, ()),
    ev.Appended(1_001, offset=28),
    _asks(11, "m4", 5),
    ev.Appended(1_101, offset=29),
    _asks(12, "m1", 3),
)


def _two_members_own_a_partition(seen: list[Observation]) -> None:
    answers = {
        reply.request_id: reply.body
        for each in seen
        for reply in each.replies
        if isinstance(reply.body, ConsumerGroupHeartbeatResponse)
    }
    assert answers[5].assignment == (TopicPartitions(TOPIC, (2, 3)),)
    assert (answers[9].member_epoch, answers[9].assignment) == (3, (TopicPartitions(TOPIC, (2,)),))
    assert answers[11].assignment == (TopicPartitions(TOPIC, (3,)),)
    assert answers[12].error_code is ErrorCode.FENCED_MEMBER_EPOCH


@pytest.mark.parametrize("profile", [INTENDED, PROFILES["kafka-4.4"]], ids=lambda profile: profile.name)
def test_the_core_takes_it_as_a_confirmation(profile: Profile) -> None:
    _two_members_own_a_partition(list(Core().run(SETTINGS, profile, EVENTS)))


@pytest.mark.jvm
@pytest.mark.parametrize("release", ["4.3.1", "4.4.0"])
def test_kafka_takes_it_as_a_confirmation(kafka_of: KafkaOf, release: str) -> None:
    _two_members_own_a_partition(list(kafka_of(release).run(SETTINGS, PROFILES["kafka-4.4"], EVENTS)))
