"""SyncGroup: order of the checks, parking, and the effect of the log."""

from __future__ import annotations

import pytest

from fencepost.protocol import messages as m
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import AppendFailed, TimerKind
from fencepost.protocol.profile import Profile
from fencepost.protocol.profiles import INTENDED, KAFKA_4_3
from fencepost.protocol.view import GroupState

from .scene import Scene

BOTH = pytest.mark.parametrize("profile", [KAFKA_4_3, INTENDED], ids=lambda profile: profile.name)


def completing(scene: Scene, count: int = 2) -> list[str]:
    pairs = [scene.newcomer() for _ in range(count)]
    scene.replicate()
    scene.pass_time(6_000)
    return [name for name, _ in pairs]


def test_order_of_checks() -> None:
    scene = Scene()
    first, _ = completing(scene)

    def error_of(member: str, generation: int, **more: object) -> ErrorCode:
        return scene.synced(scene.sync(member, generation, **more)).error_code

    assert error_of(first, 1, protocol_name=None) is ErrorCode.INCONSISTENT_GROUP_PROTOCOL  # C-SYNC-01
    assert error_of(first, 1, group_id="none") is ErrorCode.UNKNOWN_MEMBER_ID  # C-SYNC-05
    assert error_of("who", 1) is ErrorCode.UNKNOWN_MEMBER_ID  # C-SYNC-08
    assert error_of(first, 1, group_instance_id="i") is ErrorCode.UNKNOWN_MEMBER_ID
    assert error_of(first, 0, protocol_name="other") is ErrorCode.ILLEGAL_GENERATION  # C-SYNC-09
    assert error_of(first, 1, protocol_name="other") is ErrorCode.INCONSISTENT_GROUP_PROTOCOL  # C-SYNC-10
    assert error_of(first, 1, protocol_type="connect") is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    pending = scene.joined(scene.join()).member_id
    assert error_of(pending, 1) is ErrorCode.UNKNOWN_MEMBER_ID  # C-SYNC-12


def test_old_versions_need_not_name_the_protocol() -> None:
    scene = Scene()
    first, _ = completing(scene)
    body = m.SyncGroupRequest("g", generation_id=1, member_id=first, assignments=(m.SyncGroupAssignment(first, b"A"),))
    assert scene.synced(scene.ask(body, version=4)).assignment == b"A"


def test_while_preparing_every_member_must_join_first() -> None:
    scene = Scene()
    first, _ = scene.stable(2)
    scene.join(first)
    assert scene.synced(scene.sync(first, 1)).error_code is ErrorCode.REBALANCE_IN_PROGRESS  # C-SYNC-15


def test_the_last_entry_of_a_member_counts_and_strangers_get_nothing() -> None:
    scene = Scene()
    first, second = completing(scene)
    rows = tuple(m.SyncGroupAssignment(*row) for row in ((second, b"1"), ("who", b"x"), (second, b"2")))
    sent = scene.sync(first, 1, assignments=rows)
    assert scene.synced(sent).assignment == b""  # C-SYNC-17: missing from the map
    value = scene.records[-1].value
    assert value is not None
    assert {row.member_id: row.assignment for row in value.members} == {first: b"", second: b"2"}  # C-SYNC-32
    assert scene.synced(scene.sync(second, 1)).assignment == b"2"  # C-SYNC-18
    assert scene.timer(TimerKind.SYNC) is None


def test_no_member_is_answered_before_the_record_is_replicated() -> None:
    scene = Scene(log="later")
    first, second = completing(scene)
    waits = scene.sync(second, 1)
    sent = scene.sync(first, 1, {first: b"A", second: b"B"})
    assert not {waits, sent} & scene.answers.keys()  # F-RT-21
    assert scene.now_in is GroupState.COMPLETING_REBALANCE
    scene.replicate()
    assert scene.synced(waits).assignment == b"B"
    assert scene.now_in is GroupState.STABLE


