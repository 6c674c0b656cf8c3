"""Loading and unloading the partition."""

from __future__ import annotations

import pytest

from fencepost import coordinator
from fencepost.protocol import messages as m
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import Load, LoadFailed, LoadStarted, TimerKind, TopicsChanged, Unload
from fencepost.protocol.profiles import INTENDED, KAFKA_4_3
from fencepost.protocol.records import GroupMetadataKey, GroupMetadataMember, GroupMetadataValue, Record
from fencepost.protocol.view import GroupState

from .scene import GROUP, Scene


def owned(scene: Scene) -> bool:
    answer = scene.joined(scene.join("who"))
    return answer.error_code is ErrorCode.UNKNOWN_MEMBER_ID


def test_epochs() -> None:
    scene = Scene()  # loaded at epoch 1
    scene.feed(Unload(scene.now, leader_epoch=1))
    assert owned(scene)  # F-LOAD-03: not above the loaded one
    scene.feed(LoadStarted(scene.now, leader_epoch=3))  # it is already active; only the epoch changes
    assert owned(scene)
    scene.feed(Unload(scene.now, leader_epoch=3))
    assert owned(scene)
    scene.feed(Unload(scene.now, leader_epoch=4))
    assert not owned(scene)
    scene.feed(Load(scene.now, leader_epoch=1, records=()))  # F-LOAD-08: the epoch was forgotten
    assert owned(scene)


def test_while_loading_a_heartbeat_is_answered_none() -> None:
    scene = Scene()
    scene.feed(Unload(scene.now, leader_epoch=None))
    assert scene.heartbeat("m", 1) is ErrorCode.NOT_COORDINATOR
    scene.feed(LoadStarted(scene.now, leader_epoch=2))
    assert scene.heartbeat("m", 1) is ErrorCode.NONE  # C-HB-03
    assert scene.synced(scene.sync("m", 1)).error_code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert scene.joined(scene.join("m")).error_code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    scene.feed(LoadFailed(scene.now, leader_epoch=2))
    assert scene.heartbeat("m", 1) is ErrorCode.NOT_COORDINATOR
    scene.feed(Load(scene.now, leader_epoch=2, records=()))
    assert not owned(scene)  # F-LOAD-08: the same epoch is not tried again
    scene.feed(Load(scene.now, leader_epoch=3, records=()))
    assert owned(scene)


def test_loading_restores_the_written_state() -> None:
    scene = Scene()
    first, second = scene.stable(2)
    scene.join("", instance="i", version=9)
    records = tuple(scene.records)
    scene.feed(Unload(scene.now, leader_epoch=None))
    assert scene.timers == {}
    scene.feed(Load(scene.now, leader_epoch=2, records=records))
    group = scene.group()
    assert (group.state, group.previous_state, group.generation_id) == (GroupState.STABLE, GroupState.DEAD, 1)
    assert group.leader == first
    assert [member.assignment for member in group.members] == [first.encode(), second.encode()]
    assert scene.timer(TimerKind.SESSION, second) == 10_000  # F-LOAD-06
    assert scene.heartbeat(first, 1) is ErrorCode.NONE
    assert coordinator.view(
        coordinator.replay(coordinator.initial_state(scene.state.settings, INTENDED), records), GROUP
    )


def test_a_loaded_member_offers_one_protocol_only() -> None:
    scene = Scene()
    _, joined = scene.newcomer("range", "sticky")
    scene.pass_time(3_000)
    name = scene.joined(joined).member_id
    scene.sync(name, 1, {})
    scene.feed(Unload(scene.now, leader_epoch=None))
    scene.feed(Load(scene.now, leader_epoch=2, records=tuple(scene.records)))
    assert [protocol.name for protocol in scene.member(name).protocols] == ["range"]  # C-TMR-13
    assert scene.joined(scene.join("", "sticky")).error_code is ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_tombstones_and_old_records() -> None:
    key = GroupMetadataKey(GROUP)
    member = GroupMetadataMember(
        "m",
        group_instance_id=None,
        client_id="c",
        client_host="/h",
        rebalance_timeout=-1,
        session_timeout=7_000,
        subscription=b"s",
        assignment=b"a",
    )
    old = Record(
        key,
        GroupMetadataValue(
            "consumer", generation=4, protocol="range", leader="m", current_state_timestamp=-1, members=(member,)
        ),
    )
    scene = Scene()
    scene.feed(Unload(scene.now, leader_epoch=None))
    scene.feed(Load(scene.now, leader_epoch=2, records=(old, Record(GroupMetadataKey("gone"), None))))
    assert scene.member("m").rebalance_timeout_ms == 7_000  # F-REPLAY-01
    scene.feed(Unload(scene.now, leader_epoch=None))
    scene.feed(Load(scene.now, leader_epoch=2, records=(old, Record(key, None))))
    assert coordinator.view(scene.state, GROUP) is None


