"""Members that leave, records that fail, logs that are loaded again, and the views of administrators (7.8–7.10,
11.2–11.6)."""

from __future__ import annotations

import pytest

from fencepost import coordinator
from fencepost.protocol import consumer_messages as c
from fencepost.protocol import messages as m
from fencepost.protocol.consumer_view import ConsumerGroupState, MemberState
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import AppendFailed, Load, TimerKind, Unload
from fencepost.protocol.profile import Profile
from fencepost.protocol.profiles import INTENDED, KAFKA_4_3
from fencepost.protocol.records import GroupMetadataKey, Record
from fencepost.protocol.settings import Settings

from .consumer_scene import LATER, A, ConsumerScene, kinds, plain, settled
from .scene import GROUP

ALL = {A: (0, 1, 2, 3)}
GONE = ["Current†", "TargetMember†", "MemberMetadata†", "GroupEpoch"]


def test_leaving_frees_the_partitions_and_bumps_once() -> None:
    """A leave is accepted at any epoch (M-LEAVE-02, 03, M-TGT-07, M-EPOCH-04, M-RSP-04, F-ORD-07)."""
    scene = settled()
    epoch, count = scene.seen.group_epoch, len(scene.records)
    assert scene.ok("m2", -1) == c.ConsumerGroupHeartbeatResponse(ErrorCode.NONE, member_id="m2", member_epoch=-1)
    assert scene.written(count) == GONE
    assert (scene.seen.group_epoch, scene.seen.state) == (epoch + 1, ConsumerGroupState.ASSIGNING)
    assert {number for _, number, _ in scene.seen.partition_epochs} == {0, 1}
    assert [name for name, _ in scene.seen.target] == ["m1"]
    assert scene.timer(TimerKind.CONSUMER_SESSION, "m2") is None
    assert scene.error("m2", -1) is ErrorCode.UNKNOWN_MEMBER_ID


def test_the_last_to_leave_leaves_the_epochs_behind() -> None:
    """M-LEAVE-04, M-ST-01, M-LEAVE-01."""
    scene = ConsumerScene()
    scene.come("m1", "a")
    scene.ok("m1", -1)
    assert (scene.seen.state, scene.seen.group_epoch, scene.seen.metadata_hash) == (ConsumerGroupState.EMPTY, 3, 0)
    scene.pass_time(LATER)
    assert scene.come("m2", "a").member_epoch == 4
    assert scene.error("m", -1, group="other") is ErrorCode.GROUP_ID_NOT_FOUND


def test_only_the_holder_of_an_instance_id_leaves_with_it() -> None:
    """M-LEAVE-02, M-RSP-04."""
    scene = ConsumerScene()
    scene.come("m1", "a", instance="i")
    assert scene.error("m2", -1, instance="i") is ErrorCode.FENCED_INSTANCE_ID
    assert scene.error("m1", -2, instance="j") is ErrorCode.UNKNOWN_MEMBER_ID
    assert scene.ok("m1", -2, instance="i").member_epoch == -2
    count = len(scene.records)
    scene.ok("m1", -2, instance="i")
    assert scene.written(count) == ["Current"]  # M-LEAVE-05
    scene.ok("m1", -1, instance="i")
    assert scene.seen.static_members == ()


def test_a_silent_member_is_fenced() -> None:
    """M-TMR-01, M-LEAVE-07, M-HB-09, M-STATIC-12."""
    scene = ConsumerScene()
    scene.come("m1", "a", instance="i")
    scene.pass_time(30_000)
    scene.ok("m1", 2)
    scene.pass_time(44_999)
    count = len(scene.records)
    scene.pass_time(1)
    assert scene.written(count) == [*GONE, "TargetEpoch"]
    assert scene.seen.members == ()


def test_a_member_that_does_not_let_go_is_fenced() -> None:
    """M-TMR-02, M-PE-03."""
    scene = ConsumerScene()
    scene.come("m1", "a", timeout=7_000)
    scene.pass_time(LATER)
    scene.come("m2", "a")
    scene.ok("m1", 2, None, ALL)
    scene.pass_time(6_999)
    scene.ok("m1", 2, None, ALL)
    scene.pass_time(1)
    assert [row.member_id for row in scene.seen.members] == ["m2"]
    assert plain(scene.ok("m2", 3, None, {}).assignment or ()) == ALL


