"""Answers and the log: the answers that wait for it, and the effect of a late or failed append."""

from __future__ import annotations

import pytest

from fencepost import coordinator
from fencepost.protocol import messages as m
from fencepost.protocol.errors import ErrorCode, IllegalEvent
from fencepost.protocol.events import Appended, TimerKey, TimerKind
from fencepost.protocol.profile import Profile
from fencepost.protocol.profiles import INTENDED, KAFKA_4_3
from fencepost.protocol.view import GroupState

from .scene import GROUP, Scene

BOTH = pytest.mark.parametrize("profile", [KAFKA_4_3, INTENDED], ids=lambda profile: profile.name)


def with_open_write(profile: Profile = INTENDED) -> Scene:
    """Return a Stable group of one member, and a write of another group that is not replicated."""
    scene = Scene(profile)
    scene.stable(1)
    scene.log = "later"
    scene.join(group="other")
    return scene


@BOTH
def test_a_heartbeat_is_never_ahead_of_the_log(profile: Profile) -> None:
    scene = with_open_write(profile)
    (name,) = (member.member_id for member in scene.group().members)
    assert scene.heartbeat(name, 1) is None  # F-RT-16
    assert scene.heartbeat("who", 1) is ErrorCode.UNKNOWN_MEMBER_ID  # errors are
    assert scene.timers[TimerKey(TimerKind.OPERATION, operation=scene.ids - 1)] == scene.now + 5_000
    waiting = scene.ids - 1
    scene.replicate()
    assert scene.answers[waiting] == m.HeartbeatResponse(ErrorCode.NONE)
    assert not [key for key in scene.timers if key.kind is TimerKind.OPERATION]


@BOTH
def test_an_append_timeout_is_answered_as_an_error(profile: Profile) -> None:
    scene = with_open_write(profile)
    (name,) = (member.member_id for member in scene.group().members)
    scene.heartbeat(name, 1)
    asked = scene.ids
    left = scene.leave(name)
    scene.pass_time(5_000)
    assert scene.answers[asked] == m.HeartbeatResponse(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    assert scene.left(left).error_code is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert scene.now_in is GroupState.EMPTY  # the leave has taken effect (NOT-16)


def test_a_parked_join_fails_early_in_kafka_only() -> None:
    for profile in (KAFKA_4_3, INTENDED):
        scene = Scene(profile, group_initial_rebalance_delay_ms=10_000)
        name = scene.joined(scene.join()).member_id
        scene.log = "later"
        scene.join(group="other")
        waits = scene.join(name)
        scene.pass_time(5_000)
        assert (waits in scene.answers) is (profile is KAFKA_4_3)  # C-JOIN-70
        assert scene.member(name).awaiting_join
        scene.pass_time(5_000)
        assert scene.now_in is GroupState.COMPLETING_REBALANCE
        assert scene.joined(waits).error_code is (
            ErrorCode.COORDINATOR_NOT_AVAILABLE if profile is KAFKA_4_3 else ErrorCode.NONE
        )


def test_a_parked_sync_that_failed_early_still_counts() -> None:
    scene = Scene(KAFKA_4_3)
    first, _ = scene.newcomer()
    second, _ = scene.newcomer()
    scene.pass_time(6_000)
    scene.log = "later"
    scene.join(group="other")
    waits = scene.sync(second, 1)
    scene.pass_time(5_000)
    assert scene.synced(waits).error_code is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert scene.member(second).awaiting_sync  # C-ST-23
    scene.sync(first, 1, {second: b"B"})
    scene.replicate()
    assert scene.synced(scene.sync(second, 1)).assignment == b"B"


@BOTH
def test_a_group_whose_creation_failed_is_removed(profile: Profile) -> None:
    scene = Scene(profile, log="never")
    waits = scene.join(instance="i")
    scene.fail(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    answer = scene.joined(waits)
    assert (answer.error_code, answer.member_id, answer.generation_id) == (ErrorCode.NOT_COORDINATOR, "", -1)
    assert coordinator.view(scene.state, GROUP) is None
    armed = {key.kind for key in scene.timers} - {TimerKind.EXPIRY}
    assert armed == ({TimerKind.JOIN, TimerKind.SESSION} if profile is KAFKA_4_3 else set())  # C-TMR-12
    scene.log = "at once"
    scene.join()
    scene.pass_time(3_000)
    assert scene.group().generation_id == (1 if profile is KAFKA_4_3 else 0)  # C-ST-27
    assert scene.now_in is GroupState.EMPTY


def test_an_id_from_a_group_that_failed_is_unknown() -> None:
    scene = Scene(log="never")
    given = scene.joined(scene.join())
    assert given.error_code is ErrorCode.MEMBER_ID_REQUIRED  # F-RT-20: answered before the record is appended
    scene.fail(ErrorCode.NOT_ENOUGH_REPLICAS)
    assert scene.joined(scene.join(given.member_id)).error_code is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_creation_that_is_late_undoes_nothing() -> None:
    for profile, error in ((KAFKA_4_3, ErrorCode.COORDINATOR_NOT_AVAILABLE), (INTENDED, None)):
        scene = Scene(profile, log="later", group_initial_rebalance_delay_ms=10_000)
        waits = scene.join(instance="i")
        scene.pass_time(5_000)
        assert (scene.joined(waits).error_code if waits in scene.answers else None) is error  # C-JOIN-16
        scene.pass_time(5_000)
        assert scene.group().generation_id == 1


def test_answers_of_one_replication_come_in_log_order() -> None:
    scene = with_open_write()
    (name,) = (member.member_id for member in scene.group().members)
    asked = [scene.ask(m.HeartbeatRequest(GROUP, generation_id=1, member_id=name)) for _ in range(3)]
    outcome = scene.feed(Appended(scene.now, offset=len(scene.records)))
    assert [reply.request_id for reply in outcome.replies] == asked  # F-RT-14


def test_the_high_watermark_stays_within_the_log() -> None:
    scene = with_open_write()
    for offset, why in ((0, "must not go back to 0"), (len(scene.records) + 1, "the log ends at")):
        with pytest.raises(IllegalEvent, match=why):
            scene.feed(Appended(scene.now, offset=offset))


def test_a_write_that_a_timer_caused_waits_like_any_other() -> None:
    scene = Scene()
    (name,) = scene.stable(1)
    scene.log = "later"
    scene.pass_time(10_000)
    assert scene.now_in is GroupState.EMPTY
    waiting = [key for key in scene.timers if key.kind is TimerKind.OPERATION]
    assert [key.operation < 0 for key in waiting] == [True]
    assert scene.heartbeat(name, 2) is ErrorCode.UNKNOWN_MEMBER_ID
    scene.pass_time(5_000)
    scene.replicate()
    assert scene.now_in is GroupState.EMPTY


@BOTH
def test_a_failed_append_leaves_earlier_operations_alone(profile: Profile) -> None:
    scene = with_open_write(profile)
    (name,) = (member.member_id for member in scene.group().members)
    scene.heartbeat(name, 1)
    beat = scene.ids
    left = scene.leave(name)
    scene.fail(ErrorCode.NOT_ENOUGH_REPLICAS)
    assert scene.left(left).error_code is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert beat not in scene.answers
    scene.replicate()
    assert scene.answers[beat] == m.HeartbeatResponse(ErrorCode.NONE)