def test_a_group_over_capacity_shrinks_after_loading() -> None:
    key = GroupMetadataKey(GROUP)
    rows = tuple(
        GroupMetadataMember(
            name,
            group_instance_id=None,
            client_id="c",
            client_host="/h",
            rebalance_timeout=5,
            session_timeout=7_000,
            subscription=b"",
            assignment=b"",
        )
        for name in "ab"
    )
    scene = Scene(group_max_size=1)
    scene.feed(Unload(scene.now, leader_epoch=None))
    scene.feed(
        Load(
            scene.now,
            leader_epoch=2,
            records=(
                Record(
                    key,
                    GroupMetadataValue(
                        "consumer", generation=4, protocol="range", leader="a", current_state_timestamp=0, members=rows
                    ),
                ),
            ),
        )
    )
    assert scene.now_in is GroupState.PREPARING_REBALANCE
    assert scene.timer(TimerKind.JOIN) == 5


def test_a_subscription_that_kafka_cannot_read_costs_it_the_partition() -> None:
    poison = b"\x00\x00\x7f\xff\xff\xff"
    for profile in (KAFKA_4_3, INTENDED):
        scene = Scene(profile)
        joined = scene.join("", "range", instance="i", data=b"\x00\x00\x00\x00\x00\x00\xff\xff\xff\xff")
        scene.pass_time(3_000)
        name = scene.joined(joined).member_id
        scene.sync(name, 1, {})
        back = scene.join("", "range", instance="i", data=poison)
        assert scene.joined(back).error_code is ErrorCode.NONE  # C-STATIC-07: no code reads it
        scene.feed(Unload(scene.now, leader_epoch=None))
        scene.feed(Load(scene.now, leader_epoch=2, records=tuple(scene.records)))
        assert owned(scene) is (profile is INTENDED)  # G-DATA-10, F-LOAD-02


@pytest.mark.parametrize(("broken", "short", "loads"), [("a", "b", False), ("b", "a", True)])
def test_the_first_subscription_that_kafka_cannot_read_decides(broken: str, short: str, loads: bool) -> None:
    """The order is that of the coordinator's map, here the order of ids (G-DATA-10)."""
    bytes_of = {broken: b"\x00\x00\x7f\xff\xff\xff", short: b"\x00"}
    rows = tuple(
        GroupMetadataMember(
            name,
            group_instance_id=None,
            client_id="c",
            client_host="/h",
            rebalance_timeout=5,
            session_timeout=7_000,
            subscription=bytes_of[name],
            assignment=b"",
        )
        for name in (short, broken)
    )
    scene = Scene(KAFKA_4_3)
    scene.feed(Unload(scene.now, leader_epoch=None))
    scene.feed(
        Load(
            scene.now,
            leader_epoch=2,
            records=(
                Record(
                    GroupMetadataKey(GROUP),
                    GroupMetadataValue(
                        "consumer", generation=4, protocol="range", leader="a", current_state_timestamp=0, members=rows
                    ),
                ),
            ),
        )
    )
    assert owned(scene) is loads


def test_a_subscription_that_kafka_cannot_read_wedges_a_new_generation() -> None:
    for profile, generation, state in (
        (KAFKA_4_3, 1, GroupState.PREPARING_REBALANCE),
        (INTENDED, 1, GroupState.COMPLETING_REBALANCE),
    ):
        scene = Scene(profile)
        scene.newcomer(data=b"\x00\x00\x00\x00\x00\x01\x00\x09short")
        scene.pass_time(3_000)
        assert (scene.group().generation_id, scene.now_in) == (generation, state)
        assert (scene.timer(TimerKind.JOIN) is None) is True


def test_readable_and_too_short_subscriptions_are_fine() -> None:
    for data in (
        b"x",
        b"\x00\x01\x00\x00",
        b"\x00\x00\x00\x00\x00\x01\x00",
        b"\x00\x00\x00\x00\x00\x00\xff\xff\xff\xff",
    ):
        scene = Scene(KAFKA_4_3)
        scene.newcomer(data=data)
        scene.pass_time(3_000)
        assert scene.now_in is GroupState.COMPLETING_REBALANCE


def test_unloading_answers_every_waiting_member() -> None:
    scene = Scene()
    name, waits = scene.newcomer()
    scene.feed(Unload(scene.now, leader_epoch=None))
    answer = scene.joined(waits)
    assert (answer.error_code, answer.member_id) == (ErrorCode.NOT_COORDINATOR, name)
    assert scene.timers == {}
    assert coordinator.views(scene.state) == {}

    scene = Scene()
    scene.newcomer()
    second, _ = scene.newcomer()
    scene.pass_time(6_000)
    waits = scene.sync(second, 1)
    scene.feed(Unload(scene.now, leader_epoch=None))
    assert scene.synced(waits).error_code is ErrorCode.NOT_COORDINATOR


def test_unloading_fails_open_operations_first() -> None:
    for profile in (KAFKA_4_3, INTENDED):
        scene = Scene(profile)
        first, second = scene.stable(2)
        scene.log = "later"
        scene.join(group="other")
        waits = scene.join(first)
        scene.heartbeat(second, 1)
        beat = scene.ids
        scene.feed(Unload(scene.now, leader_epoch=None))
        assert scene.answers[beat] == m.HeartbeatResponse(ErrorCode.NOT_COORDINATOR)
        assert scene.joined(waits).member_id == ("" if profile is KAFKA_4_3 else first)  # F-UNLOAD-01
        assert scene.timers == {}


def test_topics_do_not_matter_to_classic_groups() -> None:
    scene = Scene()
    scene.stable(1)
    before = coordinator.views(scene.state)
    assert scene.feed(TopicsChanged(scene.now, ())).replies == ()
    assert coordinator.views(scene.state) == before
