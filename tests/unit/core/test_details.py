"""Single rules that no longer sequence covers."""

from __future__ import annotations

import pytest

from fencepost import coordinator
from fencepost.protocol import messages as m
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import Load, TimerKind, Unload
from fencepost.protocol.profiles import KAFKA_4_3
from fencepost.protocol.records import GroupMetadataKey, GroupMetadataValue, Record
from fencepost.protocol.view import GroupState

from .scene import GROUP, Scene

DENIED, DOWN, NO_GROUP = (
    ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.INVALID_GROUP_ID,
)


def bodies(group: str) -> tuple[m.SyncGroupRequest, m.HeartbeatRequest, m.LeaveGroupRequest]:
    return (
        m.SyncGroupRequest(group, generation_id=1, member_id="m", protocol_type="consumer", protocol_name="range"),
        m.HeartbeatRequest(group, generation_id=1, member_id="m"),
        m.LeaveGroupRequest(group, (m.LeaveGroupMember("m"),)),
    )


@pytest.mark.parametrize("index", range(3), ids=["sync", "heartbeat", "leave"])
def test_checks_that_all_share(index: int) -> None:
    """C-SYNC-02, C-HB-01, C-LEAVE-01; C-SYNC-03, C-HB-02, C-LEAVE-02; G-WIRE-27."""

    def error_of(scene: Scene, group: str = GROUP, **more: object) -> ErrorCode:
        answer = scene.answers[scene.ask(bodies(group)[index], **more)]
        return answer.error_code  # type: ignore[union-attr]

    assert error_of(Scene(running=False), denied=frozenset({GROUP})) is DENIED
    assert error_of(Scene(running=False), "") is DOWN
    assert error_of(Scene(), "") is NO_GROUP


def test_a_static_join_creates_a_group() -> None:
    """C-ST-06, C-ST-10, C-ST-20, C-JOIN-12, C-JOIN-20, C-JOIN-33, C-STATIC-01, C-TMR-01, G-DATA-03."""
    scene = Scene()
    waits = scene.join(instance="i")  # no MEMBER_ID_REQUIRED, even in the newest version
    group = scene.group()
    assert (group.state, group.previous_state) == (GroupState.PREPARING_REBALANCE, GroupState.EMPTY)
    assert (group.protocol_type, group.leader) == ("consumer", group.members[0].member_id)
    assert group.members[0].member_id.startswith("i-")  # G-WIRE-28
    assert scene.timer(TimerKind.JOIN) == 3_000
    assert waits not in scene.answers


def test_each_join_without_an_id_is_a_new_one() -> None:
    """C-JOIN-36, C-TMR-05, C-TMR-06, C-TMR-11."""
    scene = Scene()
    first, second = (scene.joined(scene.join(session=7_000)).member_id for _ in range(2))
    assert scene.group().pending_join == {first, second}
    scene.join(first)
    assert scene.timer(TimerKind.SESSION, first) == 300_000  # one key: the pending timer is replaced
    scene.pass_time(7_000)
    assert scene.group().pending_join == frozenset()


def test_order_within_a_list_matters() -> None:
    """C-JOIN-61, C-JOIN-49."""
    scene = Scene()
    name = scene.joined(scene.join("", "a", "b")).member_id
    scene.join(name, "a", "b")
    scene.pass_time(3_000)
    scene.join(name, "a", "b")
    assert scene.group().generation_id == 1
    scene.join(name, "b", "a")
    assert scene.group().generation_id == 2


def test_every_start_from_empty_waits_again() -> None:
    """C-JOIN-65, C-ST-14, C-ST-21, C-JOIN-47, F-ORD-04."""
    scene = Scene()
    (name,) = scene.stable(1)
    scene.leave(name)
    assert scene.group().protocol_name is None
    _, waits = scene.newcomer(kind="connect")  # another type may come (C-JOIN-60)
    assert scene.timer(TimerKind.JOIN) == 3_000
    scene.pass_time(3_000)
    assert scene.joined(waits).protocol_type == "connect"
    assert scene.group().generation_id == 3


def test_the_longest_rebalance_timeout_counts() -> None:
    """C-ST-22, C-TMR-02, C-JOIN-44."""
    scene = Scene()
    scene.newcomer(rebalance=5_000)
    scene.newcomer(rebalance=9_000)
    scene.newcomer(rebalance=-1)
    scene.pass_time(5_000)  # C-JOIN-43: later members with a larger timeout do not extend the delay
    assert scene.timer(TimerKind.SYNC) == 9_000


def test_requests_of_a_static_member_need_not_name_it() -> None:
    """C-STATIC-19, C-STATIC-12."""
    scene = Scene()
    joined = scene.join(instance="i")
    scene.pass_time(3_000)
    name = scene.joined(joined).member_id
    scene.sync(name, 1, {name: b"A"})
    assert scene.heartbeat(name, 1) is ErrorCode.NONE
    scene.join(name)  # the leader under its own id: a rebalance, which ends immediately
    assert scene.group().generation_id == 2
    assert scene.left(scene.leave(name)).members[0].error_code is ErrorCode.NONE