def test_a_rebalance_timer_of_another_epoch_does_nothing() -> None:
    """A member at another epoch has revoked by then (M-TMR-02)."""
    scene = ConsumerScene()
    scene.come("m1", "a", timeout=7_000, instance="i")
    scene.pass_time(LATER)
    scene.come("m2", "a")
    scene.ok("m1", 2, None, ALL)
    scene.ok("m1", -2, instance="i")
    scene.pass_time(8_000)
    assert scene.who("m1").member_epoch == -2


def test_a_timer_whose_records_fail_is_set_again() -> None:
    """NOT_COORDINATOR ends the timer (M-TMR-08, F-RT-17)."""
    scene = settled()
    scene.log = "later"
    scene.fire(TimerKind.CONSUMER_SESSION, "m1")
    assert len(scene.seen.members) == 1
    scene.fail(ErrorCode.NOT_ENOUGH_REPLICAS, len(GONE))
    assert len(scene.seen.members) == 2
    assert scene.timer(TimerKind.CONSUMER_SESSION, "m1") == 500


def test_a_failed_append_takes_the_change_back_but_not_the_timers() -> None:
    """F-RT-08, M-HB-13, M-TMR-10, M-META-02."""
    scene = settled()
    scene.log = "later"
    before = scene.seen
    scene.topics()
    count = len(scene.records)
    scene.beat("m3", 0, ("a",), {}, timeout=5)
    assert len(scene.seen.members) == 3
    scene.fail(ErrorCode.NOT_LEADER_OR_FOLLOWER, len(scene.records) - count)
    after = scene.seen
    assert after.members == before.members
    assert after.group_epoch == before.group_epoch
    assert after.refresh_deadline == (scene.now + 2_147_483_647, before.group_epoch + 1)
    assert scene.timer(TimerKind.CONSUMER_SESSION, "m3") == 45_000
    answer = scene.answers[scene.ids]
    assert isinstance(answer, c.ConsumerGroupHeartbeatResponse)
    assert answer.error_code is ErrorCode.NOT_COORDINATOR  # F-RT-10
    scene.beat("m1", scene.who("m1").member_epoch)
    assert scene.seen.group_epoch == before.group_epoch + 1  # M-META-02: the lost change is found again


def test_a_group_whose_first_records_fail_is_removed() -> None:
    """F-RT-08."""
    scene = ConsumerScene(log="later")
    scene.beat("m1", 0, ("a",), {}, timeout=5)
    scene.fail(ErrorCode.MESSAGE_TOO_LARGE, len(scene.records))
    assert coordinator.consumer_view(scene.state, GROUP) is None
    assert scene.error("m1", 2) is ErrorCode.GROUP_ID_NOT_FOUND


def test_answers_wait_for_the_log() -> None:
    """An answer without records waits too (M-HB-11, F-RT-07, F-RT-26)."""
    scene = ConsumerScene(log="later")
    assert scene.beat("m1", 0, ("a",), {}, timeout=5) is None
    assert scene.beat("m1", 2) is None
    scene.replicate()
    assert len(scene.answers) == 2


def test_describe_and_list_show_replicated_state() -> None:
    """M-DESC-01, F-RT-11, C-ADM-05, C-ADM-08, G-WIRE-11."""
    scene = ConsumerScene(log="later")
    scene.beat("m1", 0, ("a",), {}, timeout=5, rack="r")
    assert scene.described()[0].error_code is ErrorCode.GROUP_ID_NOT_FOUND
    scene.replicate()
    scene.beat("m2", 0, ("a",), {}, timeout=5)
    (group,) = scene.described()
    assert (group.group_state, group.group_epoch, group.assignment_epoch) == ("Stable", 2, 2)
    (member,) = group.members
    assert (member.member_id, member.rack_id, member.member_type) == ("m1", "r", 1)
    assert [(row.topic_name, row.partitions) for row in member.assignment] == [("a", (0, 1, 2, 3))]
    assert scene.described(0)[0].members[0].member_type == -1
    listed = scene.answers[scene.ask(m.ListGroupsRequest(states_filter=("STABLE",), types_filter=("Consumer",)))]
    assert listed == m.ListGroupsResponse(
        ErrorCode.NONE, (m.ListedGroup(GROUP, protocol_type="consumer", group_state="Stable", group_type="consumer"),)
    )
    scene.replicate()
    assert len(scene.described()[0].members) == 2


