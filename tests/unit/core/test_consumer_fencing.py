"""Rejected heartbeats: malformed ones, members at other epochs, and conflicts of static members (7.3)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fencepost import coordinator
from fencepost.protocol import consumer_messages as c
from fencepost.protocol import consumer_records as r
from fencepost.protocol.consumer_view import MemberState
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import Load, LoadStarted, TimerKind, Topic, Unload
from fencepost.protocol.profile import Profile
from fencepost.protocol.profiles import INTENDED, KAFKA_4_0, KAFKA_4_1, KAFKA_4_3, KAFKA_4_4
from fencepost.protocol.settings import Settings

from .consumer_scene import LATER, A, B, ConsumerScene, plain, settled
from .scene import GROUP, Scene

JOIN = c.ConsumerGroupHeartbeatRequest(
    "g", member_id="m", member_epoch=0, rebalance_timeout_ms=1_000, subscribed_topic_names=("a",), topic_partitions=()
)


@pytest.mark.parametrize(
    ("body", "version"),
    [
        (replace(JOIN, member_id=" "), 1),  # M-VAL-09
        (replace(JOIN, member_id="", member_epoch=-1), 0),
        (replace(JOIN, member_id="", member_epoch=3), 0),
        (replace(JOIN, group_id="\t"), 1),  # M-VAL-05
        (replace(JOIN, instance_id=""), 1),  # M-VAL-06
        (replace(JOIN, rack_id=" "), 1),  # M-VAL-07
        (replace(JOIN, rebalance_timeout_ms=-1), 1),  # M-VAL-10
        (replace(JOIN, topic_partitions=None), 1),  # M-VAL-11
        (replace(JOIN, topic_partitions=(c.TopicPartitions(A, (0,)),)), 1),
        (replace(JOIN, subscribed_topic_names=None), 1),  # M-VAL-12
        (replace(JOIN, member_epoch=-2), 1),  # M-VAL-13
        (replace(JOIN, member_epoch=-3), 1),  # M-VAL-14
    ],
)
def test_a_malformed_heartbeat_changes_nothing(body: c.ConsumerGroupHeartbeatRequest, version: int) -> None:
    scene = ConsumerScene()
    answer = scene.answers[scene.ask(body, version)]
    assert isinstance(answer, c.ConsumerGroupHeartbeatResponse)
    assert answer.error_code is ErrorCode.INVALID_REQUEST
    assert answer.error_message
    assert not scene.records
    assert not scene.state.groups


def test_an_assignor_must_be_configured_even_to_leave() -> None:
    """M-VAL-15."""
    scene = settled()
    assert scene.error("m1", -1, assignor="sticky") is ErrorCode.UNSUPPORTED_ASSIGNOR
    assert len(scene.seen.members) == 2


def test_rights_come_before_everything_else() -> None:
    """M-VAL-01, M-VAL-02, M-VAL-03."""
    scene = Scene(running=False)
    bad = replace(JOIN, member_id="")
    denied = scene.answers[scene.ask(bad, denied=frozenset({"g"}))]
    assert denied == c.ConsumerGroupHeartbeatResponse(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    topics = scene.answers[scene.ask(bad, denied_topics=frozenset({"a"}))]
    assert topics == c.ConsumerGroupHeartbeatResponse(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    assert scene.answers[scene.ask(bad)] == c.ConsumerGroupHeartbeatResponse(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    off = ConsumerScene(consumer_protocol_enabled=False)
    assert off.error("m", 0) is ErrorCode.UNSUPPORTED_VERSION
    assert off.described()[0].error_code is ErrorCode.UNSUPPORTED_VERSION


@pytest.mark.parametrize(("profile", "first"), [(KAFKA_4_3, ErrorCode.INVALID_REQUEST), (KAFKA_4_0, None)])
def test_only_4_0_asks_first_whether_it_owns_the_partition(profile: Profile, first: ErrorCode | None) -> None:
    """M-VAL-04, V-29."""
    scene = ConsumerScene(profile)
    scene.feed(Unload(0, leader_epoch=None))
    assert scene.error("", 0) is (first or ErrorCode.NOT_COORDINATOR)
    scene.feed(LoadStarted(0, leader_epoch=5))
    assert scene.error("", 0) is (first or ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)


def test_a_member_without_a_group_must_come_with_epoch_zero() -> None:
    """M-VAL-20, M-VAL-24."""
    scene = ConsumerScene()
    assert scene.error("m", 3) is ErrorCode.GROUP_ID_NOT_FOUND
    scene.newcomer()
    assert scene.error("m", 3) is ErrorCode.GROUP_ID_NOT_FOUND
    assert scene.error("m", -1) is ErrorCode.GROUP_ID_NOT_FOUND  # M-LEAVE-01


def test_a_full_group_rejects_a_new_member_before_other_checks() -> None:
    """An unknown member with an epoch is rejected too; known members pass (M-VAL-25, M-VAL-30)."""
    scene = settled(group_consumer_max_size=2)
    assert scene.error("m3", 0, ("a",), {}, timeout=5) is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert scene.error("m3", 7) is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert scene.error("m1", 0, ("a",), {}, timeout=5) is ErrorCode.NONE


@pytest.mark.parametrize(
    ("profile", "answer"), [(KAFKA_4_3, ErrorCode.GROUP_MAX_SIZE_REACHED), (KAFKA_4_4, ErrorCode.NONE)]
)
def test_before_44_a_full_group_refuses_a_static_replacement(profile: Profile, answer: ErrorCode) -> None:
    """M-VAL-28, M-VAL-30, V-120."""
    scene = ConsumerScene(profile, group_consumer_max_size=1)
    scene.come("m1", "a", instance="i")
    scene.ok("m1", -2, instance="i")
    assert scene.error("m2", 0, ("a",), {}, timeout=5, instance="j") is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert scene.error("m2", 0, ("a",), {}, timeout=5, instance="i") is answer
    if answer is not ErrorCode.NONE:
        scene.come("m1", "a", instance="i")
    assert len(scene.seen.members) == 1


def test_version_0_gets_a_member_id() -> None:
    """A retry creates a second member (M-VAL-26, M-VAL-27)."""
    scene = ConsumerScene()
    first = scene.ok("", 0, ("a",), {}, timeout=5, version=0)
    second = scene.ok("", 0, ("a",), {}, timeout=5, version=0)
    assert first.member_id != second.member_id
    assert len(scene.seen.members) == 2


def test_epochs_that_are_not_the_members_are_fenced() -> None:
    """M-FENCE-01, 03, 05, 06, 08."""
    scene = settled()
    epoch = scene.who("m1").member_epoch
    before = scene.state.groups
    assert scene.error("nobody", 1) is ErrorCode.UNKNOWN_MEMBER_ID
    assert scene.error("m1", epoch + 1) is ErrorCode.FENCED_MEMBER_EPOCH
    assert scene.error("m1", epoch - 2) is ErrorCode.FENCED_MEMBER_EPOCH
    assert scene.state.groups is before
    scene.ok("m1", epoch)


def test_a_lost_answer_is_accepted_if_the_member_owns_no_more_than_assigned() -> None:
    """The previous epoch passes if the owned partitions are within the assigned ones (M-FENCE-04)."""
    scene = settled()
    member = scene.who("m1")
    before, mine = member.previous_member_epoch, plain(member.assigned)
    assert before < member.member_epoch
    assert scene.error("m1", before, None, mine) is ErrorCode.NONE
    assert scene.error("m1", before) is ErrorCode.FENCED_MEMBER_EPOCH
    assert scene.error("m1", before, None, {A: range(4)}) is ErrorCode.FENCED_MEMBER_EPOCH


def test_epoch_zero_of_a_known_member_resets_nothing() -> None:
    """Before 4.2 the member is fenced (M-FENCE-07, V-32)."""
    scene = settled()
    member, count = scene.who("m1"), len(scene.records)
    answer = scene.ok("m1", 0, ("a",), {}, timeout=30_000)
    assert answer.member_epoch == member.member_epoch
    assert plain(answer.assignment or ()) == plain(member.assigned)
    assert len(scene.records) == count
    old = settled(KAFKA_4_1)
    assert old.error("m1", 0, ("a",), {}, timeout=30_000) is ErrorCode.FENCED_MEMBER_EPOCH


def test_a_static_member_may_leave_its_instance_id_out() -> None:
    """M-FENCE-09, M-STATIC-14."""
    scene = ConsumerScene()
    epoch = scene.come("m1", "a", instance="i").member_epoch
    scene.ok("m1", epoch)
    scene.ok("m1", 0, ("a",), {}, timeout=30_000)
    assert scene.seen.static_members == (("i", "m1"),)


def test_an_instance_id_belongs_to_one_member() -> None:
    """M-STATIC-02, 04, 05, 06."""
    scene = ConsumerScene()
    epoch = scene.come("m1", "a", instance="i").member_epoch
    assert scene.error("m2", 0, ("a",), {}, timeout=5, instance="i") is ErrorCode.UNRELEASED_INSTANCE_ID
    assert scene.error("m2", epoch, instance="i") is ErrorCode.FENCED_INSTANCE_ID
    assert scene.error("m1", epoch, instance="j") is ErrorCode.UNKNOWN_MEMBER_ID
    scene.ok("m1", -2, instance="i")
    assert scene.error("m1", epoch, instance="i") is ErrorCode.FENCED_MEMBER_EPOCH


def test_a_static_member_that_restarts_with_its_own_id_is_let_in() -> None:
    """Fixed under ``intended``; Kafka rejects the member (M-STATIC-02, L-06)."""
    scene = ConsumerScene(INTENDED)
    epoch = scene.come("m1", "a", instance="i").member_epoch
    assert scene.come("m1", "a", instance="i").member_epoch == epoch
    faulty = ConsumerScene(KAFKA_4_3)
    faulty.come("m1", "a", instance="i")
    assert faulty.error("m1", 0, ("a",), {}, timeout=5, instance="i") is ErrorCode.UNRELEASED_INSTANCE_ID


def test_a_static_member_comes_back_with_its_previous_assignment() -> None:
    """M-STATIC-03, 10, 11, M-PE-04, M-LEAVE-05, M-TMR-09, F-ORD-10, F-ORD-11, M-EPOCH-06."""
    scene = ConsumerScene()
    scene.come("m1", "a", instance="i")
    epoch, count = scene.seen.group_epoch, len(scene.records)
    scene.ok("m1", -2, instance="i")
    assert scene.written(count) == ["Current"]
    away = scene.who("m1")
    assert (away.member_epoch, plain(away.assigned)) == (-2, {A: (0, 1, 2, 3)})
    assert away.assigned[0].assignment_epochs == (0, 0, 0, 0)
    assert scene.seen.partition_epochs == tuple((A, number, -2) for number in range(4))
    count = len(scene.records)
    answer = scene.come("m2", "a", instance="i")
    assert scene.written(count) == [
        "Current†", "TargetMember†", "MemberMetadata†", "MemberMetadata", "TargetMember", "Current", "Current",
    ]  # fmt: skip
    assert plain(answer.assignment or ()) == {A: (0, 1, 2, 3)}
    assert (answer.member_epoch, scene.seen.group_epoch) == (epoch, epoch)
    assert scene.timer(TimerKind.CONSUMER_SESSION, "m1") is not None
    scene.pass_time(44_999)
    scene.ok("m2", epoch)
    scene.pass_time(2)
    assert [member.member_id for member in scene.seen.members] == ["m2"]


def test_a_member_that_takes_another_instance_id_gives_the_first_one_up() -> None:
    """Fixed under ``intended``; in Kafka joins with the first id fail for ever (M-STATIC-01, M-STATIC-13,
    F-REPLAY-07)."""
    for profile, expected in ((INTENDED, ErrorCode.NONE), (KAFKA_4_3, ErrorCode.UNKNOWN_MEMBER_ID)):
        scene = ConsumerScene(profile)
        scene.come("m1", "a", instance="i1")
        count = len(scene.records)
        scene.come("m1", "a", instance="i2")
        assert scene.written(count) == ["MemberMetadata"]
        scene.ok("m1", -1, instance="i2")
        assert scene.error("m2", 0, ("a",), {}, timeout=5, instance="i1") is expected
        fresh = coordinator.replay(coordinator.initial_state(Settings(), profile), scene.records)
        reloaded = coordinator.consumer_view(fresh, GROUP)
        assert reloaded is not None
        assert reloaded.static_members == scene.seen.static_members


def test_a_member_that_takes_the_place_of_another_loses_its_own() -> None:
    """In Kafka the member's own partitions become free, and no member is assigned them until the next bump
    (M-STATIC-15)."""
    scene, target = _one_that_left(KAFKA_4_3)
    epoch = scene.seen.group_epoch
    answer = scene.come("m1", "a", instance="i")
    assert [row.member_id for row in scene.seen.members] == ["m1"]
    assert (plain(answer.assignment or ()), answer.member_epoch) == ({}, epoch)  # its own target prevented that
    assert plain(scene.ok("m1", epoch).assignment or ()) == {A: target["m2"]}
    assert scene.seen.group_epoch == epoch
    assert {number for _, number, _ in scene.seen.partition_epochs} == set(target["m2"])
    assert set(target["m2"]) | set(target["m1"]) == {0, 1, 2, 3}


def test_partitions_of_a_replaced_member_are_withheld() -> None:
    """A new target leaves them out as well (A-UHOM-08)."""
    scene, _ = _one_that_left(KAFKA_4_3, "b")
    assert plain(scene.come("m1", "a", instance="i").assignment or ()) == {}
    assert scene.seen.assignment_epoch == scene.seen.group_epoch
    assert plain(dict(scene.seen.target)["m1"]) == {}


@pytest.mark.parametrize(("former", "shares"), [("uniform", (3, 3)), ("range", (2, 4))])
def test_a_member_that_takes_a_place_keeps_its_own_vote(former: str, shares: tuple[int, int]) -> None:
    """The vote still counts when the place is lost; m2, whose place is taken, has no vote (M-TGT-02, M-STATIC-15)."""
    scene = ConsumerScene(KAFKA_4_3, group_consumer_assignors=("range", "uniform"))
    scene.topics(*(Topic(name, id_, 3) for name, id_ in (("a", A), ("b", B))))
    scene.come("m0", "a", "b")
    scene.come("m2", "c", instance="i")
    scene.come("m1", "c", assignor=former)
    scene.ok("m2", -2, instance="i")
    scene.pass_time(LATER)
    scene.come("m1", "a", "b", instance="i")
    assert scene.seen.assignment_epoch == scene.seen.group_epoch
    counts = [sum(map(len, plain(share).values())) for _, share in sorted(scene.seen.target)]
    assert tuple(counts) == shares


def test_a_member_with_an_instance_id_takes_no_other() -> None:
    """Fixed under ``intended``: a member without an instance id may take it, and so may the one that left it
    (M-STATIC-15)."""
    scene, target = _one_that_left(INTENDED)
    before = scene.seen
    for names in (("a",), ("a", "b")):
        assert scene.error("m1", 0, names, {}, timeout=5, instance="i") is ErrorCode.UNRELEASED_INSTANCE_ID
    assert scene.seen == before
    for taker in ("m2", "m3"):
        scene.come(taker, "a", instance="i")
        assert plain(dict(scene.seen.target)[taker]) == {A: target["m2"]}
        scene.ok(taker, -2, instance="i")


def _one_that_left(profile: Profile, topic: str = "a") -> tuple[ConsumerScene, dict[str, tuple[int, ...]]]:
    """Return a scene in which m1 subscribes to topic a, and the static m2, with this topic, has left with -2; and their
    targets of a."""
    scene = ConsumerScene(profile)
    scene.come("m1", "a")
    scene.pass_time(LATER)
    scene.come("m2", topic, instance="i")
    target = {member: plain(share).get(A, ()) for member, share in scene.seen.target}
    scene.ok("m2", -2, instance="i")
    scene.pass_time(LATER)
    return scene, target


@pytest.mark.parametrize(("profile", "share"), [(INTENDED, {A: (0, 1)}), (KAFKA_4_3, {})])
def test_a_new_instance_id_keeps_the_members_target(profile: Profile, share: dict[bytes, tuple[int, ...]]) -> None:
    """Fixed under ``intended``; in Kafka the member ends STABLE without partitions (M-HB-07, LIV-16)."""
    scene = ConsumerScene(profile)
    scene.come("m1", "a")
    scene.pass_time(LATER)
    scene.come("m2", "a")
    answer = scene.come("m1", "a", instance="i")
    assert plain(answer.assignment or ()) == share
    assert plain(dict(scene.seen.target)["m1"]) == {A: (0, 1)}


def test_a_member_in_an_unknown_state_must_give_everything_up() -> None:
    """M-MS-04, M-REC-06, M-REC-07."""
    scene = settled()
    log = list(scene.records)
    place = max(
        number
        for number, record in enumerate(log)
        if isinstance(record.key, r.ConsumerGroupCurrentMemberAssignmentKey) and record.key.member_id == "m1"
    )
    value = log[place].value
    assert isinstance(value, r.ConsumerGroupCurrentMemberAssignmentValue)
    log[place] = replace(log[place], value=replace(value, state=9))
    scene.feed(Unload(scene.now, leader_epoch=None))
    scene.feed(Load(scene.now, leader_epoch=9, records=tuple(log)))
    epoch = scene.who("m1").member_epoch
    assert scene.who("m1").state is MemberState.UNKNOWN
    assert scene.error("m1", epoch) is ErrorCode.FENCED_MEMBER_EPOCH
    assert scene.error("m1", epoch, None, {A: (0,)}) is ErrorCode.FENCED_MEMBER_EPOCH
    scene.ok("m1", epoch, None, {})
    assert scene.who("m1").state is MemberState.STABLE
