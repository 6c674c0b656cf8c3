"""Kafka's choices by the order of a hash map, and how the comparison finds them (NOT-10)."""

from __future__ import annotations

import pytest
from jvm_traces import RELEASE, KafkaOf

from fencepost.protocol import events as ev
from fencepost.protocol.consumer_messages import ConsumerGroupHeartbeatRequest
from fencepost.protocol.consumer_records import ConsumerGroupTargetAssignmentMemberKey as TargetKey
from fencepost.protocol.profiles import KAFKA_4_3
from fencepost.protocol.settings import Settings
from fencepost_conformance.generate.generator import core_session
from fencepost_conformance.judge.compare.lockstep import compare
from fencepost_conformance.targets.kafka_jvm import KafkaJvm

pytestmark = pytest.mark.jvm

#: ids that share a bucket of every table
ONE, OTHER = bytes(15) + b"\x01", bytes(14) + b"\x01\x01"


@pytest.fixture
def kafka(kafka_of: KafkaOf) -> KafkaJvm:
    return kafka_of(RELEASE)


def join(at_ms: int, number: int, member: str, regex: str) -> ev.Request:
    body = ConsumerGroupHeartbeatRequest(
        "g",
        member_id=member,
        member_epoch=0,
        rebalance_timeout_ms=5_000,
        subscribed_topic_regex=regex,
        server_assignor="uniform",
        topic_partitions=(),
    )
    return ev.Request(at_ms, id=number, version=1, client_id="client", client_host="/127.0.0.1", body=body)


def test_the_member_whose_topics_are_used_decides_which_share_a_bucket(kafka: KafkaJvm) -> None:
    """The type is stale, so one member's topics stand for all members (M-TGT-06). "Aa" and "BB" have one hash, so the
    topics are those of the member that was added first; only with "Aa" are there any topics, and these share a bucket
    too (A-UHOM-07). Found by seed 196153928 of the mixed traces of an earlier generator."""
    topics = (ev.Topic("orders", ONE, 2), ev.Topic("orders-us", OTHER, 2))
    settings = Settings(group_consumer_assignment_interval_ms=0, group_consumer_assignors=("uniform",))
    events = [
        ev.TopicsChanged(0, topics, version=1),
        ev.Load(0, leader_epoch=1, records=()),
        join(0, 1, "Aa", "orders.*"),
        ev.TaskDone(1, ev.TaskKey(ev.TaskKind.REGEX, "g"), failed=False),
        join(2, 2, "BB", "audit"),
    ]
    session = core_session(settings, KAFKA_4_3)
    ours = [session.feed(event) for event in events]
    theirs = kafka.run(settings, KAFKA_4_3, events)
    given = {record.key.member_id: record.value for record in theirs[-1].records if isinstance(record.key, TargetKey)}
    assert all(value.topic_partitions for value in given.values())
    assert given.keys() == {"Aa", "BB"}
    found = compare(settings, KAFKA_4_3, events, ours, theirs)
    assert found.difference is None
    assert found.followed == 2