def test_describe_shows_partitions_being_revoked_and_respects_rights() -> None:
    """M-DESC-01, V-16, C-ADM-06, C-ADM-02."""
    scene = ConsumerScene()
    scene.come("m1", "a")
    scene.pass_time(LATER)
    scene.come("m2", "a")
    scene.ok("m1", 2, None, ALL)
    assert scene.described()[0].members[0].assignment[0].partitions == (0, 1, 2, 3)
    assert scene.described(1, "", GROUP)[0].error_code is ErrorCode.INVALID_GROUP_ID
    (hidden,) = scene.described(denied_topics=frozenset({"a"}))
    assert (hidden.error_code, hidden.members) == (ErrorCode.TOPIC_AUTHORIZATION_FAILED, ())
    (denied,) = scene.described(denied=frozenset({GROUP}))
    assert denied.error_code is ErrorCode.GROUP_AUTHORIZATION_FAILED
    scene.topics()
    assert scene.described()[0].members[0].assignment == ()
    classic = scene.answers[scene.ask(m.DescribeGroupsRequest((GROUP,)))]
    assert isinstance(classic, m.DescribeGroupsResponse)
    assert classic.groups[0].error_code is ErrorCode.GROUP_ID_NOT_FOUND


@pytest.mark.parametrize(("profile", "shown"), [(KAFKA_4_3, 2), (INTENDED, 1)])
def test_kafka_shows_a_member_twice_whose_change_failed(profile: Profile, shown: int) -> None:
    """C-ADM-05, F-RT-08."""
    scene = settled(profile)
    scene.log = "later"
    count = len(scene.records)
    scene.beat("m1", scene.who("m1").member_epoch, ("a", "b"))
    scene.fail(ErrorCode.NOT_ENOUGH_REPLICAS, len(scene.records) - count)
    names = [row.member_id for row in scene.described()[0].members]
    assert names == ["m1"] * shown + ["m2"]


def test_only_an_empty_group_is_deleted() -> None:
    """C-ADM-09, F-ORD-09, F-ORD-13."""
    scene = settled()
    delete = m.DeleteGroupsRequest((GROUP,))
    refused = scene.answers[scene.ask(delete)]
    assert refused == m.DeleteGroupsResponse((m.DeletedGroup(GROUP, ErrorCode.NON_EMPTY_GROUP),))
    scene.ok("m1", -1)
    scene.ok("m2", -1)
    count = len(scene.records)
    assert scene.answers[scene.ask(delete)] == m.DeleteGroupsResponse((m.DeletedGroup(GROUP, ErrorCode.NONE),))
    assert scene.written(count) == ["TargetEpoch†", "PartitionMetadata†", "GroupEpoch†"]
    assert not scene.state.groups


def test_an_empty_classic_group_gives_way() -> None:
    """M-VAL-22, F-ORD-16, F-REPLAY-16."""
    scene = ConsumerScene()
    member, _ = scene.newcomer()
    scene.pass_time(10_000)
    scene.leave(member)
    count = len(scene.records)
    scene.come("m1", "a")
    assert scene.records[count] == Record(GroupMetadataKey(GROUP), None)
    assert kinds(scene.records[count + 1 :])[0] == "MemberMetadata"
    assert coordinator.view(scene.state, GROUP) is None
    assert scene.seen.group_epoch == 3  # generation 2 and a bump


def test_an_empty_consumer_group_gives_way() -> None:
    """The log has the tombstones before the record of the new group (C-JOIN-10, C-JOIN-16, F-ORD-16)."""
    scene = ConsumerScene()
    scene.come("m1", "a")
    scene.ok("m1", -1)
    count = len(scene.records)
    scene.newcomer(session=10_000)
    assert kinds(scene.records[count : count + 3]) == ["TargetEpoch†", "PartitionMetadata†", "GroupEpoch†"]
    assert isinstance(scene.records[count + 3].key, GroupMetadataKey)
    assert coordinator.consumer_view(scene.state, GROUP) is None
    fresh = coordinator.replay(coordinator.initial_state(Settings(), INTENDED), scene.records)
    assert coordinator.view(fresh, GROUP) is not None


