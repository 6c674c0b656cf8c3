"""JoinGroup: admission, the order of the checks, and rejoins."""

from __future__ import annotations

import pytest

from fencepost.protocol import messages as m
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import TimerKind, Unload
from fencepost.protocol.profiles import KAFKA_4_3
from fencepost.protocol.view import GroupState

from .scene import GROUP, Scene


def error(scene: Scene, request_id: int) -> tuple[ErrorCode, str]:
    answer = scene.joined(request_id)
    assert (answer.generation_id, answer.leader, answer.members) == (-1, "", ())
    return answer.error_code, answer.member_id


def test_checks_before_the_group() -> None:
    scene = Scene()
    body = m.JoinGroupRequest(
        GROUP,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=30_000,
        member_id="m",
        protocol_type="consumer",
        protocols=(m.Protocol("range", b""),),
    )
    denied = scene.ask(body, denied=frozenset({GROUP}))
    assert error(scene, denied) == (ErrorCode.GROUP_AUTHORIZATION_FAILED, "")  # C-JOIN-02
    assert error(scene, scene.join("m", group="")) == (ErrorCode.INVALID_GROUP_ID, "m")  # C-JOIN-04
    assert error(scene, scene.join("m", session=5_999)) == (ErrorCode.INVALID_SESSION_TIMEOUT, "m")  # C-JOIN-05
    assert error(scene, scene.join("m", session=1_800_001)) == (ErrorCode.INVALID_SESSION_TIMEOUT, "m")
    assert error(scene, scene.join("m")) == (ErrorCode.UNKNOWN_MEMBER_ID, "m")  # C-JOIN-11
    stopped = Scene(running=False)
    assert error(stopped, stopped.join("m")) == (ErrorCode.COORDINATOR_NOT_AVAILABLE, "m")  # C-JOIN-03
    scene.feed(Unload(0, leader_epoch=None))
    assert error(scene, scene.join("m")) == (ErrorCode.NOT_COORDINATOR, "")  # C-JOIN-06


def test_versions_that_do_not_exist_are_refused_and_change_nothing() -> None:
    scene = Scene()
    before = scene.state
    with pytest.raises(ValueError, match="no version 10"):
        scene.join(version=10)
    assert scene.state is before


def test_a_new_group_writes_an_empty_record_even_when_the_member_is_refused() -> None:
    scene = Scene()
    refused = scene.join(kind="")
    assert error(scene, refused) == (ErrorCode.INCONSISTENT_GROUP_PROTOCOL, "")  # C-JOIN-31, C-JOIN-16
    (record,) = scene.records
    assert record.value is not None
    assert (record.value.generation, record.value.protocol_type, record.value.members) == (0, "", ())
    assert scene.now_in is GroupState.EMPTY


def test_before_version_4_a_member_is_added_immediately() -> None:
    scene = Scene()
    scene.join(version=3)
    (member,) = scene.group().members
    assert member.is_new
    assert scene.timer(TimerKind.SESSION, member.member_id) == 300_000  # C-TMR-03
    assert scene.group().leader == member.member_id
    scene.pass_time(3_000)
    assert scene.timer(TimerKind.SESSION, member.member_id) == 10_000  # C-JOIN-48


def test_version_0_has_no_rebalance_timeout() -> None:
    scene = Scene()
    scene.join(version=0, session=7_000, rebalance=-1)
    assert scene.group().members[0].rebalance_timeout_ms == 7_000  # G-WIRE-01


def test_a_pending_id_may_not_bring_an_instance_id() -> None:
    scene = Scene()
    given = scene.joined(scene.join()).member_id
    odd = scene.join(given, instance="i")
    assert error(scene, odd) == (ErrorCode.UNKNOWN_SERVER_ERROR, "")  # C-JOIN-38c
    assert scene.group().pending_join == {given}
    assert scene.timer(TimerKind.SESSION, given) == 10_000


def test_identity_of_known_members() -> None:
    scene = Scene()
    (name,) = scene.stable(1)
    assert error(scene, scene.join(name, instance="i")) == (ErrorCode.UNKNOWN_MEMBER_ID, name)  # C-JOIN-38e
    assert error(scene, scene.join("other")) == (ErrorCode.UNKNOWN_MEMBER_ID, "other")  # C-JOIN-38g
    static = scene.join(instance="i")
    scene.join(name)
    owner = scene.joined(static).member_id
    assert error(scene, scene.join(name, instance="i")) == (ErrorCode.FENCED_INSTANCE_ID, name)  # C-JOIN-38f
    assert owner in {member.member_id for member in scene.group().members}


@pytest.mark.parametrize(
    ("count", "expected"), [(2, ErrorCode.GROUP_MAX_SIZE_REACHED), (1, ErrorCode.MEMBER_ID_REQUIRED)]
)
def test_capacity_of_a_stable_group(count: int, expected: ErrorCode) -> None:
    scene = Scene(group_max_size=2)
    ids = scene.stable(count)
    assert scene.joined(scene.join()).error_code is expected  # C-JOIN-22
    assert scene.joined(scene.join("nobody")).error_code is (
        expected if count == 2 else ErrorCode.UNKNOWN_MEMBER_ID
    )  # C-JOIN-74
    scene.join(ids[0])
    assert scene.now_in is GroupState.PREPARING_REBALANCE  # a member is always admitted


