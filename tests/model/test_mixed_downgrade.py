"""A consumer group becomes a classic group in the model, rule by rule (rule book, 9.5)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from mixed_scene import TOPICS, Scene, T, kinds, subscription

from fencepost.protocol import embedded
from fencepost.protocol.consumer_messages import ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import Appended, TimerKind, Topic, TopicsChanged
from fencepost.protocol.messages import (
    JoinGroupResponse,
    LeaveGroupMember,
    LeaveGroupRequest,
    LeaveGroupResponse,
    ListGroupsRequest,
    ListGroupsResponse,
    Protocol,
)
from fencepost.protocol.profile import Profile
from fencepost.protocol.profiles import INTENDED, KAFKA_4_2, KAFKA_4_3
from fencepost.protocol.settings import MigrationPolicy

ALL = ((T, 0), (T, 1), (T, 2))


def _static(profile: Profile = KAFKA_4_3, **settings: Any) -> Scene:
    """Return a group of the static consumer m, which has all of t at epoch 2."""
    scene = Scene(profile, **settings)
    assert scene.beats("m", instance="i1").member_epoch == (1 if profile is KAFKA_4_2 else 2)
    return scene


def _partitions(data: bytes) -> list[tuple[str, int]]:
    return [(p.topic, p.partition) for p in embedded.decode_assignment(data).partitions]


# ---- case (b): the last consumer is replaced by a JoinGroup ---------------------------------------------------------


@pytest.mark.parametrize(("member", "new_id"), [("", "n"), ("m", "")])
def test_the_last_consumer_comes_back_as_a_classic_member(member: str, new_id: str) -> None:
    """A static consumer returns as a classic member under a new id or its own (X-DOWN-20, 22, 23).

    Nothing else changed, so the group is Stable and the member's SyncGroup works.
    """
    scene = _static()
    joined = scene.joins(member, "i1", new_id=new_id)
    assert (joined.error_code, joined.leader, joined.generation_id) == (ErrorCode.NONE, "", 2)
    assert joined.member_id == (new_id or member)
    assert (scene.classic.state, scene.classic.generation) == ("Stable", 2)
    assert [m.member_id for m in scene.classic.members] == [joined.member_id]
    sync = scene.syncs(joined.member_id, 2, "i1")
    assert _partitions(sync.assignment) == [("t", 0), ("t", 1), ("t", 2)]


def test_one_remaining_consumer_prevents_the_downgrade() -> None:
    """One other consumer prevents the downgrade (X-DOWN-20)."""
    scene = _static()
    scene.beats("other")
    scene.joins("", "i1", new_id="n")
    assert scene.member("n").classic is not None


def test_only_a_consumer_that_is_static_is_replaced() -> None:
    """A dynamic consumer may return as a classic member without a downgrade (X-DOWN-20, X-JOIN-24)."""
    scene = Scene()
    scene.beats("m")
    scene.joins("m")
    assert scene.member("m").classic is not None
    scene = _static()
    scene.beats("other")
    scene.joins("", "i1", new_id="n")
    scene.leave("other")  # this leave downgrades the group (X-DOWN-01)
    assert scene.classic.generation == 3  # the group epoch (X-DOWN-03)


def test_a_member_that_is_already_classic_is_replaced_in_place() -> None:
    """A downgrade requires that the instance id belonged to a consumer (X-DOWN-20)."""
    scene = _static(group_consumer_migration_policy=MigrationPolicy.UPGRADE)
    scene.joins("", "i1", new_id="n")
    again = Scene(log=scene.log)
    again.joins("", "i1", new_id="o")
    assert again.member("o").classic is not None


@pytest.mark.parametrize("policy", [MigrationPolicy.UPGRADE, MigrationPolicy.DISABLED])
def test_a_downgrade_needs_a_policy_that_says_so(policy: MigrationPolicy) -> None:
    """Without a policy that allows downgrades the group stays a consumer group (X-DOWN-20, X-POL-02, 04)."""
    profile = replace(KAFKA_4_3, old_disabled_policy_accepts_joins=True)
    scene = _static(profile, group_consumer_migration_policy=policy)
    scene.joins("", "i1", new_id="n")
    assert scene.member("n").classic is not None


def test_a_downgrade_needs_room_in_a_classic_group() -> None:
    """The joiner counts against the size of a classic group (X-DOWN-20)."""
    for size, downgraded in ((1, False), (2, True)):
        scene = _static(group_max_size=size)
        scene.joins("x")
        scene.joins("", "i1", new_id="n")
        assert (scene.state.group("g") is not None) is downgraded


def test_a_member_that_now_uses_another_instance_id_makes_the_join_fail() -> None:
    """i1 still leads to m, which now uses i2, so the join fails (X-DOWN-20, M-STATIC-13)."""
    scene = _static()
    scene.beats("m", instance="i2")
    answer = scene.joins("", "i1", new_id="n")
    assert (answer.error_code, answer.member_id, scene.written) == (ErrorCode.UNKNOWN_SERVER_ERROR, "", ())
    assert scene.member("m").instance == "i2"


_END = ["-TargetEpoch", "-Member n", "-Partitions", "-Epoch", "Group"]
_REPLACED = ["-Current m", "-Target m", "-Member m", "Member n", "Target n", "Current n", "Member n"]


def test_the_records_of_a_downgrade_without_rebalance() -> None:
    """Without a rebalance the joiner is reconciled first (X-DOWN-21, X-DOWN-02)."""
    scene = _static()
    scene.joins("", "i1", new_id="n")
    assert kinds(scene.written) == [*_REPLACED, "Current n", "-Current n", "-Target n", *_END]
    value = scene.written[7].value
    assert value is not None
    assert value.member_epoch == 2  # type: ignore[union-attr]


def test_the_records_of_a_downgrade_with_rebalance() -> None:
    """With a rebalance there is a bump and no target, and the joiner is not reconciled (X-DOWN-21, 22)."""
    scene = _static()
    scene.joins("", "i1", new_id="n", data=subscription("t", "u"))
    assert kinds(scene.written) == [*_REPLACED, "Epoch", "-Current n", "-Target n", *_END]


@pytest.mark.parametrize(("profile", "state"), [(KAFKA_4_3, "PreparingRebalance"), (KAFKA_4_2, "Stable")])
def test_a_target_that_is_behind_makes_the_group_rebalance(profile: Profile, state: str) -> None:
    """After a leave the target is stale, so the group rebalances; 4.2 looks only at the subscription (X-DOWN-22)."""
    scene = _static(profile)
    scene.beats("other")
    scene.leave("other")
    assert scene.group.assignment_epoch < scene.group.epoch
    scene.joins("", "i1", new_id="n")
    assert scene.classic.state == state


def test_the_joiner_gets_the_target_of_its_predecessor() -> None:
    """The joiner gets its predecessor's target, with a rebalance and without one (X-DOWN-04, 22)."""
    for names in (("t",), ("t", "u")):
        scene = _static()
        assert scene.group.target_of("m") == ALL
        scene.joins("", "i1", new_id="n", data=subscription(*names))
        assert _partitions(scene.classic.members[0].assignment) == [("t", 0), ("t", 1), ("t", 2)]