@pytest.mark.parametrize("profile", [KAFKA_4_3, INTENDED])
def test_a_join_with_an_id_must_not_forget_an_empty_consumer_group(profile: Profile) -> None:
    """Fixed under ``intended``; in Kafka memory forgets the group, the log keeps it, and its epochs start again
    (C-JOIN-15)."""
    scene = ConsumerScene(profile)
    scene.come("m1", "a")
    scene.ok("m1", -1)
    count = len(scene.records)
    assert scene.joined(scene.join("somebody")).error_code is ErrorCode.UNKNOWN_MEMBER_ID
    assert len(scene.records) == count
    assert scene.described()[0].group_state == "Empty"
    scene.pass_time(LATER)
    assert scene.come("m2", "a").member_epoch == (2 if profile is KAFKA_4_3 else 4)


def test_a_forgotten_group_is_back_when_the_next_append_fails() -> None:
    """C-JOIN-15(a)."""
    scene = ConsumerScene(KAFKA_4_3)
    scene.come("m1", "a")
    scene.ok("m1", -1)
    scene.join("somebody")
    assert coordinator.consumer_view(scene.state, GROUP) is None
    scene.log = "later"
    count = len(scene.records)
    scene.beat("x", 0, ("a",), {}, timeout=5, group="other")
    scene.fail(ErrorCode.NOT_ENOUGH_REPLICAS, len(scene.records) - count)
    assert scene.seen.group_epoch == 3


def test_loading_restores_the_records_and_starts_the_timers() -> None:
    """F-LOAD-04, F-LOAD-05, F-SURV-04, M-META-04, F-REPLAY-07…11."""
    scene = settled()
    scene.pass_time(LATER)
    scene.come("m3", "a")
    scene.pass_time(LATER)
    scene.come("m4", "a")
    scene.ok("m1", scene.who("m1").member_epoch, None, plain(scene.who("m1").assigned))
    before = scene.seen
    assert any(row.state is MemberState.UNREVOKED_PARTITIONS for row in before.members)
    scene.feed(Unload(scene.now, leader_epoch=None))
    assert not scene.timers
    assert coordinator.consumer_view(scene.state, GROUP) is None
    scene.feed(Load(scene.now, leader_epoch=5, records=tuple(scene.records)))
    assert scene.seen.refresh_deadline is None
    assert {**_fields(scene.seen), "refresh_deadline": 0} == {**_fields(before), "refresh_deadline": 0}
    for row in before.members:
        assert scene.timer(TimerKind.CONSUMER_SESSION, row.member_id) == 45_000
        revoking = row.state is MemberState.UNREVOKED_PARTITIONS
        assert (scene.timer(TimerKind.CONSUMER_REBALANCE, row.member_id) is not None) is revoking


def _fields(view: object) -> dict[str, object]:
    return {name: getattr(view, name) for name in view.__slots__}  # type: ignore[attr-defined]


def test_records_that_contradict_each_other_fail_the_load() -> None:
    """A record that a later one supersedes causes a contradiction in Kafka only (F-REPLAY-06, 07, 10, 11, 13, 14,
    18)."""
    scene = settled()
    of = dict(zip(kinds(scene.records), scene.records, strict=True))
    for log, profile in (
        ([of["MemberMetadata"], Record(of["GroupEpoch"].key, None)], INTENDED),
        ([of["TargetMember"], Record(of["TargetEpoch"].key, None)], INTENDED),
        ([of["MemberMetadata"], Record(of["MemberMetadata"].key, None)], KAFKA_4_3),
    ):
        fresh = ConsumerScene(profile)
        fresh.feed(Unload(0, leader_epoch=None))
        fresh.feed(Load(0, leader_epoch=3, records=tuple(log)))
        assert fresh.error("m1", 0, ("a",), {}, timeout=5) is ErrorCode.NOT_COORDINATOR
    lone = ConsumerScene()
    lone.feed(Unload(0, leader_epoch=None))
    lone.feed(Load(0, leader_epoch=3, records=tuple(Record(record.key, None) for record in of.values())))
    assert not lone.state.groups


def test_a_retry_of_the_last_step_is_refused_by_a_driver_that_wrote_nothing() -> None:
    """``AppendFailed`` belongs to a step with records (F-RT-08)."""
    scene = settled()
    scene.ok("m1", scene.who("m1").member_epoch)
    with pytest.raises(ValueError, match="wrote nothing"):
        scene.feed(AppendFailed(scene.now, ErrorCode.NOT_ENOUGH_REPLICAS))
