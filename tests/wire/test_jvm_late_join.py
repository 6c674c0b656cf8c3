"""Partitions in the answer to an abandoned join are assigned to no other member (M-RSP-01, LIV-07), in Kafka and under
``intended``."""

from __future__ import annotations

import pytest
from jvm_traces import KafkaOf

from fencepost.protocol import events as ev
from fencepost.protocol.consumer_messages import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from fencepost.protocol.consumer_view import ConsumerGroupState
from fencepost.protocol.profile import Profile
from fencepost.protocol.profiles import INTENDED, PROFILES
from fencepost.protocol.settings import Settings
from fencepost_conformance.targets.core import Core
from fencepost_conformance.traces.observation import Observation

TOPIC = b"\1" * 16
SETTINGS = Settings(group_consumer_assignment_interval_ms=0)


def _asks(number: int, member: str, epoch: int, *owned: int) -> ev.Request:
    joins = epoch == 0
    rows = (TopicPartitions(TOPIC, owned),) if owned else () if joins else None
    body = ConsumerGroupHeartbeatRequest(
        "g",
        member_id=member,
        member_epoch=epoch,
        rebalance_timeout_ms=60_000 if joins else -1,
        subscribed_topic_names=("t",) if joins else None,
        topic_partitions=rows,
    )
    return ev.Request(100 * number, id=number, version=1, client_id="client", client_host="/127.0.0.1", body=body)


#: m1 joins, must wait for partitions of m2, and when they are free its first, abandoned join arrives
EVENTS = (
    ev.TopicsChanged(0, (ev.Topic("t", TOPIC, 2),), version=1),
    ev.Load(0, leader_epoch=1, records=()),
    _asks(1, "m2", 0),
    ev.Appended(101, offset=5),
    _asks(2, "m1", 0),
    ev.Appended(201, offset=11),
    _asks(3, "m2", 2),
    ev.Appended(301, offset=12),
    _asks(4, "m2", 2, 0),
    ev.Appended(401, offset=13),
    _asks(5, "m1", 0),
    ev.Appended(501, offset=14),
    _asks(6, "m1", 3),
)


def _no_member_is_informed(seen: list[Observation]) -> None:
    answers = {
        reply.request_id: reply.body.assignment
        for each in seen
        for reply in each.replies
        if isinstance(reply.body, ConsumerGroupHeartbeatResponse)
    }
    assert answers[2] == ()
    assert answers[5] == (TopicPartitions(TOPIC, (1,)),)
    assert answers[6] is None
    (group,) = [each.consumer_groups["g"] for each in seen if "g" in each.consumer_groups][-1:]
    assert group.state is ConsumerGroupState.STABLE


@pytest.mark.parametrize("profile", [INTENDED, PROFILES["kafka-4.4"]], ids=lambda profile: profile.name)
def test_the_core_informs_no_member(profile: Profile) -> None:
    _no_member_is_informed(list(Core().run(SETTINGS, profile, EVENTS)))


@pytest.mark.jvm
@pytest.mark.parametrize("release", ["4.3.1", "4.4.0"])
def test_kafka_informs_no_member(kafka_of: KafkaOf, release: str) -> None:
    _no_member_is_informed(list(kafka_of(release).run(SETTINGS, PROFILES["kafka-4.4"], EVENTS)))
