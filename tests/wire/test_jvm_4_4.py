"""A fault that Kafka 4.4 introduced: a tie of votes for two assignors bumps the epoch (M-HB-15, LIV-17)."""

from __future__ import annotations

import pytest
from jvm_traces import KafkaOf

from fencepost.protocol import events as ev
from fencepost.protocol.consumer_messages import ConsumerGroupHeartbeatRequest
from fencepost.protocol.profiles import KAFKA_4_4
from fencepost.protocol.settings import Settings

pytestmark = pytest.mark.jvm


def beat(number: int, member: str, epoch: int, vote: str | None = None) -> ev.Request:
    names, owned = (("t",), ()) if vote else (None, None)
    body = ConsumerGroupHeartbeatRequest(
        "g",
        member_id=member,
        member_epoch=epoch,
        rebalance_timeout_ms=60_000 if vote else -1,
        subscribed_topic_names=names,
        server_assignor=vote,
        topic_partitions=owned,
    )
    return ev.Request(2_000 * number, id=number, version=1, client_id="client", client_host="/127.0.0.1", body=body)


@pytest.mark.parametrize(("release", "epoch"), [("4.3.1", 3), ("4.4.0", 4)])
def test_a_heartbeat_without_changes_bumps(kafka_of: KafkaOf, release: str, epoch: int) -> None:
    topics = ev.TopicsChanged(0, (ev.Topic("t", b"\1" * 16, 1),), version=1)
    events = [
        topics,
        ev.Load(0, leader_epoch=1, records=()),
        beat(1, "m1", 0, "range"),
        beat(2, "m2", 0, "uniform"),
        beat(3, "m1", 2),
    ]
    seen = kafka_of(release).run(Settings(), KAFKA_4_4, events)
    assert [step.consumer_groups["g"].group_epoch for step in seen if "g" in step.consumer_groups][-1] == epoch
