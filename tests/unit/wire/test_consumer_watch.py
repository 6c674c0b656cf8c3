"""Certain and uncertain knowledge of the checker about groups with the consumer protocol."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from fencepost.protocol.consumer_messages import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    DescribedConsumerGroup,
    TopicPartitions,
)
from fencepost.protocol.errors import ErrorCode as E
from fencepost.protocol.messages import (
    DeletedGroup,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)
from fencepost.protocol.profile import Profile
from fencepost.protocol.profiles import INTENDED, KAFKA_4_0, KAFKA_4_3, KAFKA_4_4
from fencepost_conformance.traces.lines import DisconnectedLine, ReceivedLine, SentLine

from .written import SETTINGS, Wire, parts

OTHER = (TopicPartitions(UUID(int=8).bytes, (0,)),)


def other_topic(at: int) -> list[Any]:
    """Create topic u with one partition."""
    about: dict[str, Any] = {"connection": 2, "correlation_id": 1, "api_key": 19, "api_version": 7}
    asked = SentLine(at_ms=at, body={"topics": [{"name": "u", "num_partitions": 1}]}, **about)
    made = {"name": "u", "topic_id": str(UUID(int=8)), "error_code": 0}
    return [asked, ReceivedLine(at_ms=at, body={"topics": [made]}, **about)]


def shared() -> Wire:
    """Member a owns all partitions, b has joined, and a was asked to revoke 2 and 3."""
    wire = Wire()
    wire.beat(1_000, "a", 0, 2, parts(0, 1, 2, 3))
    wire.beat(3_000, "b", 0, 3, ())
    wire.beat(3_500, "a", 2, 2, parts(0, 1))
    return wire


def test_a_partition_moves_when_it_was_revoked() -> None:
    wire = shared()
    wire.beat(3_600, "a", 2, 3, topic_partitions=parts(0, 1))
    wire.beat(3_700, "b", 3, 3, parts(2, 3))
    assert wire.accepted()


def test_not_before() -> None:
    wire = shared()
    wire.beat(3_700, "b", 3, 3, parts(2, 3))
    refusal = wire.refusal()
    assert "INV-KIP-01" in refusal.rules
    assert refusal.allowed == ("not t-2, which 'a' holds",)


def test_while_a_revocation_may_be_pending_nothing_is_certain() -> None:
    wire = shared()
    giving = wire.ask(3_600, "a", 2, topic_partitions=parts(0, 1))
    wire.beat(3_700, "b", 3, 3, parts(2, 3))
    wire.respond(3_800, giving, 3)
    assert wire.accepted()


def test_owned_partitions_hold_the_epoch_back() -> None:
    wire = shared()
    wire.beat(3_600, "a", 2, 3, topic_partitions=parts(0, 1, 2))
    assert "M-REC-03" in wire.refusal().rules


def test_a_confirmed_revocation_advances_the_epoch() -> None:
    wire = shared()
    wire.beat(3_600, "a", 2, 2, topic_partitions=parts(0, 1))
    assert "M-REC-04" in wire.refusal().rules


@pytest.mark.parametrize(("after", "refused"), [(3_000, True), (5_900, True), (6_300, False)])
def test_a_member_that_is_silent_keeps_its_partitions_for_its_session(after: int, refused: bool) -> None:
    wire = Wire()
    wire.beat(1_000, "a", 0, 2, parts(0, 1, 2, 3))
    wire.beat(1_500, "b", 0, 2, ())  # no target yet: the interval (M-TGT-09)
    wire.beat(2_600, "b", 2, 3)
    wire.beat(1_000 + after - 50, "b", 3, 3)
    wire.beat(1_000 + after, "b", 3, 3 if after < 6_000 else 4, parts(0, 1, 2, 3))
    if refused:
        assert "INV-KIP-01" in wire.refusal().rules
    else:
        assert wire.accepted()


@pytest.mark.parametrize(("silence", "refused"), [(5_000, True), (6_500, False)])
def test_a_member_is_forgotten_after_its_session_and_not_before(silence: int, refused: bool) -> None:
    wire = Wire()
    wire.beat(1_000, "a", 0, 2, parts(0, 1, 2, 3))
    wire.beat(1_000 + silence, "a", 2, 0, error=E.UNKNOWN_MEMBER_ID)
    assert (wire.refusal().allowed == ("NONE",)) if refused else wire.accepted()


def test_a_session_does_not_last_forever() -> None:
    wire = Wire()
    wire.beat(1_000, "a", 0, 2, parts(0, 1, 2, 3))
    wire.beat(11_000, "a", 2, 2)
    assert "M-TMR-01" in wire.refusal().rules


def test_the_time_to_revoke_does_not_last_forever() -> None:
    wire = shared()
    for at in range(4_000, 11_500, 500):
        wire.beat(at, "a", 2, 2)
        wire.beat(at + 100, "b", 3, 3)
    assert wire.accepted()
    wire.beat(12_000, "a", 2, 2)
    assert "M-TMR-02" in wire.refusal().rules


def test_a_change_reaches_the_others_after_the_interval() -> None:
    wire = Wire()
    wire.beat(1_000, "a", 0, 2, parts(0, 1, 2, 3))
    wire.beat(1_500, "b", 0, 2, ())
    wire.beat(2_000, "a", 2, 2)  # the interval since the last target is not over
    assert wire.accepted()
    wire.beat(3_000, "a", 2, 2)
    assert "M-TGT-01" in wire.refusal().rules


def test_a_lost_answer_leaves_its_content_open() -> None:
    wire = shared()
    wire.ask(3_600, "a", 2, topic_partitions=parts(0, 1))
    wire.lines.append(DisconnectedLine(at_ms=3_650, connection=ord("a"), by="client"))
    wire.beat(3_700, "b", 3, 3, parts(2, 3))
    wire.beat(3_800, "a", 2, 0, error=E.FENCED_MEMBER_EPOCH)
    assert wire.accepted()


def test_an_older_epoch_passes_once_with_the_partitions_of_that_time() -> None:
    wire = shared()
    wire.beat(3_600, "a", 2, 3, topic_partitions=parts(0, 1))
    wire.beat(3_700, "a", 2, 3, topic_partitions=parts(0, 1))  # the answer may have been lost (M-FENCE-04)
    assert wire.accepted()
    wire.beat(3_800, "a", 1, 3, topic_partitions=parts(0, 1))
    assert wire.refusal().allowed == ("FENCED_MEMBER_EPOCH",)


def test_a_joiner_waits_for_an_instance_id_that_is_in_use() -> None:
    wire = Wire()
    wire.beat(1_000, "a", 0, 2, parts(0, 1, 2, 3), instance_id="i")
    wire.beat(2_000, "b", 0, 0, error=E.UNRELEASED_INSTANCE_ID, instance_id="i")
    wire.beat(2_500, "a", -2, -2, instance_id="i")
    wire.beat(3_000, "b", 0, 2, parts(0, 1, 2, 3), instance_id="i")
    assert wire.accepted()
    wire.beat(3_500, "c", 0, 2, parts(0, 1, 2, 3), instance_id="i")
    assert "M-STATIC-02" in wire.refusal().rules


def test_a_static_member_that_is_away_keeps_its_partitions() -> None:
    wire = Wire()
    wire.beat(1_000, "a", 0, 2, parts(0, 1, 2, 3), instance_id="i")
    wire.beat(2_500, "a", -2, -2, instance_id="i")
    wire.beat(3_000, "b", 0, 3, parts(0))
    assert "INV-KIP-01" in wire.refusal().rules


@pytest.mark.parametrize("held", [(0, 1, 2), (0, 1, 2, 3)])
def test_a_group_at_rest_holds_everything(held: tuple[int, ...]) -> None:
    wire = Wire()
    wire.beat(5_000, "a", 0, 2, parts(*held))
    for at in (5_500, 6_000, 6_500):
        wire.beat(at, "a", 2, 2)
    assert ("A-PROP-01" in wire.refusal().rules) if len(held) < 4 else wire.accepted()


def test_partitions_are_shared_evenly() -> None:
    wire = Wire()
    wire.beat(5_000, "a", 0, 2, parts(0, 1, 2, 3))
    wire.beat(6_500, "b", 0, 3, ())
    wire.beat(6_600, "a", 2, 2, parts(0, 1, 2))
    wire.beat(6_700, "a", 2, 3, topic_partitions=parts(0, 1, 2))
    wire.beat(6_800, "b", 3, 3, parts(3))
    wire.beat(7_500, "a", 3, 3)
    wire.beat(8_000, "b", 3, 3)
    assert wire.accepted()
    wire.beat(8_500, "a", 3, 3)
    assert "A-PROP-04" in wire.refusal().rules


def test_another_assignor_need_not() -> None:
    wire = Wire(settings=replace(SETTINGS, group_consumer_assignors=("range", "uniform")))
    wire.beat(5_000, "a", 0, 2, parts(0, 1, 2, 3))
    wire.beat(6_500, "b", 0, 3, ())
    wire.beat(6_600, "a", 2, 2, parts(0, 1, 2))
    wire.beat(6_700, "a", 2, 3, topic_partitions=parts(0, 1, 2))
    wire.beat(6_800, "b", 3, 3, parts(3))
    for at in (8_000, 8_500):
        wire.beat(at, "a", 3, 3)
        wire.beat(at + 100, "b", 3, 3)
    assert wire.accepted()


def test_a_group_that_was_alive_before_is_not_judged() -> None:
    wire = Wire()
    wire.beat(1_000, "a", 5, 5)
    assert wire.verdict().outcome == "undecided"


def test_an_id_that_the_coordinator_made_is_known() -> None:
    """ConsumerGroupHeartbeat v0, of Kafka 3.7 to 3.9, may have no id (M-VAL-09)."""
    wire = Wire()
    joins = ConsumerGroupHeartbeatRequest(
        "g",
        member_id="",
        member_epoch=0,
        rebalance_timeout_ms=5_000,
        subscribed_topic_names=("t",),
        topic_partitions=(),
    )
    answer = ConsumerGroupHeartbeatResponse(
        E.NONE, member_id="made", member_epoch=2, heartbeat_interval_ms=500, assignment=parts(0, 1, 2, 3)
    )
    wire.exchange(1_000, ord("e"), 68, 0, joins, answer)
    wire.beat(1_500, "made", 2, 2)
    assert wire.accepted()
    wire.beat(2_000, "made", 2, 0, error=E.UNKNOWN_MEMBER_ID)
    assert "M-FENCE-01" in wire.refusal().rules


def test_a_request_about_a_group_of_another_protocol_gets_an_error() -> None:
    """Administrators ask for every group, to find its kind (M-DESC-01)."""
    wire = Wire()
    asks = ConsumerGroupDescribeRequest(("g",))
    unknown = DescribedConsumerGroup(E.GROUP_ID_NOT_FOUND, group_id="g", error_message="Group g not found.")
    wire.exchange(1_000, 1, 69, 1, asks, ConsumerGroupDescribeResponse((unknown,)))
    assert wire.accepted()
    known = DescribedConsumerGroup(E.NONE, group_id="g", group_state="Empty", group_epoch=1, assignment_epoch=1)
    wire.exchange(1_100, 1, 69, 1, asks, ConsumerGroupDescribeResponse((known,)))
    refusal = wire.refusal()
    assert refusal.rules == ("M-DESC-01",)
    assert "GROUP_ID_NOT_FOUND" in refusal.allowed[0]


def test_a_group_may_be_deleted_while_a_client_waits_for_an_answer() -> None:
    wire = Wire()
    wire.beat(1_000, "a", 0, 2, parts(0, 1, 2, 3))
    leaves = wire.ask(2_000, "a", -1)
    gone = DeleteGroupsResponse((DeletedGroup("g", E.NONE),))
    wire.exchange(2_001, 1, 42, 2, DeleteGroupsRequest(("g",)), gone)
    wire.respond(2_010, leaves, -1)
    assert wire.accepted()


def late_join(profile: Profile) -> Wire:
    """Member a must revoke 2 and 3; a join under its id is answered as if it had no content."""
    wire = shared()
    wire.profile = profile
    wire.beat(3_600, "a", 0, 2, parts(0, 1))
    return wire


def test_only_kafka_believes_the_join_of_a_member_that_is_present() -> None:
    """The join claims no partition, and may be a late copy (M-FENCE-07)."""
    assert late_join(INTENDED).accepted()
    assert "M-REC-22" in late_join(KAFKA_4_3).refusal().rules


def test_a_member_whose_rebalance_timeout_may_be_over_may_join_as_a_new_one() -> None:
    """Then its join is a new one (M-TMR-02, M-REC-22); before that it must still revoke (M-FENCE-07)."""
    for joins_at, accepted in ((3_600, False), (8_600, True)):
        wire = Wire(profile=INTENDED)
        wire.beat(1_000, "a", 0, 2, parts(0, 1, 2, 3))
        wire.beat(3_000, "b", 0, 3, ())
        wire.beat(3_500, "a", 2, 2, parts(0, 1))
        for at in range(4_000, joins_at, 1_000):
            wire.beat(at, "a", 2, 2)
        wire.beat(joins_at, "a", 0, 4, parts(0, 1))
        assert ("M-REC-03" in wire.refusal().rules) if not accepted else wire.accepted()


def test_a_partition_that_was_pruned_twice_may_return_at_the_same_epoch() -> None:
    """Its target has the subscribed partitions once the regular expression is resolved (M-REC-21, M-REC-25)."""
    wire = Wire()
    wire.beat(1_000, "a", 0, 2, parts(0, 1, 2, 3))
    wire.lines += other_topic(1_100)
    wire.beat(2_500, "a", 2, 3, (*parts(0, 1, 2, 3), *OTHER), subscribed_topic_names=("t", "u"))
    changes: dict[str, Any] = {"rebalance_timeout_ms": 5_000, "topic_partitions": parts(0, 1, 2, 3)}
    wire.beat(2_600, "a", 3, 3, OTHER, subscribed_topic_names=("u",), subscribed_topic_regex="t|u", **changes)
    wire.beat(2_700, "a", 3, 3, (), subscribed_topic_names=(), subscribed_topic_regex="t|u", **changes)
    wire.beat(3_000, "a", 3, 3, (*parts(0, 1, 2, 3), *OTHER), topic_partitions=())
    assert wire.accepted()


@pytest.mark.parametrize(("profile", "taken"), [(INTENDED, True), (KAFKA_4_3, False)])
def test_a_static_member_that_comes_back_under_its_own_id(profile: Profile, taken: bool) -> None:
    """Kafka makes it wait for itself (M-STATIC-02)."""
    wire = Wire(profile=profile)
    wire.beat(1_000, "a", 0, 2, parts(0, 1, 2, 3), instance_id="i")
    wire.beat(2_000, "a", 0, 2, parts(0, 1, 2, 3), instance_id="i")
    if taken:
        assert wire.accepted()
    else:
        assert "M-STATIC-02" in wire.refusal().rules


def test_the_successor_of_a_static_member_that_left_is_believed() -> None:
    """Its predecessor's partitions belong to another member by now, and the regular expression stays (M-REC-24,
    M-STATIC-03)."""
    wire = Wire(profile=INTENDED)
    wire.beat(1_000, "a", 0, 1, (), instance_id="i", subscribed_topic_names=("t",), subscribed_topic_regex="t|u")
    wire.lines += other_topic(1_100)
    wire.beat(2_500, "a", 1, 2, (*parts(0, 1, 2, 3), *OTHER), instance_id="i")
    wire.beat(3_600, "b", 0, 3, ())
    wire.beat(3_700, "a", -2, -2, instance_id="i")
    wire.beat(4_000, "c", 0, 3, (*parts(0, 1), *OTHER), instance_id="i")
    assert wire.accepted()
    wire.beat(4_100, "b", 3, 3, parts(1, 2, 3))
    assert wire.refusal().allowed == ("not t-1, which 'c' holds",)


@pytest.mark.parametrize(("profile", "refused"), [(INTENDED, False), (KAFKA_4_3, True)])
def test_a_static_member_may_be_rejected_under_another_instance_id(profile: Profile, refused: bool) -> None:
    """Kafka accepts it, and forgets its previous assignment (M-STATIC-15)."""
    wire = Wire(profile=profile)
    wire.beat(1_000, "a", 0, 2, parts(0, 1, 2, 3), instance_id="i")
    wire.beat(2_000, "b", 0, 3, ())
    wire.beat(2_500, "a", -2, -2, instance_id="i")
    wire.beat(2_600, "b", 0, 0, error=E.UNRELEASED_INSTANCE_ID, instance_id="i")
    if refused:
        assert "M-STATIC-03" in wire.refusal().rules
    else:
        assert wire.accepted()
        wire.beat(2_700, "c", 0, 0, error=E.UNRELEASED_INSTANCE_ID, instance_id="i")
        assert "M-STATIC-03" in wire.refusal().rules


def test_a_group_may_be_deleted_between_a_leave_and_a_join() -> None:
    """The group starts again (M-VAL-22), also for a member that joined before the deletion was answered."""
    wire = Wire()
    wire.beat(1_000, "a", 0, 2, parts(0, 1, 2, 3))
    wire.asked += 1
    asked = wire.asked
    wire.send(2_000, 1, 42, 2, DeleteGroupsRequest(("g",)))
    wire.beat(2_010, "a", -1, -1)
    comes = wire.ask(2_020, "b", 0)
    wire.answer(2_030, 1, 42, 2, asked, DeleteGroupsResponse((DeletedGroup("g", E.NONE),)))
    wire.respond(2_040, comes, 1, ())
    wire.beat(2_500, "b", 1, 2, parts(0, 1, 2, 3))
    assert wire.accepted()


@pytest.mark.parametrize(("profile", "bumps"), [(KAFKA_4_4, True), (KAFKA_4_3, False)])
def test_votes_for_assignors_may_raise_the_epoch(profile: Profile, bumps: bool) -> None:
    """Since 4.4, at every heartbeat while the votes are tied (M-HB-14, M-HB-15)."""
    wire = Wire(profile=profile)
    wire.beat(1_000, "a", 0, 2, parts(0, 1, 2, 3), server_assignor="range")
    for epoch in range(2, 12):
        wire.beat(1_000 * epoch, "a", epoch, epoch + 1)
    verdict = wire.verdict()
    assert verdict.outcome == ("accepted" if bumps else "refused")
    assert bumps or "M-EPOCH-01" in verdict.refusals[0].rules


def test_a_member_that_left_may_have_come_back_at_the_same_time() -> None:
    wire = Wire()
    wire.beat(1_000, "a", 0, 2, parts(0, 1, 2, 3))
    leaves = wire.ask(2_000, "a", -1)
    comes = wire.ask(2_001, "a", 0)
    wire.respond(2_010, comes, 2, parts(0, 1, 2, 3))
    wire.respond(2_011, leaves, -1)
    wire.beat(2_500, "a", 2, 2)
    assert wire.accepted()


def test_a_member_that_gets_an_instance_id_keeps_its_epochs() -> None:
    """M-STATIC-01; M-FENCE-05 for its last epoch."""
    wire = Wire()
    wire.beat(1_000, "a", 0, 1, (), subscribed_topic_names=())
    wire.beat(2_000, "a", 0, 2, parts(0, 1), instance_id="i")
    wire.beat(2_500, "a", 1, 2, topic_partitions=())
    assert wire.accepted()


def test_a_heartbeat_may_be_overtaken_by_the_join_of_its_member() -> None:
    wire = Wire()
    wire.beat(500, "c", 0, 2, parts(0, 1, 2, 3))
    forged = wire.ask(1_000, "a", 7)
    comes = wire.ask(1_001, "a", 0)
    wire.respond(1_010, forged, 0, error=E.FENCED_MEMBER_EPOCH)
    wire.respond(1_011, comes, 2, ())
    assert wire.accepted()
    wire.beat(1_500, "b", 7, 0, error=E.FENCED_MEMBER_EPOCH)
    assert "M-FENCE-01" in wire.refusal().rules


def test_answers_of_requests_that_overlap_come_in_any_order() -> None:
    """Member a, at epoch 3, must revoke two partitions, and stays there until it has (M-REC-03)."""
    wire = Wire()
    wire.beat(0, "a", 0, 2, parts(0, 1, 2, 3))
    wire.beat(100, "b", 0, 3, ())
    first, second = wire.ask(1_500, "a", 2), wire.ask(1_505, "a", 2)
    wire.respond(1_510, second, 3, parts(0, 1, 2, 3))
    wire.respond(1_520, first, 2)  # was handled before the other
    wire.beat(1_600, "a", 3, 3, parts(0, 1))
    wire.beat(1_700, "c", 0, 4, ())
    wire.beat(3_000, "c", 4, 4)
    wire.beat(3_100, "a", 3, 3)
    assert wire.accepted()


@pytest.mark.parametrize("overlap", [True, False])
def test_a_join_may_meet_another_join_of_its_member(*, overlap: bool) -> None:
    """The member did not exist before, and 4.0 fences a member that joins again (M-FENCE-07, V-32)."""
    wire = Wire(profile=KAFKA_4_0)
    refused = wire.ask(100, "a", 0)
    if overlap:
        wire.respond(105, wire.ask(101, "a", 0), 1, parts(0, 1, 2, 3))
    wire.respond(110, refused, 0, error=E.FENCED_MEMBER_EPOCH)
    assert wire.verdict().outcome == ("accepted" if overlap else "refused")


def test_a_join_without_an_instance_id_takes_none_away() -> None:
    """The join that gives b its instance id overlaps one of b without it, and is answered first (M-STATIC-01)."""
    wire = Wire(profile=KAFKA_4_4)
    first = wire.ask(0, "b", 0)
    second = wire.ask(1, "b", 0, instance_id="i")
    wire.respond(200, second, 2, parts(0, 1, 2, 3))
    wire.respond(201, first, 2, parts(0, 1, 2, 3))
    wire.beat(2_000, "b", 0, 0, error=E.UNRELEASED_INSTANCE_ID, instance_id="i")
    assert wire.accepted()
