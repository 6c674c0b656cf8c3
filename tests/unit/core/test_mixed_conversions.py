"""What a group leaves behind when it changes its kind."""

from __future__ import annotations

import pytest

from fencepost.protocol import messages as m
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import TimerKind, Topic, Unload
from fencepost.protocol.settings import INTENDED, KAFKA_4_3, Profile

from .consumer_scene import LATER, TOPICS, B, kinds
from .mixed_scene import MixedScene, mixed, wants

#: Another topic b.
MORE = tuple(Topic("b", B, row.partitions + 1) if row.name == "b" else row for row in TOPICS)


def back_again(profile: Profile) -> MixedScene:
    """A member that names a and b leaves, the group is downgraded; one that names a alone upgrades it again."""
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
def test_topics_of_before_a_downgrade_are_still_watched(profile: Profile) -> None:
    """X-DOWN-30, M-META-03."""
    scene = back_again(profile)
    scene.topics(*MORE)
    assert (scene.seen.refresh_deadline is None) is (profile is KAFKA_4_3)


def test_a_topic_that_is_given_up_is_watched_no_more() -> None:
    scene = back_again(KAFKA_4_3)
    scene.ok("m2", scene.who("m2").member_epoch, ("a", "b"))
    scene.ok("m2", scene.who("m2").member_epoch, ("a",))
    scene.topics(*MORE)
    assert scene.seen.refresh_deadline is not None


def test_what_is_watched_goes_back_with_a_failed_append() -> None:
    scene = back_again(KAFKA_4_3)
    scene.log = "later"
    count = len(scene.records)
    scene.beat("m2", scene.who("m2").member_epoch, ("a", "b"))
    scene.fail(ErrorCode.NOT_ENOUGH_REPLICAS, len(scene.records) - count)
    scene.topics(*MORE)
    assert scene.seen.refresh_deadline is None


def test_a_load_forgets_what_was_watched() -> None:
    scene = back_again(KAFKA_4_3)
    scene.load(scene.records)
    scene.ok("m2", scene.who("m2").member_epoch, ("a",))
    assert scene.seen.refresh_deadline is not None
    scene.topics(*MORE)
    assert scene.seen.refresh_deadline is not None


def test_the_join_timer_of_a_group_that_all_have_left_runs_on() -> None:
    """C-LEAVE-22, C-TMR-12: until it fires or the partition is lost."""
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
    scene.feed(Unload(scene.now, None))
    assert scene.timers == {}


def test_a_joiner_of_a_group_that_never_had_a_generation_may_have_nothing_to_reconcile() -> None:
    """M-REC-25, X-UP-05: its regex is not resolved yet, so no epoch is bumped and nothing of it is recorded."""
    scene = MixedScene(KAFKA_4_3)
    answer = scene.answers[scene.join("", data=wants("a"))]
    assert isinstance(answer, m.JoinGroupResponse)
    scene.join(answer.member_id, data=wants("a"))
    scene.leave(answer.member_id)
    count = len(scene.records)
    scene.ok("m1", 0, (), {}, timeout=30_000, regex="a.*")
    assert scene.seen.group_epoch == scene.who("m1").member_epoch == 0
    assert kinds(scene.records[count + 1 :]) == ["GroupEpoch", "TargetEpoch", "MemberMetadata"]