@BOTH
def test_a_failed_append_starts_over(profile: Profile) -> None:
    scene = Scene(profile, log="later")
    first, second = completing(scene)
    waits = scene.sync(second, 1)
    sent = scene.sync(first, 1, {first: b"A", second: b"B"})
    scene.fail(ErrorCode.MESSAGE_TOO_LARGE)
    assert scene.synced(waits).error_code is scene.synced(sent).error_code is ErrorCode.UNKNOWN_SERVER_ERROR
    assert scene.now_in is GroupState.PREPARING_REBALANCE  # C-SYNC-22
    assert scene.timer(TimerKind.SESSION, second) == 10_000


def test_append_errors_map_to_errors_that_a_client_understands() -> None:
    for error, expected in (
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.COORDINATOR_NOT_AVAILABLE),
    ):
        scene = Scene(log="later")
        first, _ = completing(scene)
        sent = scene.sync(first, 1)
        scene.fail(error)
        assert scene.synced(sent).error_code is expected  # C-SYNC-30


def test_append_failed_without_an_append_is_illegal() -> None:
    scene = Scene()
    with pytest.raises(ValueError, match="wrote nothing"):
        scene.feed(AppendFailed(0, ErrorCode.NOT_ENOUGH_REPLICAS))


def test_a_timeout_undoes_the_assignment_in_kafka() -> None:
    scene = Scene(KAFKA_4_3, log="later")
    first, second = completing(scene)
    waits = scene.sync(second, 1)
    sent = scene.sync(first, 1, {first: b"A", second: b"B"})
    scene.pass_time(5_000)
    assert scene.synced(sent).error_code is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert scene.synced(waits).error_code is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert scene.now_in is GroupState.PREPARING_REBALANCE  # C-SYNC-33
    scene.replicate()
    assert scene.now_in is GroupState.PREPARING_REBALANCE


def test_memory_follows_the_log_as_intended() -> None:
    scene = Scene(INTENDED, log="later")
    first, second = completing(scene)
    waits = scene.sync(second, 1)
    sent = scene.sync(first, 1, {first: b"A", second: b"B"})
    scene.pass_time(5_000)
    assert scene.synced(sent).error_code is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert waits not in scene.answers
    assert scene.timer(TimerKind.SESSION, first) == 10_000
    again = scene.sync(first, 1, {first: b"other"})
    assert len([record for record in scene.records if record.value and record.value.members]) == 1  # C-SYNC-19
    scene.replicate()
    assert scene.synced(again).assignment == b"A"
    assert scene.synced(waits).assignment == b"B"
    assert scene.now_in is GroupState.STABLE


def test_every_sync_of_the_leader_appends_in_kafka() -> None:
    scene = Scene(KAFKA_4_3, log="later")
    first, _ = completing(scene)
    lost = scene.sync(first, 1, {first: b"1"})
    kept = scene.sync(first, 1, {first: b"2"})
    scene.replicate()
    assert scene.synced(kept).assignment == b"1"  # C-SYNC-19: the first content in memory, and the last one in the log
    assert lost not in scene.answers
    value = scene.records[-1].value
    assert value is not None
    assert {row.assignment for row in value.members} == {b"2", b""}


def test_a_rebalance_that_overtakes_the_append_wins() -> None:
    scene = Scene(log="later")
    first, second = completing(scene)
    sent = scene.sync(first, 1, {first: b"A"})
    scene.leave(second)
    assert scene.synced(sent).error_code is ErrorCode.REBALANCE_IN_PROGRESS  # C-LEAVE-28
    scene.replicate()
    assert scene.now_in is GroupState.PREPARING_REBALANCE  # C-SYNC-23
    assert scene.member(first).assignment == b""


def test_a_record_of_an_earlier_generation_settles_nothing() -> None:
    scene = Scene(log="later")
    first, second = completing(scene)
    scene.sync(first, 1, {first: b"old"})
    scene.join(first, "range", data=b"new")
    scene.join(second)
    assert scene.group().generation_id == 2
    waits = scene.sync(second, 2)
    scene.replicate()
    assert waits not in scene.answers  # C-SYNC-23
    assert scene.now_in is GroupState.COMPLETING_REBALANCE
