"""Certain and uncertain knowledge of the checker about classic members of a consumer group."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from fencepost.member.consumer_protocol import Subscription, encode_subscription
from fencepost.protocol import messages as m
from fencepost.protocol.consumer_messages import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedConsumerGroup,
    DescribedConsumerMember,
    NamedTopicPartitions,
)
from fencepost.protocol.errors import ErrorCode as E
from fencepost.protocol.offset_messages import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from fencepost.protocol.partitions import TopicPartition
from fencepost.protocol.profile import Profile
from fencepost.protocol.profiles import INTENDED, KAFKA_4_0, KAFKA_4_3, KAFKA_4_4
from fencepost_conformance.traces.lines import SentLine

from .written import TOPIC, Wire, parts


def mixed(profile: Profile = KAFKA_4_4, at: int = 2_000, instance: str | None = None) -> Wire:
    """Member a, of KIP-848, owns all partitions, and c has joined by the classic protocol, at epoch 3."""
    wire = Wire(profile=profile)
    wire.beat(at - 1_000, "a", 0, 2, parts(0, 1, 2, 3))
    joins(wire, at, "c", join_answer(3, "c"), instance=instance)
    return wire


HAVE = (("a", (0, 1)), ("c", (2, 3)))


def described(name: str, epoch: int, *numbers: int) -> DescribedConsumerMember:
    return DescribedConsumerMember(
        name,
        instance_id=None,
        rack_id=None,
        member_epoch=epoch,
        client_id="",
        client_host="",
        subscribed_topic_names=("t",),
        subscribed_topic_regex=None,
        assignment=(NamedTopicPartitions(TOPIC.bytes, "t", numbers),),
        target_assignment=(),
    )


def join_answer(generation: int, member: str = "", error: E = E.NONE) -> m.JoinGroupResponse:
    if error is not E.NONE:
        return m.JoinGroupResponse(error, member_id=member)
    return m.JoinGroupResponse(
        E.NONE, generation_id=generation, protocol_type="consumer", protocol_name="range", member_id=member
    )


def joins(  # noqa: PLR0917
    wire: Wire,
    at: int,
    member: str,
    answer: m.JoinGroupResponse,
    generation: int = -1,
    owned: tuple[int, ...] = (),
    instance: str | None = None,
    version: int = 9,
) -> None:
    claims = tuple(TopicPartition("t", number) for number in owned)
    said = encode_subscription(Subscription(("t",), None, claims, generation), 3)
    body = m.JoinGroupRequest(
        "g",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=5_000,
        member_id=member,
        group_instance_id=instance,
        protocol_type="consumer",
        protocols=(m.Protocol("range", said),),
    )
    wire.exchange(at, ord("c"), 11, version, body, answer)


def beats(  # noqa: PLR0917
    wire: Wire, at: int, member: str, generation: int, error: E, instance: str | None = None
) -> None:
    body = m.HeartbeatRequest("g", generation_id=generation, member_id=member, group_instance_id=instance)
    wire.exchange(at, 7, 12, 4, body, m.HeartbeatResponse(error))


def leaves(wire: Wire, at: int, *rows: tuple[str, E]) -> None:
    asked = m.LeaveGroupRequest("g", tuple(m.LeaveGroupMember(name) for name, _ in rows))
    answers = tuple(m.LeaveGroupMemberResponse(name, error_code=error) for name, error in rows)
    wire.exchange(at, 8, 13, 5, asked, m.LeaveGroupResponse(E.NONE, answers))


def test_each_entry_of_a_leave_is_judged_by_itself() -> None:
    """X-LEAVE-01."""
    wire = mixed()
    wire.beat(2_300, "b", 0, 3, ())
    leaves(wire, 2_500, ("nobody", E.UNKNOWN_MEMBER_ID), ("b", E.NONE))
    assert wire.accepted()
    leaves(wire, 2_600, ("nobody", E.UNKNOWN_MEMBER_ID), ("c", E.UNKNOWN_MEMBER_ID))
    assert wire.refusal().rules == ("X-LEAVE-01",)


@pytest.mark.parametrize(
    ("profile", "generation", "owned", "refused"),
    [
        (INTENDED, 2, (), True),  # the previous epoch
        (INTENDED, -1, (0,), True),  # no generation, and a claim that is not its own
        (INTENDED, 3, (), False),
        (INTENDED, -1, (), False),
        (KAFKA_4_4, 2, (), False),
        (KAFKA_4_4, -1, (0,), False),
    ],
)
def test_a_member_at_an_older_epoch_may_be_rejected_under_intended(
    profile: Profile, generation: int, owned: tuple[int, ...], refused: bool
) -> None:
    """Kafka accepts the claim without a check (X-JOIN-06, X-JOIN-12)."""
    wire = mixed(profile)
    joins(wire, 2_500, "c", join_answer(-1, error=E.UNKNOWN_MEMBER_ID), generation, owned)
    if refused:
        assert wire.accepted()
    else:
        assert "X-JOIN-06" in wire.refusal().rules


def test_a_member_that_never_existed_is_rejected() -> None:
    wire = mixed(INTENDED)
    joins(wire, 2_500, "d", join_answer(3, "d"), generation=3)
    assert wire.refusal().rules == ("X-JOIN-12",)


def test_another_instance_id_shows_nothing_about_the_member() -> None:
    """The instance id decides, if there is one (X-HB-01)."""
    wire = mixed()
    beats(wire, 2_500, "c", 3, E.UNKNOWN_MEMBER_ID, instance="nobody")
    beats(wire, 2_600, "c", 3, E.NONE)
    assert wire.accepted()
    beats(wire, 2_700, "c", 3, E.UNKNOWN_MEMBER_ID)
    assert "X-HB-01" in wire.refusal().rules


def test_a_classic_heartbeat_of_a_kip_848_member_shows_nothing_about_it() -> None:
    """Here another member may be taking its instance id (X-SYNC-02)."""
    wire = mixed()
    wire.beat(2_300, "b", 0, 3, (), instance_id="i")
    taking = wire.ask(2_400, "d", 0, instance_id="i")
    beats(wire, 2_500, "b", 3, E.UNKNOWN_MEMBER_ID)
    wire.respond(2_550, taking, 0, error=E.UNRELEASED_INSTANCE_ID)
    wire.beat(2_600, "e", 0, 0, error=E.UNRELEASED_INSTANCE_ID, instance_id="i")
    assert wire.accepted()


def test_a_member_that_waited_in_a_converted_group_is_in_it() -> None:
    """The member also has its instance id (X-UP-03)."""
    wire = Wire(profile=KAFKA_4_4)
    parked = wire.parks(1_000, "i")
    wire.beat(1_100, "a", 0, 2, parts(0, 1, 2, 3))
    wire.answer(1_200, 5, 11, 9, parked, join_answer(-1, "made", E.REBALANCE_IN_PROGRESS))
    wire.beat(1_300, "b", 7, 0, error=E.FENCED_INSTANCE_ID, instance_id="i")
    beats(wire, 1_400, "made", 0, E.REBALANCE_IN_PROGRESS)
    assert wire.accepted()
    wire.beat(1_500, "b", 7, 0, error=E.FENCED_INSTANCE_ID, instance_id="j")
    assert "M-STATIC-05" in wire.refusal().rules


def test_of_two_that_take_one_instance_at_the_same_time_either_may_be_the_last() -> None:
    """The answer that arrives last need not be the one that was sent last (M-STATIC-03, X-JOIN-07)."""
    wire = Wire(profile=KAFKA_4_4)
    waits = wire.parks(1_000, "i")
    wire.beat(1_100, "b", 0, 2, parts(0, 1, 2, 3), instance_id="i")
    answer = m.JoinGroupResponse(E.NONE, generation_id=1, protocol_name="range", leader="made", member_id="made")
    wire.answer(1_200, 5, 11, 9, waits, answer)
    wire.beat(1_300, "b", 2, 2, instance_id="i")
    wire.beat(1_400, "b", -2, -2, instance_id="i")
    assert wire.accepted()


def test_a_member_that_was_refused_an_instance_keeps_its_place() -> None:
    wire = mixed()
    wire.beat(2_300, "d", 0, 0, error=E.INVALID_REQUEST, instance_id="i", topic_partitions=None)
    joins(wire, 2_400, "d", join_answer(3, "d"))
    wire.beat(2_500, "b", 0, 3, (), instance_id="i")
    beats(wire, 2_600, "d", 3, E.NONE)
    wire.beat(2_700, "e", 0, 0, error=E.UNRELEASED_INSTANCE_ID, instance_id="i")
    assert wire.accepted()
    beats(wire, 2_800, "d", 3, E.UNKNOWN_MEMBER_ID)
    assert "X-HB-01" in wire.refusal().rules


def test_a_member_that_waited_with_an_instance_may_have_taken_a_place() -> None:
    wire = Wire(profile=KAFKA_4_4)
    wire.beat(1_000, "a", 0, 2, parts(0, 1, 2, 3), instance_id="i")
    waits = wire.parks(1_500, "i")
    wire.answer(1_600, 5, 11, 9, waits, join_answer(-1, "made", E.REBALANCE_IN_PROGRESS))
    wire.beat(1_700, "a", 2, 0, error=E.UNKNOWN_MEMBER_ID)
    assert wire.accepted()


def test_the_partitions_of_a_member_that_changes_its_protocol_are_unknown() -> None:
    """A JoinGroup answer does not contain them (X-JOIN-15)."""
    wire = mixed()
    wire.beat(2_100, "a", 2, 2, parts(0, 1))
    wire.beat(2_200, "a", 2, 3, topic_partitions=parts(0, 1))
    joins(wire, 2_300, "c", join_answer(3, "c"))
    wire.beat(2_400, "c", 3, 3)
    shown = [described(name, 3, *numbers) for name, numbers in HAVE]
    group = DescribedConsumerGroup(E.NONE, group_id="g", group_state="Stable", group_epoch=3, assignment_epoch=3)
    answer = ConsumerGroupDescribeResponse((replace(group, members=tuple(shown)),))
    wire.exchange(2_500, 9, 69, 1, ConsumerGroupDescribeRequest(("g",)), answer)
    assert wire.accepted()


@pytest.mark.parametrize(
    ("epochs", "members", "rule", "shown"),
    [
        ((2, 3), (described("a", 2, 0, 1, 2, 3),), "INV-KIP-03", "assignment epoch 3 of group epoch 2"),
        ((3, 2), (described("a", 3, 0, 1, 2, 3),), "INV-KIP-03", "a at 3, the assignment at 2"),
        ((2, 2), (described("a", 2, 0, 1), described("b", 2, 1, 2)), "INV-KIP-01", "a and b both hold partition t-1"),
    ],
)
def test_a_description_keeps_promises(
    epochs: tuple[int, int], members: tuple[DescribedConsumerMember, ...], rule: str, shown: str
) -> None:
    wire = Wire(profile=KAFKA_4_4)
    wire.beat(1_000, "a", 0, 2, parts(0, 1, 2, 3))
    group = DescribedConsumerGroup(
        E.NONE, group_id="g", group_state="Stable", group_epoch=epochs[0], assignment_epoch=epochs[1], members=members
    )
    asked = ConsumerGroupDescribeRequest(("g",))
    wire.exchange(2_000, 9, 69, 1, asked, ConsumerGroupDescribeResponse((group,)))
    refusal = wire.refusal()
    assert refusal.rules == (rule,)
    assert shown in refusal.sentence, refusal.sentence


def test_a_timer_of_the_other_protocol_may_still_end_a_member() -> None:
    """It has not synced in time, and uses KIP-848 meanwhile (X-TMR-03)."""
    for gone_at, accepted in ((5_000, False), (8_000, True)):
        wire = mixed()
        wire.beat(2_500, "c", 0, 3, ())
        wire.beat(4_500, "c", 3, 3)
        wire.beat(gone_at, "c", 3, 0, error=E.UNKNOWN_MEMBER_ID)
        assert wire.accepted() if accepted else "M-FENCE-01" in wire.refusal().rules


@pytest.mark.parametrize(("again_ms", "outcome"), [(6_000, "refused"), (7_500, "accepted")])
def test_a_timer_from_before_a_downgrade_may_end_a_member_after_an_upgrade(again_ms: int, outcome: str) -> None:
    """Member c must sync by 7,000 ms in the first group, and has joined the classic group since (X-DOWN-33)."""
    wire = mixed()
    wire.beat(2_500, "a", -1, -1)
    joins(wire, 3_000, "c", replace(join_answer(4, "c"), leader="c"))
    wire.beat(3_500, "c", 0, 5, parts(0, 1, 2, 3), instance_id="i")
    joins(wire, again_ms, "c", join_answer(-1, "c", E.UNKNOWN_MEMBER_ID))
    assert wire.verdict().outcome == outcome


def test_a_group_that_is_downgraded_and_upgraded_has_other_epochs() -> None:
    """A remaining member continues with the generation of the classic group (X-DOWN-03, X-UP-05)."""
    wire = mixed()
    wire.beat(2_500, "a", -1, -1)
    wire.beat(3_000, "c", 4, 4, parts(0, 1, 2, 3))
    assert wire.accepted()


@pytest.mark.parametrize(("profile", "fenced"), [(KAFKA_4_0, True), (KAFKA_4_3, False)])
def test_a_known_member_that_comes_at_epoch_zero(profile: Profile, fenced: bool) -> None:
    """Up to 4.1 it is fenced (V-32)."""
    wire = Wire(profile=profile)
    wire.beat(1_000, "a", 0, 1 + (not fenced), parts(0, 1, 2, 3))
    wire.beat(2_000, "b", 0, 2 + (not fenced), ())
    wire.beat(3_000, "b", 2 + (not fenced), 2 + (not fenced))
    wire.beat(4_000, "b", 0, 0, error=E.FENCED_MEMBER_EPOCH)
    assert wire.accepted() if fenced else "M-FENCE-07" in wire.refusal().rules


def test_before_4_2_a_confirmed_revocation_moves_a_member_on_by_one() -> None:
    """Partitions to revoke are not described (V-52, V-16)."""
    found: list[Any] = []
    for profile in (KAFKA_4_0, KAFKA_4_4):
        wire = Wire(profile=profile)
        wire.beat(1_000, "a", 0, 1 if profile is KAFKA_4_0 else 2, parts(0, 1, 2, 3))
        own = 1 if profile is KAFKA_4_0 else 2
        wire.beat(3_000, "b", 0, own + 1, ())
        wire.beat(3_500, "a", own, own, parts(0, 1))
        wire.beat(5_000, "c", 0, own + 2, ())
        wire.beat(5_500, "a", own, own + 1, parts(0), topic_partitions=parts(0, 1))
        found.append(wire.verdict().outcome)
    assert found == ["accepted", "refused"]


@pytest.mark.parametrize(("answered_ms", "outcome"), [(8_050, "refused"), (8_150, "accepted")])
def test_a_session_that_ends_before_a_join_is_written_may_end_the_member(answered_ms: int, outcome: str) -> None:
    """The timers of a member run until its join is replicated (X-JOIN-20)."""
    wire = mixed()
    wire.beat(2_100, "b", 0, 3, ())
    wire.beat(6_000, "a", 2, 2, parts(0, 1))
    wire.beat(7_000, "a", 2, 4, topic_partitions=parts(0, 1))
    joins(wire, 8_000, "b", join_answer(4, "b"))
    wire.lines[-1] = wire.lines[-1].model_copy(update={"at_ms": answered_ms})
    beats(wire, 8_200, "b", 4, E.UNKNOWN_MEMBER_ID)
    assert wire.verdict().outcome == outcome


@pytest.mark.parametrize(("answered_ms", "outcome"), [(6_950, "refused"), (7_050, "accepted")])
def test_a_time_to_sync_that_ends_before_a_sync_is_answered_may_end_the_member(answered_ms: int, outcome: str) -> None:
    """The timer runs until earlier writes are replicated (X-SYNC-06)."""
    wire = mixed()
    wire.beat(5_000, "a", 2, 2, parts(0, 1))
    wire.beat(6_000, "a", 2, 3, topic_partitions=parts(0, 1))
    body = m.SyncGroupRequest("g", generation_id=3, member_id="c")
    wire.exchange(6_900, 7, 14, 4, body, m.SyncGroupResponse(E.NONE))
    wire.lines[-1] = wire.lines[-1].model_copy(update={"at_ms": answered_ms})
    beats(wire, 7_100, "c", 3, E.UNKNOWN_MEMBER_ID)
    assert wire.verdict().outcome == outcome


@pytest.mark.parametrize(("again_ms", "outcome"), [(8_900, "refused"), (9_100, "accepted")])
def test_a_sync_that_has_to_join_again_arms_the_join_timer(again_ms: int, outcome: str) -> None:
    """The timer has the rebalance timeout of c, 5 s. Its first SyncGroup stopped the sync timer (X-SYNC-05)."""
    wire = mixed()
    for at_ms, error in ((2_100, E.NONE), (4_000, E.REBALANCE_IN_PROGRESS), (again_ms, E.UNKNOWN_MEMBER_ID)):
        if error is E.REBALANCE_IN_PROGRESS:
            wire.beat(3_900, "b", 0, 4, ())
        if error is E.UNKNOWN_MEMBER_ID:
            wire.beat(again_ms - 100, "b", 4, 4)
        body = m.SyncGroupRequest("g", generation_id=3, member_id="c")
        wire.exchange(at_ms, 7, 14, 4, body, m.SyncGroupResponse(error))
    assert wire.verdict().outcome == outcome


@pytest.mark.parametrize(("again_ms", "outcome"), [(11_500, "refused"), (12_500, "accepted")])
def test_a_join_of_version_0_has_its_session_timeout_to_sync(again_ms: int, outcome: str) -> None:
    """Member c joined at 2,000 ms with a session timeout of 10 s, and uses KIP-848 when its sync timer fires
    (G-WIRE-01)."""
    wire = Wire(profile=KAFKA_4_4)
    wire.beat(1_000, "a", 0, 2, parts(0, 1, 2, 3))
    joins(wire, 2_000, "c", join_answer(3, "c"), version=0)
    wire.beat(2_500, "c", 0, 3, ())
    for at_ms in range(4_000, again_ms, 2_000):
        wire.beat(at_ms, "c", 3, 3)
    wire.beat(again_ms, "c", 3, 0, error=E.UNKNOWN_MEMBER_ID)
    assert wire.verdict().outcome == outcome


@pytest.mark.parametrize(("instance", "outcome"), [("i", "accepted"), (None, "refused")])
def test_a_join_that_downgrades_the_group_computes_no_target(instance: str | None, outcome: str) -> None:
    """The last KIP-848 member, a static one, joins (X-DOWN-20, X-DOWN-21)."""
    wire = Wire(profile=KAFKA_4_3)
    wire.beat(1_000, "a", 0, 1, (), instance_id=instance, subscribed_topic_names=())
    joins(wire, 3_000, "c", join_answer(2, "c"))
    joins(wire, 4_000, "a", join_answer(1, "a"), instance=instance)
    assert wire.verdict().outcome == outcome


def test_a_successor_is_found_by_the_instance_id_of_its_predecessor() -> None:
    """Up to 4.3, also if it took the place by KIP-848 (M-STATIC-13, M-STATIC-10)."""
    wire = Wire(profile=KAFKA_4_3)
    wire.beat(1_000, "a", 0, 2, parts(0, 1, 2, 3), instance_id="i")
    wire.beat(1_100, "a", 0, 2, (), instance_id="j")
    wire.beat(1_200, "a", -2, -2, instance_id="j")
    wire.beat(1_300, "b", 0, 2, parts(0, 1, 2, 3), instance_id="i")
    wire.beat(1_400, "k", 0, 3, ())
    joins(wire, 1_500, "", join_answer(3, "c"), instance="j")
    wire.beat(1_600, "b", 2, 0, error=E.UNKNOWN_MEMBER_ID)
    assert wire.accepted()
    wire.beat(1_700, "k", 3, 0, error=E.UNKNOWN_MEMBER_ID)
    assert "M-FENCE-01" in wire.refusal().rules


@pytest.mark.parametrize(("metadata", "outcome"), [(b"", "accepted"), (None, "refused")])
def test_a_member_whose_end_cannot_be_written_outlives_its_session(metadata: bytes | None, outcome: str) -> None:
    """It is the last KIP-848 member, and a classic member has sent unreadable bytes (X-DOWN-09)."""
    wire = mixed()
    said = encode_subscription(Subscription(("t",)), 3)
    body = m.JoinGroupRequest(
        "g",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=5_000,
        member_id="c",
        group_instance_id=None,
        protocol_type="consumer",
        protocols=(m.Protocol("range", said), m.Protocol("other", said if metadata is None else metadata)),
    )
    wire.exchange(2_100, ord("c"), 11, 9, body, join_answer(3, "c"))
    wire.beat(20_000, "a", 2, 2, parts(0, 1))
    assert wire.verdict().outcome == outcome


LEADS = m.JoinGroupResponse(
    E.NONE,
    generation_id=1,
    protocol_type="consumer",
    protocol_name="range",
    leader="c",
    member_id="c",
    members=(m.JoinGroupMember("c", metadata=encode_subscription(Subscription(("t",)), 3)),),
)


def gone(wire: Wire, at: int, by: str) -> None:
    """Return an answer that shows that the group is not a KIP-848 group."""
    if by == "heartbeat":
        wire.beat(at, "a", 2, 0, error=E.GROUP_ID_NOT_FOUND)
    elif by == "join":
        joins(wire, at, "c", LEADS)
    elif by == "describe":
        group = DescribedConsumerGroup(E.GROUP_ID_NOT_FOUND, group_id="g")
        asked, description = ConsumerGroupDescribeRequest(("g",)), ConsumerGroupDescribeResponse((group,))
        wire.exchange(at, 6, 69, 1, asked, description)
    elif by == "describe classic":
        row = m.DescribedGroup(E.NONE, group_id="g", group_state="Empty", protocol_type="consumer")
        wire.exchange(at, 6, 15, 6, m.DescribeGroupsRequest(("g",)), m.DescribeGroupsResponse((row,)))
    elif by == "delete":
        row_ = m.DeletedGroup("g", E.GROUP_ID_NOT_FOUND)
        wire.exchange(at, 6, 42, 2, m.DeleteGroupsRequest(("g",)), m.DeleteGroupsResponse((row_,)))
    else:
        topic = OffsetCommitRequestTopic(name="t", partitions=(OffsetCommitRequestPartition(0, committed_offset=5),))
        asked_ = OffsetCommitRequest("g", generation_id_or_member_epoch=2, member_id="a", topics=(topic,))
        of_0 = OffsetCommitResponsePartition(0, E.GROUP_ID_NOT_FOUND)
        answer = OffsetCommitResponse((OffsetCommitResponseTopic(name="t", partitions=(of_0,)),))
        wire.exchange(at, 6, 8, 9, asked_, answer)


GONE = ("heartbeat", "join", "describe", "describe classic", "delete", "commit")


@pytest.mark.parametrize("by", GONE)
def test_members_are_gone_with_their_group(by: str) -> None:
    """No request of theirs is accepted from then on (M-VAL-20)."""
    wire = Wire(profile=KAFKA_4_3)
    wire.beat(0, "a", 0, 2, parts(0, 1, 2, 3))
    gone(wire, 5_990, by)  # when the session of a may be over
    assert wire.accepted()
    wire.beat(6_100, "a", 2, 2)
    assert "UNKNOWN_MEMBER_ID" in wire.refusal().allowed


def test_the_next_group_may_be_a_classic_one() -> None:
    """While its heartbeat was in flight, a may have been asked to revoke, and its time for that is short
    (C-JOIN-10)."""
    wire = Wire(profile=KAFKA_4_3)
    wire.beat(0, "a", 0, 2, parts(0, 1, 2, 3), rebalance_timeout_ms=1)
    gone(wire, 1_000, "heartbeat")
    joins(wire, 1_100, "c", LEADS)
    assert wire.accepted()


def test_a_member_that_comes_back_meanwhile_is_not_gone() -> None:
    wire = Wire(profile=KAFKA_4_3)
    wire.beat(0, "a", 0, 2, parts(0, 1, 2, 3))
    wire.asked += 1
    number = wire.asked
    asked = ConsumerGroupDescribeRequest(("g",))
    wire.send(5_990, 6, 69, 1, asked)
    back = wire.ask(6_000, "a", 0)
    wire.respond(6_010, back, 2, parts(0, 1, 2, 3))
    group = DescribedConsumerGroup(E.GROUP_ID_NOT_FOUND, group_id="g")
    wire.answer(6_020, 6, 69, 1, number, ConsumerGroupDescribeResponse((group,)))
    wire.beat(6_100, "a", 2, 2)
    assert wire.accepted()


def test_joins_that_overlap_are_answered_in_any_order() -> None:
    """Member c, at epoch 4, uses KIP-848 now, must revoke a partition, and stays there until it has (M-REC-03)."""
    wire = Wire(profile=KAFKA_4_4)
    wire.beat(0, "a", 0, 2, ())
    joins(wire, 1_000, "c", join_answer(3, "c"))
    (body,) = [line.body for line in wire.lines if isinstance(line, SentLine) and line.api_key == 11]
    first, second = 100, 101
    for number, at in ((first, 1_050), (second, 2_105)):
        wire.asked = number
        wire._line(SentLine, at, ord("c"), 11, 9, {**body, "member_id": "c"})
        if number is first:
            wire.beat(1_100, "b", 0, 4, ())
    wire.answer(2_110, ord("c"), 11, 9, second, join_answer(4, "c"))
    wire.answer(2_120, ord("c"), 11, 9, first, join_answer(3, "c"))  # was handled before the other
    wire.beat(2_200, "c", 4, 4, parts(0, 1, 2), subscribed_topic_names=("t",), rebalance_timeout_ms=5_000)
    wire.beat(2_300, "d", 0, 5, ())
    wire.beat(4_000, "d", 5, 5)
    wire.beat(4_100, "c", 4, 4)
    assert wire.accepted()
