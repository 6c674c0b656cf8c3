"""Dynamic members in whole rounds: join, sync, heartbeat, leave, expire."""

from __future__ import annotations

from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import TimerKind
from fencepost.protocol.view import GroupState

from .scene import Scene


def test_members_share_a_generation_after_the_initial_delay() -> None:
    scene = Scene()
    first, joined_first = scene.newcomer()
    second, joined_second = scene.newcomer()
    assert scene.now_in is GroupState.PREPARING_REBALANCE
    scene.pass_time(6_000)  # C-JOIN-43: a newcomer in the first window adds another
    leader, follower = scene.joined(joined_first), scene.joined(joined_second)
    assert leader.generation_id == follower.generation_id == 1
    assert leader.leader == follower.leader == first
    assert [row.member_id for row in leader.members] == [first, second]
    assert follower.members == ()
    assert scene.group().pending_sync == {first, second}
    waits = scene.sync(second, 1)
    assert waits not in scene.answers
    sent = scene.sync(first, 1, {first: b"A", second: b"B"})
    assert scene.synced(sent).assignment == b"A"
    assert scene.synced(waits).assignment == b"B"
    assert scene.now_in is GroupState.STABLE
    assert scene.heartbeat(second, 1) is ErrorCode.NONE
    assert scene.heartbeat(second, 0) is ErrorCode.ILLEGAL_GENERATION
    assert scene.heartbeat("who", 1) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_new_member_makes_all_rejoin() -> None:
    scene = Scene()
    first, second = scene.stable(2)
    third, joined = scene.newcomer()
    assert scene.now_in is GroupState.PREPARING_REBALANCE
    assert scene.heartbeat(first, 1) is ErrorCode.REBALANCE_IN_PROGRESS
    scene.join(first)
    assert joined not in scene.answers
    scene.join(second)
    assert scene.joined(joined).generation_id == 2
    assert {member.member_id for member in scene.group().members} == {first, second, third}


def test_a_member_that_does_not_rejoin_is_removed_by_the_join_timer() -> None:
    scene = Scene()
    first, second = scene.stable(2)
    again = scene.join(first)
    assert scene.timer(TimerKind.JOIN) == 30_000
    scene.heartbeat(second, 1)
    for _ in range(3):
        scene.pass_time(9_000)
        scene.heartbeat(second, 1)
    scene.pass_time(3_000)
    assert scene.joined(again).generation_id == 2
    assert [member.member_id for member in scene.group().members] == [first]
    assert scene.timer(TimerKind.SESSION, second) is None


def test_a_silent_member_expires_and_the_rest_rebalances() -> None:
    scene = Scene()
    first, second = scene.stable(2)
    for _ in range(2):
        scene.pass_time(6_000)
        scene.heartbeat(first, 1)
    assert [member.member_id for member in scene.group().members] == [first]
    assert scene.now_in is GroupState.PREPARING_REBALANCE
    assert second not in scene.group().pending_sync


def test_a_member_that_never_syncs_is_removed_by_the_sync_timer() -> None:
    scene = Scene()
    first, _ = scene.newcomer()
    second, _ = scene.newcomer()
    scene.pass_time(6_000)
    waits = scene.sync(second, 1)
    for _ in range(5):
        scene.pass_time(6_000)
        if waits not in scene.answers:
            scene.heartbeat(first, 1)
    assert scene.synced(waits).error_code is ErrorCode.REBALANCE_IN_PROGRESS
    assert [member.member_id for member in scene.group().members] == [second]


def test_the_last_member_leaves_an_empty_group_behind() -> None:
    scene = Scene()
    (only,) = scene.stable(1)
    left = scene.leave(only)
    assert scene.left(left).error_code is ErrorCode.NONE
    group = scene.group()
    assert (group.state, group.generation_id, group.leader) == (GroupState.EMPTY, 2, None)
    assert group.protocol_type == "consumer"
    value = scene.records[-1].value
    assert value is not None
    assert (value.generation, value.members) == (2, ())


def test_a_pending_id_that_is_not_used_is_forgotten() -> None:
    scene = Scene()
    given = scene.joined(scene.join("", session=7_000))
    assert scene.group().pending_join == {given.member_id}
    scene.pass_time(7_000)
    assert scene.group().pending_join == frozenset()
    assert scene.joined(scene.join(given.member_id)).error_code is ErrorCode.UNKNOWN_MEMBER_ID
