"""Static members: replacement by instance id, and the records of it."""

from __future__ import annotations

import pytest

from fencepost.protocol import messages as m
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import TimerKey, TimerKind
from fencepost.protocol.profile import Profile
from fencepost.protocol.profiles import INTENDED, KAFKA_4_3
from fencepost.protocol.view import GroupState

from .scene import GROUP, Scene

BOTH = pytest.mark.parametrize("profile", [KAFKA_4_3, INTENDED], ids=lambda profile: profile.name)


def stable(scene: Scene) -> tuple[str, str]:
    """Return a static leader ``i`` and a dynamic follower, Stable in generation 1."""
    leads = scene.join(instance="i")
    follower, _ = scene.newcomer()
    scene.pass_time(6_000)
    leader = scene.joined(leads).member_id
    scene.sync(follower, 1)
    scene.sync(leader, 1, {leader: b"L", follower: b"F"})
    if scene.log == "later":
        scene.replicate()
    return leader, follower


@BOTH
def test_a_static_member_comes_back_without_a_rebalance(profile: Profile) -> None:
    scene = Scene(profile)
    old, _ = stable(scene)
    back = scene.joined(scene.join("", "range", instance="i", session=20_000, client="elsewhere"))
    new = back.member_id
    assert new != old
    assert (back.error_code, back.generation_id, back.leader, back.skip_assignment) == (0, 1, new, True)  # C-STATIC-04
    assert len(back.members) == 2
    assert scene.now_in is GroupState.STABLE
    member = scene.member(new)
    assert (member.client_id, member.session_timeout_ms, member.assignment) == ("c", 20_000, b"L")  # C-STATIC-02
    value = scene.records[-1].value
    assert value is not None
    assert {row.member_id for row in value.members} >= {new}
    assert scene.timer(TimerKind.SESSION, new) == 10_000  # the old timeout, until it is armed again
    assert scene.synced(scene.sync(new, 1)).assignment == b"L"
    assert scene.heartbeat(old, 1) is ErrorCode.UNKNOWN_MEMBER_ID
    assert scene.heartbeat(old, 1, "i") is ErrorCode.FENCED_INSTANCE_ID
    assert scene.heartbeat(new, 1) is ErrorCode.NONE
    assert scene.timer(TimerKind.SESSION, new) == 20_000
    assert TimerKey(TimerKind.SESSION, GROUP, old) in scene.timers  # fires without effect
    scene.pass_time(9_999)
    scene.heartbeat(new, 1)
    scene.pass_time(1)
    assert new in {member.member_id for member in scene.group().members}


def test_before_version_9_the_leader_id_is_the_old_one() -> None:
    scene = Scene()
    old, _ = stable(scene)
    back = scene.joined(scene.join(instance="i", version=8))
    assert (back.leader, back.skip_assignment, back.members) == (old, False, ())  # C-STATIC-05


def test_another_vote_is_a_rebalance() -> None:
    scene = Scene()
    joined = scene.join("", "a", "b", instance="i")
    scene.pass_time(3_000)
    leader = scene.joined(joined).member_id
    scene.sync(leader, 1, {}, protocol_name="a")
    scene.join("", "b", "a", instance="i")
    assert scene.now_in is GroupState.COMPLETING_REBALANCE  # C-STATIC-08; it was the only member
    assert scene.group().generation_id == 2
    assert scene.group().protocol_name == "b"


def test_replacement_while_completing_rebalances_and_fences_the_waiting_member() -> None:
    scene = Scene()
    leads = scene.join(instance="i")
    follower, _ = scene.newcomer()
    scene.pass_time(6_000)
    old = scene.joined(leads).member_id
    waits = scene.sync(follower, 1)
    scene.join(instance="i")
    assert scene.synced(waits).error_code is ErrorCode.REBALANCE_IN_PROGRESS  # C-STATIC-09
    assert scene.now_in is GroupState.PREPARING_REBALANCE
    again = scene.join(instance="i")  # C-STATIC-10: the parked join of the first is fenced
    fenced = scene.joined(again - 1)
    assert (fenced.error_code, fenced.protocol_name) == (ErrorCode.FENCED_INSTANCE_ID, None)
    assert fenced.member_id != old


def test_an_absent_static_member_is_part_of_the_next_generation() -> None:
    scene = Scene()
    leader, follower = stable(scene)
    scene.join(follower, "range", data=b"new")
    for _ in range(5):
        scene.pass_time(6_000)
        scene.heartbeat(leader, 1)
    assert scene.group().generation_id == 2  # C-STATIC-14
    assert leader in scene.group().pending_sync
    assert scene.group().leader == follower


def test_only_absent_static_members_keep_the_phase_open() -> None:
    scene = Scene()
    leads = scene.join(instance="i", session=1_800_000)
    scene.pass_time(3_000)
    leader = scene.joined(leads).member_id
    scene.sync(leader, 1, {leader: b"L"})
    name, _ = scene.newcomer()
    scene.leave(name)
    scene.pass_time(30_000)
    assert scene.now_in is GroupState.PREPARING_REBALANCE  # C-JOIN-46
    assert scene.timer(TimerKind.JOIN) == 30_000


@BOTH
def test_a_failed_append_puts_the_old_id_back(profile: Profile) -> None:
    scene = Scene(profile)
    old, _ = stable(scene)
    before = scene.group()
    scene.log = "never"
    back = scene.join("", "range", instance="i", data=b"new", rebalance=99)
    scene.fail(ErrorCode.NOT_ENOUGH_REPLICAS)
    answer = scene.joined(back)
    assert (answer.error_code, answer.generation_id) == (ErrorCode.COORDINATOR_NOT_AVAILABLE, 1)  # C-STATIC-06
    assert (answer.leader, answer.member_id) == (old, "")
    assert scene.group() == before
    assert scene.timer(TimerKind.SESSION, old) == 10_000