def test_capacity_while_preparing_counts_waiting_members() -> None:
    scene = Scene(group_max_size=1)
    first, _ = scene.newcomer()
    assert error(scene, scene.join()) == (ErrorCode.GROUP_MAX_SIZE_REACHED, "")  # C-JOIN-21
    again = scene.join(first)
    scene.pass_time(3_000)
    assert scene.joined(again).generation_id == 1


def test_protocols_must_be_shared_by_all() -> None:
    scene = Scene()
    first, _ = scene.newcomer("range", "sticky")
    assert error(scene, scene.join("", "other")) == (ErrorCode.INCONSISTENT_GROUP_PROTOCOL, "")
    assert error(scene, scene.join("", "range", kind="connect")) == (ErrorCode.INCONSISTENT_GROUP_PROTOCOL, "")
    second, joined = scene.newcomer("sticky")
    scene.pass_time(6_000)
    assert scene.joined(joined).protocol_name == "sticky"  # the only candidate
    assert error(scene, scene.join(first, "other")) == (ErrorCode.INCONSISTENT_GROUP_PROTOCOL, first)
    assert second in scene.group().pending_sync


def test_the_vote() -> None:
    scene = Scene()
    for names in (("a", "b"), ("b", "a"), ("b", "a")):
        scene.newcomer(*names)
    scene.pass_time(6_000)
    assert scene.group().protocol_name == "b"  # C-JOIN-63


def test_rejoining_while_completing() -> None:
    scene = Scene()
    first, joined = scene.newcomer()
    second, _ = scene.newcomer()
    scene.pass_time(6_000)
    timers = dict(scene.timers)
    again = scene.joined(scene.join(first))
    assert again == scene.joined(joined)  # C-JOIN-51
    assert scene.joined(scene.join(second)).members == ()
    assert scene.timers == timers  # C-JOIN-58
    waits = scene.sync(second, 1)
    scene.join(second, "range", data=b"changed")  # C-JOIN-52
    assert scene.synced(waits).error_code is ErrorCode.REBALANCE_IN_PROGRESS
    assert scene.now_in is GroupState.PREPARING_REBALANCE


def test_rejoining_while_stable() -> None:
    scene = Scene()
    leader, follower = scene.stable(2)
    same = scene.joined(scene.join(follower))
    assert (same.generation_id, same.leader, same.members) == (1, leader, ())  # C-JOIN-55
    assert scene.now_in is GroupState.STABLE
    scene.join(leader)  # C-JOIN-53
    assert scene.now_in is GroupState.PREPARING_REBALANCE


def test_a_follower_that_changes_starts_a_rebalance() -> None:
    scene = Scene()
    _, follower = scene.stable(2)
    scene.join(follower, "range", data=b"new", session=20_000, client="renamed")
    assert scene.now_in is GroupState.PREPARING_REBALANCE  # C-JOIN-54
    member = scene.member(follower)
    assert (member.session_timeout_ms, member.client_id, member.awaiting_join) == (20_000, "c", True)  # C-JOIN-73
    assert scene.timer(TimerKind.SESSION, follower) == 10_000  # C-TMR-14


def test_the_request_of_a_later_rejoin_is_the_one_answered() -> None:
    scene = Scene()
    first, _ = scene.stable(2)
    lost = scene.join(first)
    kept = scene.join(first)
    scene.pass_time(30_000)
    assert scene.joined(kept).generation_id == 2
    assert lost not in scene.answers  # C-JOIN-59


def test_leadership_moves_when_the_leader_is_gone() -> None:
    scene = Scene()
    leader, *others = scene.stable(3)
    scene.leave(leader)
    assert scene.group().leader == others[0]  # C-JOIN-76
    joins = [scene.join(name) for name in reversed(others)]
    assert {scene.joined(join).leader for join in joins} == {others[0]}


def test_a_leader_that_does_not_rejoin_is_replaced() -> None:
    scene = Scene()
    ids = scene.stable(3)
    waiting = scene.join(ids[2], "range", data=b"new")
    for _ in range(4):
        scene.pass_time(7_000)
        scene.heartbeat(ids[0], 1)
        scene.heartbeat(ids[1], 1)
    scene.pass_time(2_000)
    assert scene.joined(waiting).leader == ids[2]  # C-JOIN-45


def test_the_initial_delay_is_extended_by_newcomers_up_to_the_rebalance_timeout() -> None:
    scene = Scene()
    _, first = scene.newcomer(rebalance=7_000)
    for _ in range(3):
        scene.pass_time(2_000)
        scene.newcomer(rebalance=7_000)
    scene.pass_time(999)
    assert first not in scene.answers
    scene.pass_time(1)
    assert len(scene.joined(first).members) == 4  # C-JOIN-43: max(R, D) after the start


def test_a_pending_id_holds_the_round_up_until_it_expires() -> None:
    scene = Scene()
    (first,) = scene.stable(1)
    scene.join("", session=6_000)
    again = scene.join(first)
    assert again not in scene.answers  # C-JOIN-66
    scene.pass_time(6_000)
    assert scene.joined(again).generation_id == 2


def test_kafka_counts_a_refused_member_as_missing() -> None:
    scene = Scene(KAFKA_4_3, group_max_size=2)
    first, second = scene.stable(2)
    scene.join(first)
    static = scene.join(instance="i")  # takes the second place among the waiting members
    refused = scene.join(second)
    assert error(scene, refused) == (ErrorCode.GROUP_MAX_SIZE_REACHED, "")
    assert static not in scene.answers  # C-JOIN-23
    scene.pass_time(30_000)
    assert scene.joined(static).generation_id == 2
