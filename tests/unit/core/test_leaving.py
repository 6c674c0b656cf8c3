"""LeaveGroup and the expiry of sessions."""

from __future__ import annotations

from fencepost.protocol import messages as m
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import TimerKind
from fencepost.protocol.profiles import INTENDED, KAFKA_4_3
from fencepost.protocol.view import GroupState

from .scene import Scene

NONE, UNKNOWN = ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID


def test_a_batch_is_one_rebalance_with_one_row_each() -> None:
    scene = Scene()
    first, second, third = scene.stable(3)
    pending = scene.joined(scene.join()).member_id
    left = scene.left(
        scene.leave(first, "who", first, pending, m.LeaveGroupMember("", group_instance_id="i"), m.LeaveGroupMember(""))
    )
    assert [row.error_code for row in left.members] == [NONE, UNKNOWN, UNKNOWN, NONE, UNKNOWN, UNKNOWN]
    assert scene.now_in is GroupState.PREPARING_REBALANCE
    assert scene.group().pending_join == frozenset()
    assert {member.member_id for member in scene.group().members} == {second, third}


def test_old_versions_lift_the_error() -> None:
    scene = Scene()
    assert scene.left(scene.leave("who", version=2)) == m.LeaveGroupResponse(UNKNOWN)  # C-LEAVE-03, G-WIRE-23
    assert scene.left(scene.leave("who")).error_code is NONE
    (only,) = scene.stable(1)
    assert scene.left(scene.leave(only, version=0)) == m.LeaveGroupResponse(NONE)


def test_a_pending_id_that_leaves_rebalances_a_stable_group() -> None:
    scene = Scene()
    scene.stable(1)
    pending = scene.joined(scene.join()).member_id
    scene.leave(m.LeaveGroupMember(pending, group_instance_id="whatever"))
    assert scene.now_in is GroupState.PREPARING_REBALANCE  # C-LEAVE-21, C-LEAVE-27
    assert scene.timer(TimerKind.SESSION, pending) is None


def test_a_parked_join_learns_that_its_member_is_gone() -> None:
    scene = Scene()
    first, second = scene.stable(2)
    waits = scene.join(first)
    scene.leave(first)
    answer = scene.joined(waits)
    assert (answer.error_code, answer.member_id) == (UNKNOWN, "")  # C-LEAVE-14
    assert scene.group().leader == second


def test_a_parked_sync_is_forgotten_by_kafka_only() -> None:
    for profile in (KAFKA_4_3, INTENDED):
        scene = Scene(profile)
        scene.newcomer()
        second, _ = scene.newcomer()
        scene.pass_time(6_000)
        waits = scene.sync(second, 1)
        scene.leave(second)
        if profile is KAFKA_4_3:
            assert waits not in scene.answers  # C-LEAVE-24
        else:
            assert scene.synced(waits).error_code is UNKNOWN


def test_leaving_during_the_initial_delay_does_not_end_it() -> None:
    scene = Scene()
    first, _ = scene.newcomer()
    scene.leave(first)
    group = scene.group()
    assert (group.state, group.leader, group.protocol_type) == (GroupState.PREPARING_REBALANCE, None, "consumer")
    scene.pass_time(3_000)
    assert scene.now_in is GroupState.EMPTY  # C-ST-26
    assert scene.group().generation_id == 1


def test_an_expiry_during_the_initial_delay_can_end_it() -> None:
    scene = Scene(group_initial_rebalance_delay_ms=60_000)
    _, waits = scene.newcomer()
    scene.join("", session=6_000)
    scene.pass_time(6_000)
    assert scene.joined(waits).generation_id == 1  # C-TMR-08


def test_a_waiting_member_does_not_expire_unless_it_is_new() -> None:
    scene = Scene()
    first, second = scene.stable(2)
    old = scene.join(first, rebalance=400_000)
    new, joined = scene.newcomer(rebalance=400_000)
    for _ in range(45):
        scene.pass_time(7_000)
        scene.heartbeat(second, 1)
    assert scene.joined(joined).error_code is UNKNOWN  # C-TMR-03, C-TMR-07
    assert new not in {member.member_id for member in scene.group().members}
    assert old not in scene.answers
    assert scene.timer(TimerKind.SESSION, first) is None  # C-TMR-14


def test_a_new_member_that_heartbeats_is_watched_at_its_session_timeout() -> None:
    scene = Scene()
    scene.stable(2)
    new, joined = scene.newcomer(session=6_000)
    assert scene.heartbeat(new, 1) is ErrorCode.REBALANCE_IN_PROGRESS  # C-HB-13
    scene.pass_time(6_000)
    assert scene.joined(joined).error_code is UNKNOWN


def test_the_leave_that_empties_a_group_waits_for_its_record() -> None:
    scene = Scene()
    (only,) = scene.stable(1)
    scene.log = "later"
    left = scene.leave(only)
    assert left not in scene.answers  # F-RT-25
    scene.replicate()
    assert scene.left(left).error_code is NONE
    scene = Scene()
    (again,) = scene.stable(1)
    scene.log = "never"
    left = scene.leave(again)
    scene.fail(ErrorCode.NOT_ENOUGH_REPLICAS)
    assert scene.left(left).error_code is ErrorCode.COORDINATOR_NOT_AVAILABLE  # C-LEAVE-23
    assert scene.now_in is GroupState.EMPTY
