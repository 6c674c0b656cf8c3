"""Faults that Kafka's coordinator shows when it is stepped; each trace can be replayed."""

from __future__ import annotations

import pytest
from jvm_traces import LOADED, KafkaOf, armed, groups, join, only, run, sync

from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import Appended, Event, Load, TimerFired, TimerKey, TimerKind, Unload
from fencepost.protocol.messages import JoinGroupResponse, Protocol
from fencepost.protocol.records import GroupMetadataKey, GroupMetadataValue, Record
from fencepost.protocol.view import GroupState
from fencepost_conformance.targets.ids import member_id
from fencepost_conformance.targets.kafka_jvm import KafkaJvm

pytestmark = pytest.mark.jvm

JOIN = TimerKey(TimerKind.JOIN, "g")
#: A consumer's subscription of version 0 that announces two thousand million topics and has none.
UNREADABLE = (Protocol("range", b"\x00\x00\x7f\xff\xff\xff"),)


@pytest.fixture(params=["4.0.2", "4.3.1"])
def kafka(request: pytest.FixtureRequest, kafka_of: KafkaOf) -> KafkaJvm:
    return kafka_of(request.param)


def test_an_unreadable_subscription_leaves_its_group_without_a_join_timer(kafka: KafkaJvm) -> None:
    """The end of the join phase throws after the generation was counted, as in C-ST-27 and C-JOIN-72."""
    seen = run(
        kafka, LOADED, join(1, 1, protocols=UNREADABLE, version=3), Appended(2, offset=1), TimerFired(3_001, JOIN)
    )
    assert seen[-1].error == "RuntimeException"
    assert (groups(seen)["g"].state, groups(seen)["g"].generation_id) == (GroupState.PREPARING_REBALANCE, 1)
    assert JOIN not in armed(seen)


def test_a_static_member_can_stop_every_group_of_its_partition(kafka: KafkaJvm) -> None:
    """C-STATIC-03 logs the replacement's subscription without parsing it. No later load gets past that record: from
    then on all groups of the partition are unavailable, whichever broker leads it."""
    first = member_id("static", 0)
    events: list[Event] = [
        LOADED,
        join(1, 1, instance="static"),
        Appended(2, offset=1),
        TimerFired(3_001, JOIN),
        sync(3_002, 2, first, given=b"a"),
        Appended(3_003, offset=2),
        join(3_004, 3, instance="static", protocols=UNREADABLE),
        Appended(3_005, offset=3),
    ]
    other = Record(
        GroupMetadataKey("other"),
        GroupMetadataValue("", generation=0, protocol=None, leader=None, current_state_timestamp=10),
    )
    seen = run(kafka, *events)
    replaced = only(seen[-1]).body
    assert isinstance(replaced, JoinGroupResponse)
    assert replaced.error_code is ErrorCode.NONE
    log = (other, *(record for step in seen for record in step.records))
    seen = run(
        kafka,
        *events,
        Unload(4_000, leader_epoch=2),
        Load(4_001, leader_epoch=3, records=log),
        join(4_002, 9, group="other"),
    )
    assert seen[-2].error == "RuntimeException"
    assert only(seen[-1]).body.error_code is ErrorCode.NOT_COORDINATOR  # type: ignore[union-attr]