def _waiting(profile: Profile) -> Scene:
    """Return a group in which the static consumer m has all of t, and the classic x waits for its share."""
    scene = _static(profile)
    scene.syncs("x", scene.joins("x").generation_id)
    assert (scene.member("x").state, scene.group.assignment_epoch) == ("UNRELEASED_PARTITIONS", scene.group.epoch)
    return scene


@pytest.mark.parametrize("member", ["", "m"])
def test_a_downgrade_may_owe_a_member_its_share(member: str) -> None:
    """Kafka never tells x about its new assignment (X-DOWN-22)."""
    scene = _waiting(KAFKA_4_3)
    epoch = scene.group.epoch
    assert scene.joins(member, "i1", new_id="n").generation_id == epoch
    assert (scene.classic.state, scene.heartbeat("x", epoch)) == ("Stable", ErrorCode.NONE)


@pytest.mark.parametrize("member", ["", "m"])
def test_with_the_fix_a_member_that_waits_for_its_share_must_rejoin(member: str) -> None:
    """With the fix of X-DOWN-22 the group rebalances as if the target were stale, and no epoch is lost (X-DOWN-23)."""
    scene = _waiting(INTENDED)
    epoch = scene.group.epoch
    scene.send(scene.join(member, "i1"), new_id="n")
    parked = scene.asked
    scene.replicate()
    assert (scene.classic.state, scene.classic.generation) == ("PreparingRebalance", epoch)
    assert scene.heartbeat("x", epoch) is ErrorCode.REBALANCE_IN_PROGRESS
    answers = {reply.request_id: reply.body for reply in scene.send(scene.join("x")).outcome.replies}
    answer = answers[parked]
    assert isinstance(answer, JoinGroupResponse)
    assert (answer.error_code, answer.generation_id) == (ErrorCode.NONE, epoch + 1)
    assert scene.classic.state == "CompletingRebalance"


