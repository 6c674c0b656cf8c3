"""The traces that a group leaves behind when it converts."""

from __future__ import annotations

import pytest

from fencepost import coordinator
from fencepost.protocol import messages as m
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import TimerKind, Topic, Unload
from fencepost.protocol.profile import Profile
from fencepost.protocol.profiles import INTENDED, KAFKA_4_3
from fencepost.protocol.records import GroupMetadataValue

from .consumer_scene import LATER, TOPICS, B, kinds
from .mixed_scene import MixedScene, mixed, wants
from .scene import GROUP

#: Topic b, changed.
MORE = tuple(Topic("b", B, row.partitions + 1) if row.name == "b" else row for row in TOPICS)


def back_again(profile: Profile) -> MixedScene:
    """Return a group that was downgraded when its member with topics a and b left, and upgraded again by a member with
    topic a."""
    scene, first, second = mixed(profile)
    scene.ok("m1", scene.who("m1").member_epoch, ("a", "b"))
    scene.ok("m1", -1)
    assert scene.is_classic
    ask = scene.join(first, data=wants("a"), instance="i1")
    scene.join(second, data=wants("a"), instance="i2")
    scene.sync(first, scene.joined(ask).generation_id, {})
    scene.come("m2", "a")
    assert not scene.is_classic
    scene.pass_time(LATER)
    scene.ok("m2", scene.who("m2").member_epoch, ("a", "c"))
    assert scene.seen.refresh_deadline is not None
    return scene


@pytest.mark.parametrize("profile", [KAFKA_4_3, INTENDED], ids=lambda profile: profile.name)
def test_topics_from_before_a_downgrade_are_still_watched(profile: Profile) -> None:
    """X-DOWN-30, M-META-03."""
    scene = back_again(profile)
    scene.topics(*MORE)
    assert (scene.seen.refresh_deadline is None) is (profile is KAFKA_4_3)


def test_a_topic_that_was_dropped_is_no_longer_watched() -> None:
    scene = back_again(KAFKA_4_3)
    scene.ok("m2", scene.who("m2").member_epoch, ("a", "b"))
    scene.ok("m2", scene.who("m2").member_epoch, ("a",))
    scene.topics(*MORE)
    assert scene.seen.refresh_deadline is not None


def test_a_failed_append_restores_the_watched_topics() -> None:
    scene = back_again(KAFKA_4_3)
    scene.log = "later"
    count = len(scene.records)
    scene.beat("m2", scene.who("m2").member_epoch, ("a", "b"))
    scene.fail(ErrorCode.NOT_ENOUGH_REPLICAS, len(scene.records) - count)
    scene.topics(*MORE)
    assert scene.seen.refresh_deadline is None


def test_a_load_forgets_the_watched_topics() -> None:
    scene = back_again(KAFKA_4_3)
    scene.load(scene.records)
    scene.ok("m2", scene.who("m2").member_epoch, ("a",))
    assert scene.seen.refresh_deadline is not None
    scene.topics(*MORE)
    assert scene.seen.refresh_deadline is not None


def test_the_join_timer_of_a_group_that_all_have_left_runs_on() -> None:
    """Until the timer fires or the partition is lost (C-LEAVE-22, C-TMR-12)."""
    scene = MixedScene(KAFKA_4_3)
    ask = scene.join("", data=wants("a"))
    answer = scene.answers[ask]
    assert isinstance(answer, m.JoinGroupResponse)
    scene.join(answer.member_id, data=wants("a"))
    scene.leave(answer.member_id)
    assert scene.timer(TimerKind.JOIN) is not None
    scene.come("m1", "a")
    assert not scene.is_classic
    assert scene.timer(TimerKind.JOIN) is not None
    scene.feed(Unload(scene.now, leader_epoch=None))
    assert scene.timers == {}


def test_the_joiner_of_a_group_without_a_generation_may_have_nothing_to_reconcile() -> None:
    """Its regex is not resolved yet, so no epoch is bumped and no record of it is written (M-REC-25, X-UP-05)."""
    scene = MixedScene(KAFKA_4_3)
    answer = scene.answers[scene.join("", data=wants("a"))]
    assert isinstance(answer, m.JoinGroupResponse)
    scene.join(answer.member_id, data=wants("a"))
    scene.leave(answer.member_id)
    count = len(scene.records)
    scene.ok("m1", 0, (), {}, timeout=30_000, regex="a.*")
    assert scene.seen.group_epoch == scene.who("m1").member_epoch == 0
    assert kinds(scene.records[count + 1 :]) == ["GroupEpoch", "TargetEpoch", "MemberMetadata"]


@pytest.mark.parametrize(("profile", "generation"), [(INTENDED, 4), (KAFKA_4_3, 1)], ids=["intended", "kafka-4.3"])
def test_a_classic_group_counts_on_where_the_consumer_group_stopped(profile: Profile, generation: int) -> None:
    """Fixed under ``intended``; in Kafka it begins at 0 (C-JOIN-16, INV-CONV-01)."""
    scene = MixedScene(profile)
    scene.come("m1", "a")
    scene.ok("m1", -1)
    assert scene.seen.group_epoch == 3
    asked = scene.join("", instance="i1", data=wants("a"))
    value = scene.records[-1].value
    assert isinstance(value, GroupMetadataValue)
    assert (value.generation, value.members) == (generation - 1, ())
    scene.load(scene.records)
    view = coordinator.view(scene.state, GROUP)
    assert view is not None
    assert view.generation_id == generation - 1
    asked = scene.join("", instance="i1", data=wants("a"))
    scene.pass_time(scene.state.settings.group_initial_rebalance_delay_ms * 2)
    assert scene.joined(asked).generation_id == generation


@pytest.mark.parametrize("names", [("a",), ()])
@pytest.mark.parametrize(
    ("profile", "continues"), [(INTENDED, True), (KAFKA_4_3, False)], ids=["intended", "kafka-4.3"]
)
def test_a_consumer_group_counts_on_where_the_classic_group_stopped(
    profile: Profile, continues: bool, names: tuple[str, ...]
) -> None:
    """Fixed under ``intended``: a record contains the epoch, whether the first member subscribes to a topic or not
    (M-VAL-22)."""
    scene = MixedScene(profile)
    (only,) = scene.classic("i1")
    scene.removed(only)
    view = coordinator.view(scene.state, GROUP)
    assert view is not None
    left_off = view.generation_id
    assert left_off == 2
    answer = scene.ok("m1", 0, names, {}, timeout=5)
    expected = left_off + 1 if continues else 1 + bool(names)
    assert (answer.member_epoch, scene.seen.group_epoch, scene.seen.assignment_epoch) == (expected,) * 3
    before = scene.seen
    scene.load(scene.records)
    assert (scene.seen.group_epoch, scene.seen.assignment_epoch) == (before.group_epoch, before.assignment_epoch)
    assert scene.seen.members == before.members
