"""Timers whose key and names are the same strings in another split: their order shows the owner."""

from __future__ import annotations

import pytest
from jvm_traces import KafkaOf

from fencepost.protocol import events as ev
from fencepost.protocol.consumer_messages import ConsumerGroupHeartbeatRequest
from fencepost.protocol.profile import Profile
from fencepost.protocol.profiles import KAFKA_4_0, KAFKA_4_4
from fencepost.protocol.settings import Settings
from fencepost_conformance.generate.generator import core_session
from fencepost_conformance.judge.compare.lockstep import first_difference

pytestmark = pytest.mark.jvm


def join(at_ms: int, number: int, group: str, member: str) -> ev.Request:
    body = ConsumerGroupHeartbeatRequest(
        group,
        member_id=member,
        member_epoch=0,
        rebalance_timeout_ms=5_000,
        subscribed_topic_names=("t",),
        topic_partitions=(),
    )
    return ev.Request(at_ms, id=number, version=1, client_id="client", client_host="/127.0.0.1", body=body)


@pytest.mark.parametrize(("release", "profile"), [("4.0.2", KAFKA_4_0), ("4.4.0", KAFKA_4_4)])
def test_member_and_group_that_are_named_like_group_and_member(
    kafka_of: KafkaOf, release: str, profile: Profile
) -> None:
    """Group "--" with member "-" and group "-" with member "--" share one key (C-TMR-11). A random trace found this."""
    topics = (ev.Topic("t", bytes(15) + b"\x01", 2),)
    core = core_session(Settings(), profile)
    events: list[ev.Event] = [
        ev.TopicsChanged(0, topics, version=1),
        ev.Load(0, leader_epoch=1, records=()),
        join(0, 1, "--", "-"),
    ]
    ours = [core.feed(event) for event in events]
    for event in (ev.Appended(1, offset=len(ours[-1].records)), join(5, 2, "-", "--")):
        events.append(event)
        ours.append(core.feed(event))
    theirs = kafka_of(release).run(Settings(), profile, events)
    assert first_difference(ours, theirs) is None
    assert theirs[-1].timers[ev.TimerKey(ev.TimerKind.CONSUMER_SESSION, "-", "--")] == 45_005
    assert theirs[-1].timers[ev.TimerKey(ev.TimerKind.CONSUMER_SESSION, "--", "-")] is None
