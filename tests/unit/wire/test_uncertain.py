"""Facts about KIP-848 groups that the checker must not take for certain, and related facts that are certain."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from fencepost.member.consumer_protocol import Subscription, encode_subscription
from fencepost.protocol import messages as m
from fencepost.protocol.consumer_messages import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    ConsumerGroupHeartbeatRequest,
    DescribedConsumerGroup,
    DescribedConsumerMember,
    NamedTopicPartitions,
    TopicPartitions,
)
from fencepost.protocol.errors import ErrorCode as E
from fencepost.protocol.profile import Profile
from fencepost.protocol.profiles import KAFKA_4_3, KAFKA_4_4
from fencepost_conformance.traces.lines import ReceivedLine, SentLine

from .written import SETTINGS, TOPIC, Wire, parts

SMALL = replace(SETTINGS, group_consumer_max_size=2)


@pytest.mark.parametrize(("name", "blank"), [("\u2003", False), ("\xa0", False), ("\0", True), (" \t", True)])
def test_a_blank_is_a_character_that_java_trims(name: str, blank: bool) -> None:
    """M-VAL-06."""
    for error in (E.NONE, E.INVALID_REQUEST):
        wire = Wire()
        wire.beat(1_000, "a", 0, 2, parts(0, 1, 2, 3), error=error, instance_id=name)
        assert (wire.verdict().outcome == "accepted") == (blank == (error is E.INVALID_REQUEST))


@pytest.mark.parametrize(("profile", "outcome"), [(KAFKA_4_3, "refused"), (KAFKA_4_4, "accepted")])
def test_a_full_group_has_room_for_a_successor(profile: Profile, outcome: str) -> None:
    """M-VAL-28: from 4.4 on."""
    wire = Wire(settings=SMALL, profile=profile)
    wire.beat(1_000, "a", 0, 2, parts(0, 1, 2, 3), instance_id="i")
    wire.beat(1_100, "b", 0, 2, ())
    wire.beat(1_200, "a", -2, -2, instance_id="i")
    wire.beat(1_300, "c", 0, 2, parts(0, 1, 2, 3), instance_id="i")
    assert wire.verdict().outcome == outcome


@pytest.mark.parametrize("profile", [KAFKA_4_3, KAFKA_4_4])
def test_a_full_group_has_no_room_for_another_instance(profile: Profile) -> None:
    wire = Wire(settings=SMALL, profile=profile)
    wire.beat(1_000, "a", 0, 2, parts(0, 1, 2, 3), instance_id="i")
    wire.beat(1_100, "b", 0, 2, ())
    wire.beat(1_200, "a", -2, -2, instance_id="i")
    wire.beat(1_300, "c", 0, 3, (), instance_id="j")
    assert "M-VAL-25" in wire.refusal().rules


@pytest.mark.parametrize(("member", "outcome"), [("", "accepted"), ("a", "refused")])
def test_a_join_without_an_answer_may_have_made_a_member_with_an_unknown_id(member: str, outcome: str) -> None:
    """In version 0 the coordinator makes the id (M-VAL-09)."""
    wire = Wire(settings=SMALL)
    wire.beat(1_000, "a", 0, 2, parts(0, 1, 2, 3))
    body = ConsumerGroupHeartbeatRequest(
        "g", member_id=member, member_epoch=0, rebalance_timeout_ms=500, subscribed_topic_names=(), topic_partitions=()
    )
    wire.asked += 1
    wire.send(1_100, 50, 68, 0, body)
    wire.beat(1_200, "b", 0, 0, error=E.GROUP_MAX_SIZE_REACHED)
    assert wire.verdict().outcome == outcome


def describe(wire: Wire, at: int, *numbers: int) -> None:
    """One member at epoch 2 with these partitions."""
    rows = (NamedTopicPartitions(TOPIC.bytes, "t", numbers),) if numbers else ()
    row = DescribedConsumerMember(
        "a", instance_id=None, rack_id=None, member_epoch=2, client_id="", client_host="",
        subscribed_topic_names=("t",),
        subscribed_topic_regex=None, assignment=rows, target_assignment=(),
    )  # fmt: skip
    group = DescribedConsumerGroup(E.NONE, group_id="g", group_state="Stable", group_epoch=2, assignment_epoch=2)
    answer = ConsumerGroupDescribeResponse((replace(group, members=(row,)),))
    wire.exchange(at, 9, 69, 1, ConsumerGroupDescribeRequest(("g",)), answer)


@pytest.mark.parametrize(
    ("at", "numbers", "outcome"),
    [
        (1_200, (), "accepted"),
        (1_200, (0, 1, 2, 3), "accepted"),  # the coordinator may not know it yet
        (6_000, (), "accepted"),
        (6_000, (0, 1, 2, 3), "refused"),
    ],
)
def test_a_description_leaves_out_topics_that_are_gone(at: int, numbers: tuple[int, ...], outcome: str) -> None:
    """M-DESC-01."""
    wire = Wire()
    wire.beat(1_000, "a", 0, 2, parts(0, 1, 2, 3))
    administers(wire, 1_100, 20, {"topics": [{"name": "t"}]}, {"responses": [{"name": "t", "error_code": 0}]})
    if at > 5_000:
        wire.beat(at - 100, "a", 2, 2)
    describe(wire, at, *numbers)
    assert wire.verdict().outcome == outcome


def administers(wire: Wire, at: int, key: int, asked: Any, answer: Any = None) -> None:
    about: dict[str, Any] = {"connection": 90, "correlation_id": at, "api_key": key, "api_version": 4}
    wire.lines.append(SentLine(at_ms=at, body=asked, **about))
    if answer is not None:
        wire.lines.append(ReceivedLine(at_ms=at, body=answer, **about))


@pytest.mark.parametrize(("asked", "outcome"), [(True, "accepted"), (False, "refused")])
def test_a_topic_may_have_grown_before_its_creation_was_answered(asked: bool, outcome: str) -> None:
    """INV-KIP-05."""
    wire = Wire()
    created = wire.lines.pop()
    if asked:
        administers(wire, 0, 37, {"topics": [{"name": "t", "count": 5}]})
    wire.lines.append(created)
    wire.beat(1_000, "a", 0, 2, parts(0, 1, 2, 3, 4))
    assert wire.verdict().outcome == outcome


def test_a_recreated_topic_has_its_new_number_of_partitions() -> None:
    """No more of them are assigned (A-PROP-01)."""
    wire = Wire()
    administers(wire, 100, 20, {"topics": [{"name": "t"}]}, {"responses": [{"name": "t", "error_code": 0}]})
    row = {"name": "t", "topic_id": str(UUID(int=8)), "error_code": 0}
    administers(wire, 200, 19, {"topics": [{"name": "t", "num_partitions": 2}]}, {"topics": [row]})
    wire.beat(10_000, "a", 0, 2, (TopicPartitions(UUID(int=8).bytes, (0, 1)),))
    for at in range(12_000, 60_000, 4_000):
        wire.beat(at, "a", 2, 2)
    assert wire.accepted()


@pytest.mark.parametrize(("instance", "outcome"), [("i", "accepted"), (None, "refused")])
def test_a_join_under_way_may_downgrade_the_group(instance: str | None, outcome: str) -> None:
    """If it is that of the last KIP-848 member (X-DOWN-20)."""
    wire = Wire()
    wire.beat(1_000, "a", 0, 1, (), instance_id=instance, subscribed_topic_names=())
    body = m.JoinGroupRequest(
        "g",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=5_000,
        member_id="a",
        group_instance_id=instance,
        protocol_type="consumer",
        protocols=(m.Protocol("range", encode_subscription(Subscription(()), 3)),),
    )
    wire.asked += 1
    wire.send(1_100, 50, 11, 9, body)
    wire.beat(1_200, "b", 1, 0, error=E.GROUP_ID_NOT_FOUND)
    assert wire.verdict().outcome == outcome


@pytest.mark.parametrize(("enabled", "outcome"), [(False, "accepted"), (True, "refused")])
def test_nothing_is_described_where_the_protocol_is_off(enabled: bool, outcome: str) -> None:
    """G-CFG-29."""
    wire = Wire(settings=replace(SETTINGS, consumer_protocol_enabled=enabled))
    row = DescribedConsumerGroup(E.UNSUPPORTED_VERSION, group_id="g")
    answer = ConsumerGroupDescribeResponse((row,))
    wire.exchange(1_000, 9, 69, 1, ConsumerGroupDescribeRequest(("g",)), answer)
    wire.exchange(
        1_100,
        9,
        12,
        4,
        m.HeartbeatRequest("g", generation_id=1, member_id="m"),
        m.HeartbeatResponse(E.UNKNOWN_MEMBER_ID),
    )
    assert wire.verdict().outcome == outcome


@pytest.mark.parametrize(
    ("error", "outcome"), [(E.GROUP_AUTHORIZATION_FAILED, "accepted"), (E.NON_EMPTY_GROUP, "refused")]
)
def test_a_deletion_may_be_denied(error: E, outcome: str) -> None:
    """In its row of the answer (C-ADM-09)."""
    wire = Wire()
    answer = m.DeleteGroupsResponse((m.DeletedGroup("g", error),))
    wire.exchange(1_000, 9, 42, 2, m.DeleteGroupsRequest(("g",)), answer)
    assert wire.verdict().outcome == outcome


@pytest.mark.parametrize(("gone_at", "outcome"), [(3_400, "refused"), (3_600, "accepted")])
def test_a_heartbeat_under_way_may_have_set_the_time_to_revoke(gone_at: int, outcome: str) -> None:
    """Its answer has not arrived yet (M-TMR-02)."""
    wire = Wire()
    wire.beat(1_000, "a", 0, 2, parts(0, 1, 2, 3), rebalance_timeout_ms=500)
    wire.beat(2_500, "b", 0, 3, ())
    waits = wire.ask(3_000, "a", 2)
    gone = wire.ask(gone_at, "xa", 2)  # another connection of the same member
    wire.lines[-1] = wire.lines[-1].model_copy(
        update={"body": {**wire.lines[-1].body, "member_id": "a"}, "connection": 40}
    )
    wire.respond(gone_at + 5, (gone[0], 40, "a"), 0, error=E.UNKNOWN_MEMBER_ID)
    wire.respond(gone_at + 10, waits, 2, parts(0, 1))
    assert wire.verdict().outcome == outcome


@pytest.mark.parametrize(("late_ms", "outcome"), [(5_000, "refused"), (7_000, "accepted")])
def test_a_member_whose_answer_is_later_than_its_session_may_own_nothing(late_ms: int, outcome: str) -> None:
    """Another member may have got its partitions meanwhile (INV-KIP-01). A session is 6 s here."""
    wire = Wire()
    late = wire.ask(1_000, "a", 0)
    wire.beat(1_000 + late_ms - 100, "b", 0, 4, parts(0, 1, 2, 3))
    wire.respond(1_000 + late_ms, late, 2, parts(0, 1, 2, 3))
    assert wire.verdict().outcome == outcome


@pytest.mark.parametrize(("left_at", "outcome"), [(1_150, "accepted"), (1_250, "refused")])
def test_a_group_that_was_full_has_room_if_a_member_left_meanwhile(left_at: int, outcome: str) -> None:
    """M-VAL-25."""
    wire = Wire(settings=SMALL)
    wire.beat(1_000, "a", 0, 2, parts(0, 1, 2, 3))
    wire.beat(1_050, "b", 0, 2, ())
    joins = wire.ask(1_100, "c", 0)
    if left_at < 1_200:
        wire.beat(left_at, "b", -1, -1)
    wire.respond(1_200, joins, 3, ())
    assert wire.verdict().outcome == outcome


@pytest.mark.parametrize("overlaps", [True, False])
def test_an_instance_id_that_may_be_given_up_is_unknown(overlaps: bool) -> None:
    """A join under another instance id takes the first one from its member (M-STATIC-01, M-STATIC-04)."""
    wire = Wire(profile=KAFKA_4_4)
    wire.beat(1_000, "a", 0, 1, parts(0, 1, 2, 3), instance_id="one")
    leaves = wire.ask(2_000, "a", -1, instance_id="one")
    if overlaps:
        number, _, _ = wire.ask(2_001, "a", 0, instance_id="two")
        wire.lines[-1] = wire.lines[-1].model_copy(update={"connection": 1})
    wire.respond(2_010, leaves, 0, error=E.UNKNOWN_MEMBER_ID)
    if overlaps:
        wire.respond(2_011, (number, 1, "a"), 1, parts(0, 1, 2, 3))
    assert (wire.verdict().outcome == "accepted") is overlaps