@pytest.mark.parametrize(("profile", "state"), [(KAFKA_4_3, "Stable"), (INTENDED, "PreparingRebalance")])
def test_with_the_fix_the_group_waits_for_a_member_behind_the_target(profile: Profile, state: str) -> None:
    """With the fix of X-DOWN-22 the group waits for x, which has its share but does not know the epoch."""
    scene = _static(profile)
    scene.syncs("x", scene.joins("x", data=subscription("u")).generation_id)
    epoch = scene.beats("m", scene.member("m").epoch, "i1").member_epoch
    assert scene.beats("m", epoch, "i1", subscribed_topic_names=("t", "v")).member_epoch == epoch + 1
    assert (scene.member("x").epoch, scene.member("x").state) == (epoch, "STABLE")
    scene.send(scene.join("", "i1", data=subscription("t", "v")), new_id="n")
    assert (scene.classic.state, scene.classic.generation) == (state, epoch + 1)


def test_with_the_fix_a_downgrade_without_waiting_members_stays_stable() -> None:
    """With the fix of X-DOWN-22 the group stays Stable if x already has its share."""
    scene = _static(INTENDED)
    epoch = scene.joins("x", data=subscription("u")).generation_id
    scene.syncs("x", epoch)
    scene.beats("m", 2, "i1")
    assert scene.joins("", "i1", new_id="n").generation_id == epoch
    assert (scene.classic.state, scene.heartbeat("x", epoch)) == ("Stable", ErrorCode.NONE)


@pytest.mark.parametrize(("member", "epoch"), [("", 0), ("m", 2)])
def test_a_downgrade_loses_the_bump_of_the_same_request(member: str, epoch: int) -> None:
    """Kafka loses the bump of the request that downgrades, which costs one round (X-DOWN-23)."""
    scene = _static()
    joined = scene.joins(member, "i1", new_id="n", data=subscription("t", "u"))
    who = joined.member_id
    assert (joined.error_code, joined.generation_id, joined.leader) == (ErrorCode.NONE, epoch, "")
    assert (scene.classic.state, scene.classic.generation) == ("PreparingRebalance", 2)
    expected = ErrorCode.ILLEGAL_GENERATION if epoch == 0 else ErrorCode.REBALANCE_IN_PROGRESS
    assert scene.syncs(who, epoch, "i1").error_code is expected
    assert scene.heartbeat(who, epoch, "i1") is expected
    again = scene.joins(who, "i1", data=subscription("t", "u"))
    assert (again.generation_id, again.leader, scene.classic.generation) == (3, who, 3)


def test_the_joiner_takes_part_in_the_rebalance_with_the_fix() -> None:
    """With the fix of X-DOWN-23 the joiner is answered in the round that the conversion begins."""
    scene = _static(INTENDED)
    joined = scene.joins("", "i1", new_id="n", data=subscription("t", "u"))
    assert (joined.generation_id, joined.leader) == (4, "n")
    assert (scene.classic.state, scene.classic.generation) == ("CompletingRebalance", 4)


def test_a_parked_joiner_is_not_answered_by_its_timeout() -> None:
    """With the fix of X-DOWN-23 a timeout does not answer the parked joiner; only the group does (C-JOIN-70)."""
    scene = _static(INTENDED)
    scene.joins("x")
    scene.send(scene.join("", "i1", data=subscription("t", "u")), new_id="n")
    parked = scene.asked
    assert scene.classic.state == "PreparingRebalance"
    assert scene.fire(TimerKind.OPERATION, operation=parked).outcome.replies == ()
    scene.replicate()
    step = scene.send(scene.join("x"))
    answers = {reply.request_id: reply.body for reply in step.outcome.replies}
    answer = answers[parked]
    assert isinstance(answer, JoinGroupResponse)
    assert (answer.error_code, answer.generation_id) == (ErrorCode.NONE, scene.classic.generation)