def test_a_timeout_puts_the_old_id_back_in_kafka_only() -> None:
    for profile, stays in ((KAFKA_4_3, False), (INTENDED, True)):
        scene = Scene(profile)
        old, _ = stable(scene)
        scene.log = "never"
        back = scene.join(instance="i")
        scene.pass_time(5_000)
        assert scene.joined(back).error_code is ErrorCode.COORDINATOR_NOT_AVAILABLE
        new = dict(scene.group().static_members)["i"]
        assert (new != old) is stays
        assert not scene.member(new).awaiting_join
        assert scene.timer(TimerKind.SESSION, new) == 10_000
        scene.replicate()
        assert dict(scene.group().static_members)["i"] == new


def test_pending_sync_moves_with_the_member_unless_kafka_does_it() -> None:
    for profile in (KAFKA_4_3, INTENDED):
        scene = Scene(profile)
        leads, _ = scene.newcomer()
        static = scene.join(instance="i")
        scene.pass_time(6_000)
        old = scene.joined(static).member_id
        scene.sync(leads, 1, {leads: b"L", old: b"S"})
        new = scene.joined(scene.join(instance="i")).member_id
        scene.sync(new, 1)
        expected = {old} if profile is KAFKA_4_3 else set()
        assert scene.group().pending_sync == expected  # C-STATIC-16
        assert (scene.timer(TimerKind.SYNC) is None) is (profile is INTENDED)


def test_the_sync_timer_spares_a_member_that_has_just_come_back() -> None:
    """The member must still sync, but its own JoinGroup is open, and the rebalance answers it (C-STATIC-16,
    C-SYNC-20)."""
    scene = Scene()
    leads, _ = scene.newcomer()
    static = scene.join(instance="i")
    scene.pass_time(6_000)
    old = scene.joined(static).member_id
    scene.sync(leads, 1, {leads: b"L", old: b"S"})
    scene.log = "later"
    back = scene.join(instance="i")
    new = dict(scene.group().static_members)["i"]
    assert scene.group().pending_sync == {new}
    scene.fire(TimerKind.SYNC)
    assert scene.now_in is GroupState.PREPARING_REBALANCE
    assert scene.member(new).awaiting_join
    scene.join(leads)
    assert (scene.joined(back).member_id, scene.joined(back).generation_id) == (new, 2)
    scene.replicate()  # C-STATIC-17(iii)
    assert scene.group().pending_sync == {leads, new}
    scene.pass_time(5_000)
    assert scene.now_in is GroupState.COMPLETING_REBALANCE


def test_the_sync_timer_removes_a_returning_member_that_was_answered() -> None:
    """Whether the record was stored or not, no member waits under the id any longer (C-SYNC-20)."""
    for log, wait in (("at once", 0), ("never", 5_000)):
        scene = Scene()
        leads, _ = scene.newcomer()
        static = scene.join(instance="i")
        scene.pass_time(6_000)
        old = scene.joined(static).member_id
        scene.sync(leads, 1, {leads: b"L", old: b"S"})
        scene.log = log
        back = scene.join(instance="i")
        scene.pass_time(wait)
        assert back in scene.answers
        scene.fire(TimerKind.SYNC)
        assert scene.now_in is GroupState.PREPARING_REBALANCE
        assert scene.group().static_members == ()


def test_a_static_return_at_capacity() -> None:
    for profile, code in ((KAFKA_4_3, ErrorCode.GROUP_MAX_SIZE_REACHED), (INTENDED, ErrorCode.NONE)):
        scene = Scene(profile, group_max_size=2)
        stable(scene)
        assert scene.joined(scene.join(instance="i")).error_code is code  # C-JOIN-75


def test_while_the_append_is_open_a_rebalance_may_start() -> None:
    scene = Scene(log="later")
    scene.replicate()
    leader, follower = stable(scene)
    back = scene.join(instance="i")
    new = dict(scene.group().static_members)["i"]
    assert scene.member(new).awaiting_join  # C-STATIC-17
    scene.join(follower, "range", data=b"new")
    assert scene.joined(back).generation_id == 2  # both wait, so the round ends immediately
    scene.replicate()
    assert scene.joined(back).skip_assignment is False
    assert leader != new


def test_undoing_a_chain_of_replacements_mixes_members_up_in_kafka() -> None:
    scene = Scene(KAFKA_4_3)
    stable(scene)
    scene.log = "never"
    first = scene.join("", "range", instance="i", rebalance=1)
    second = scene.join("", "range", instance="i", rebalance=2)
    assert scene.joined(first).error_code is ErrorCode.FENCED_INSTANCE_ID
    fenced = scene.joined(first).member_id
    scene.pass_time(5_000)
    assert scene.joined(second).error_code is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert dict(scene.group().static_members)["i"] == fenced  # C-STATIC-18: an id that no member has


def test_administrative_removal_by_instance_id() -> None:
    scene = Scene()
    leader, _ = stable(scene)
    left = scene.left(scene.leave(m.LeaveGroupMember("", group_instance_id="i")))
    assert left.members[0] == m.LeaveGroupMemberResponse(
        "", group_instance_id="i", error_code=ErrorCode.NONE
    )  # C-LEAVE-10
    assert leader not in {member.member_id for member in scene.group().members}
    assert scene.group().static_members == ()