def test_a_return_during_the_initial_delay() -> None:
    """C-STATIC-20, C-STATIC-21, C-JOIN-32."""
    scene = Scene()
    scene.join(instance="i", session=6_000)
    scene.join(instance="i", session=60_000, client="other")
    (member,) = scene.group().members
    assert (member.is_new, member.session_timeout_ms, member.client_id) == (False, 60_000, "c")
    assert not scene.group().new_member_added
    assert scene.timer(TimerKind.SESSION, member.member_id) == 6_000


def test_only_a_member_that_waits_for_its_share_is_armed_again() -> None:
    """C-SYNC-24, C-SYNC-16, C-SYNC-31, F-ORD-02, F-ORD-03."""
    scene = Scene()
    first, _ = scene.newcomer()
    second, _ = scene.newcomer()
    scene.pass_time(6_000)
    written = len(scene.records)
    scene.pass_time(1_000)
    scene.sync(first, 1, {second: b"B"})
    assert len(scene.records) == written + 1
    assert scene.timer(TimerKind.SESSION, first) == 10_000
    assert scene.timer(TimerKind.SESSION, second) == 9_000
    assert scene.group().pending_sync == {second}


def test_the_sync_timer_removes_every_member_that_never_synced() -> None:
    """C-SYNC-20, C-TMR-02, C-ST-11."""
    scene = Scene()
    first, _ = scene.newcomer(rebalance=2_000)
    second, _ = scene.newcomer(rebalance=2_000)
    scene.pass_time(3_000)
    assert scene.now_in is GroupState.COMPLETING_REBALANCE
    scene.pass_time(2_000)
    assert scene.now_in is GroupState.EMPTY
    assert {scene.timer(TimerKind.SESSION, name) for name in (first, second)} == {None}


def test_timers_that_find_nothing_do_nothing() -> None:
    """Timers of a member that has another id by now, and of a group that no longer exists (C-ST-24, C-TMR-09)."""
    scene = Scene(KAFKA_4_3)
    asked = scene.join(instance="i")
    scene.pass_time(3_000)
    old = scene.joined(asked).member_id
    scene.sync(old, 1, {old: b"S"})
    scene.join(instance="i")
    before = scene.group()
    outcome = scene.fire(TimerKind.SESSION, old)
    assert (outcome.records, outcome.replies, scene.group()) == ((), (), before)

    scene = Scene(KAFKA_4_3, log="later")
    scene.join(instance="i")
    scene.fail(ErrorCode.NOT_ENOUGH_REPLICAS)
    assert coordinator.view(scene.state, GROUP) is None
    outcome = scene.fire(TimerKind.JOIN)  # C-TMR-12
    assert (outcome.records, outcome.replies, outcome.timers) == ((), (), ())


def test_an_empty_leave_does_nothing() -> None:
    """C-LEAVE-20, C-LEAVE-27."""
    scene = Scene()
    scene.stable(1)
    assert scene.left(scene.leave()) == m.LeaveGroupResponse(ErrorCode.NONE)
    assert scene.left(scene.leave("who")).members[0].error_code is ErrorCode.UNKNOWN_MEMBER_ID
    assert scene.now_in is GroupState.STABLE


def test_a_leave_may_complete_the_join_phase() -> None:
    """C-LEAVE-22, C-LEAVE-12."""
    scene = Scene()
    first, second = scene.stable(2)
    waits = scene.join(first)
    pending = scene.joined(scene.join()).member_id
    scene.leave(pending)
    assert waits not in scene.answers
    scene.leave(second)
    assert scene.joined(waits).generation_id == 2


def test_a_simple_group() -> None:
    """C-ADM-10, C-ADM-13, C-ADM-04, G-VOC-01, F-ORD-13."""
    scene = Scene()
    scene.feed(Unload(0, leader_epoch=None))
    scene.feed(
        Load(
            0,
            leader_epoch=2,
            records=(
                Record(
                    GroupMetadataKey(GROUP),
                    GroupMetadataValue("", generation=0, protocol=None, leader=None, current_state_timestamp=-1),
                ),
            ),
        )
    )
    listed = scene.answers[scene.ask(m.ListGroupsRequest())]
    assert listed == m.ListGroupsResponse(
        ErrorCode.NONE, (m.ListedGroup(GROUP, protocol_type="", group_state="Empty", group_type="classic"),)
    )
    scene.records = [Record(GroupMetadataKey(GROUP), None)]
    scene.log = "never"
    scene.ask(m.DeleteGroupsRequest((GROUP,)))
    assert scene.records[-1].value is None
    scene.records.pop(0)


def test_a_member_that_waits_in_the_old_generation_heartbeats_in_it() -> None:
    """C-HB-11, C-HB-12, C-HB-09."""
    scene = Scene()
    first, second = scene.stable(2)
    scene.join(first)
    assert scene.heartbeat(second, 1) is ErrorCode.REBALANCE_IN_PROGRESS
    assert scene.heartbeat(second, 2) is ErrorCode.ILLEGAL_GENERATION
    scene.join(second)
    assert scene.heartbeat(second, 2) is ErrorCode.NONE