def test_of_the_timers_of_a_join_only_one_is_touched() -> None:
    """Replication cancels the join timer; the session timer is the classic one (X-DOWN-24, X-JOIN-20)."""
    scene = _static()
    scene.beats("other")
    scene.syncs("m", scene.joins("m", "i1").generation_id, "i1")
    scene.beats("third")
    assert scene.heartbeat("m", 3, "i1") is ErrorCode.REBALANCE_IN_PROGRESS
    scene.beats("m", instance="i1")
    scene.leave("other", "third")
    assert (scene.member("m").classic, scene.due(TimerKind.CONSUMER_JOIN, "m")) == (None, 20_000)
    scene.now += 100
    scene.send(scene.join("m", "i1"))
    assert scene.classic.members
    assert scene.due(TimerKind.CONSUMER_JOIN, "m") == 19_900
    scene.replicate()
    assert scene.due(TimerKind.CONSUMER_JOIN, "m") is None
    assert scene.due(TimerKind.CONSUMER_SYNC, "m") is None
    assert scene.due(TimerKind.SESSION, "m") == 10_000
    assert scene.due(TimerKind.CONSUMER_SESSION, "m") == 44_900  # a remaining timer (X-DOWN-33)


# ---- case (a): members leave ----------------------------------------------------------------------------------------


def _without_target(profile: Profile) -> Scene:
    """Return a group in which the classic x has no target: it reads nothing and joined without a bump."""
    scene = Scene(profile)
    scene.beats("m")
    scene.joins("x", data=subscription())
    assert scene.group.target_of("x") is None
    return scene


def test_a_member_without_target_is_given_nothing() -> None:
    """A member without a target gets an empty assignment (X-DOWN-04)."""
    scene = _without_target(KAFKA_4_3)
    scene.leave("m")
    assert [_partitions(member.assignment) for member in scene.classic.members] == [[]]


def test_before_4_3_a_member_without_target_is_in_the_way() -> None:
    """Before 4.3 such a member makes a leave fail, and a timer tries again and again (X-DOWN-04, V-67, F-RT-17)."""
    scene = _without_target(KAFKA_4_2)
    answer = scene.ask(LeaveGroupRequest("g", (LeaveGroupMember("m"),)), LeaveGroupResponse)
    assert (answer.error_code, scene.written) == (ErrorCode.UNKNOWN_SERVER_ERROR, ())
    for _ in range(2):
        step = scene.fire(TimerKind.CONSUMER_SESSION, "m")
        assert step.outcome.records == ()
        assert scene.due(TimerKind.CONSUMER_SESSION, "m") == 500
    assert scene.member("m").classic is None


def test_members_that_agree_on_no_protocol_are_in_the_way() -> None:
    """x lists its protocol twice, so that no protocol counts as common (C-JOIN-72; for the timer F-RT-17)."""
    scene = Scene()
    scene.beats("m")
    twice = (Protocol("range", subscription("t")),) * 2
    assert scene.joins("x", protocols=twice).error_code is ErrorCode.NONE
    answer = scene.ask(LeaveGroupRequest("g", (LeaveGroupMember("m"),)), LeaveGroupResponse)
    assert (answer.error_code, scene.written) == (ErrorCode.UNKNOWN_SERVER_ERROR, ())
    assert scene.fire(TimerKind.CONSUMER_SESSION, "m").outcome.records == ()
    assert scene.due(TimerKind.CONSUMER_SESSION, "m") == 500


@pytest.mark.parametrize(("profile", "reached"), [(KAFKA_4_3, True), (INTENDED, False)])
def test_a_downgrade_leaves_topics_in_the_index(profile: Profile, reached: bool) -> None:
    """A change of topic t expires the metadata of a group that reuses the name (X-DOWN-30, M-META-03)."""
    scene = Scene(profile)
    scene.beats("m")
    scene.joins("x", data=subscription("u"))
    scene.leave("m")
    scene.beats("p", names=("u",))
    scene.beats("q", names=("u",))
    assert scene.group.refresh is not None
    scene.step(TopicsChanged(0, (Topic("t", T, 4), TOPICS[1]), version=2))
    assert (scene.group.refresh is None) is reached


def test_a_member_that_drops_a_topic_removes_it_from_the_index() -> None:
    """A member that subscribes to the topic and gives it up removes it from the index (X-DOWN-30)."""
    scene = Scene()
    scene.beats("m")
    scene.joins("x", data=subscription("u"))
    scene.leave("m")
    scene.beats("p", names=("u", "t"))
    epoch = scene.beats("q", names=("u",)).member_epoch
    scene.beats("p", scene.member("p").epoch, subscribed_topic_names=("u",))
    assert scene.group.refresh is not None
    assert epoch
    scene.step(TopicsChanged(0, (Topic("t", T, 4), TOPICS[1]), version=2))
    assert scene.group.refresh is not None


@pytest.mark.parametrize("profile", [KAFKA_4_3, INTENDED])
def test_the_deadline_outlives_a_downgrade_that_is_not_appended(profile: Profile) -> None:
    """The downgrade is not appended, but the metadata deadline stays set in the restored group (M-HB-13, F-RT-08)."""
    scene = _static(profile)
    before = scene.group.refresh
    scene.now += 1
    scene.send(scene.join("", "i1", data=subscription("t", "u")), new_id="n")
    assert scene.classic.members
    scene.fail()
    assert scene.group.refresh == (scene.now + scene.model.settings.metadata_refresh_interval_ms, 3)
    assert scene.group.refresh != before


def test_a_member_that_comes_back_has_its_own_session_timeout() -> None:
    """With the fix of M-HB-13 the restored member has its own session timeout (X-TMR-01)."""
    scene = Scene(INTENDED)
    scene.beats("m")
    scene.joins("x")
    scene.send(LeaveGroupRequest("g", (LeaveGroupMember("m"),)))
    assert scene.due(TimerKind.CONSUMER_SESSION, "x") is None
    scene.fail()
    assert scene.due(TimerKind.CONSUMER_SESSION, "x") == 10_000
    assert scene.due(TimerKind.CONSUMER_SESSION, "m") == 45_000


def test_a_group_that_was_replaced_before_it_was_there_is_listed_once() -> None:
    """Readers never see a classic group between an unreplicated downgrade and an upgrade (C-ADM-05)."""
    scene = Scene()
    scene.beats("m")
    scene.joins("x")
    down = scene.state.durable
    scene.send(LeaveGroupRequest("g", (LeaveGroupMember("m"),)))
    up = down + scene.state.undurable
    scene.send(scene.beat("n"))
    shown = []
    for offset in (down, up, up + scene.state.undurable):
        scene.step(Appended(scene.now, offset=offset))
        (reply,) = scene.send(ListGroupsRequest(), version=5).outcome.replies
        assert isinstance(reply.body, ListGroupsResponse)
        shown.append([row.group_type for row in reply.body.groups])
    assert shown == [["consumer"], ["classic"], ["consumer"]]


@pytest.mark.parametrize(("early", "shown"), [(True, 2), (False, 1)])
def test_a_change_that_failed_in_the_next_group_does_not_show_in_the_one_before(early: bool, shown: int) -> None:
    """Readers see the first group and its members until both conversions are replicated (C-ADM-05)."""
    scene = Scene()
    scene.beats("m")
    scene.joins("x")

    def leave_in_vain() -> None:
        scene.send(LeaveGroupRequest("g", (LeaveGroupMember("x"),)))
        scene.fail()

    if early:
        leave_in_vain()
    scene.send(LeaveGroupRequest("g", (LeaveGroupMember("m"),)))
    scene.send(scene.beat("n"))
    if not early:
        leave_in_vain()
    (reply,) = scene.send(ConsumerGroupDescribeRequest(("g",)), version=1).outcome.replies
    assert isinstance(reply.body, ConsumerGroupDescribeResponse)
    assert sorted(row.member_id for row in reply.body.groups[0].members) == ["m", *["x"] * shown]
