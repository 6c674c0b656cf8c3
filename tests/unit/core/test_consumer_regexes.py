"""Subscriptions by regular expression (7.11), and the functions that a host provides."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fencepost import coordinator
from fencepost.functions import KafkaFunctions, StandardFunctions
from fencepost.protocol.choices import Functions
from fencepost.protocol.consumer_messages import ConsumerGroupHeartbeatRequest
from fencepost.protocol.consumer_records import ConsumerGroupRegularExpressionValue as Resolved
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import TaskDone, TaskKey, TaskKind, Topic, TopicsChanged, Unload
from fencepost.protocol.profile import Profile
from fencepost.protocol.profiles import INTENDED, KAFKA_4_0, KAFKA_4_1, KAFKA_4_2, KAFKA_4_3
from fencepost.protocol.settings import Settings

from .consumer_scene import LATER, TOPICS, A, B, ConsumerScene, kinds, plain
from .scene import GROUP, Scene

KEY = TaskKey(TaskKind.REGEX, GROUP)


def running(scene: ConsumerScene) -> bool:
    return GROUP in scene.state.tasks


def with_regex(profile: Profile = INTENDED, regex: str = "[ab]") -> ConsumerScene:
    """Return a scene in which m1 subscribes by a regex, which is resolved, and the topics are assigned."""
    scene = ConsumerScene(profile)
    scene.ok("m1", 0, None, {}, regex=regex, timeout=30_000)
    scene.resolved()
    scene.ok("m1", 1, None, {})
    return scene


def test_a_new_regex_is_resolved_beside_and_bumps_then() -> None:
    """M-RX-01…05, M-EPOCH-07, F-ORD-15, M-VAL-21, M-TGT-01."""
    scene = ConsumerScene()
    assert scene.ok("m1", 0, None, {}, regex="[ab]", timeout=5).member_epoch == 1
    assert kinds(scene.records) == ["MemberMetadata", "Current"]
    assert running(scene)
    count = len(scene.records)
    scene.pass_time(3)
    scene.resolved()
    assert scene.written(count) == ["Regex", "GroupEpoch"]
    (found,) = scene.seen.regexes
    assert (found.topics, found.version, found.timestamp) == (("a", "b"), 1, 3)
    answer = scene.ok("m1", 1, None, {})
    assert (answer.member_epoch, plain(answer.assignment or ())) == (2, {A: (0, 1, 2, 3), B: (0, 1)})


def test_a_regex_that_matches_nothing_does_not_bump() -> None:
    """The record is written nevertheless (M-RX-05)."""
    scene = ConsumerScene()
    scene.ok("m1", 0, None, {}, regex="x.*", timeout=5)
    count = len(scene.records)
    scene.resolved()
    assert scene.written(count) == ["Regex"]


def test_the_task_resolves_the_topics_of_the_time_when_it_runs() -> None:
    """Topics that the member which started the task may not see are left out (M-RX-04, M-RX-06)."""
    scene = ConsumerScene()
    scene.ok("m1", 0, None, {}, regex="[a-d]", timeout=5, denied_topics=frozenset({"b"}))
    scene.topics(*TOPICS, Topic("d", bytes(15) + b"\x09", 1))
    scene.resolved()
    (found,) = scene.seen.regexes
    assert (found.topics, found.version) == (("a", "c", "d"), 2)


def test_a_regex_that_does_not_compile_is_refused() -> None:
    """A present member gets the error too; nothing changes (M-VAL-08, G-ERR-01)."""
    scene = with_regex()
    assert scene.error("m2", 0, None, {}, regex="[", timeout=5) is ErrorCode.INVALID_REGULAR_EXPRESSION
    before = scene.state.groups[GROUP]
    assert scene.error("m1", scene.who("m1").member_epoch, regex="(") is ErrorCode.INVALID_REGULAR_EXPRESSION
    assert scene.state.groups[GROUP] == before


def test_a_known_regex_bumps_immediately() -> None:
    """M-RX-02, M-HB-03(b), M-EPOCH-01."""
    scene = with_regex()
    epoch = scene.seen.group_epoch
    scene.pass_time(LATER)
    scene.ok("m2", 0, None, {}, regex="[ab]", timeout=5)
    assert scene.seen.group_epoch == epoch + 1
    assert not running(scene)


def test_the_last_user_takes_the_regex_along() -> None:
    """M-RX-02, F-ORD-06, M-LEAVE-03, F-ORD-07."""
    scene = with_regex()
    count = len(scene.records)
    scene.ok("m1", -1)
    assert scene.written(count) == [
        "Current†",
        "TargetMember†",
        "MemberMetadata†",
        "Regex†",
        "GroupEpoch",
        "TargetEpoch",
    ]
    assert scene.seen.regexes == ()
    other = with_regex()
    count = len(other.records)
    other.ok("m1", other.who("m1").member_epoch, ("a",), regex="")
    assert other.written(count)[:2] == ["MemberMetadata", "Regex†"]


@pytest.mark.parametrize(("profile", "bump"), [(KAFKA_4_3, 1), (KAFKA_4_1, 1), (KAFKA_4_0, 0)])
def test_taking_the_regex_away_bumps_but_in_4_0(profile: Profile, bump: int) -> None:
    """No subscribed topic exists before and after, so the hash is the same (M-EPOCH-02, V-33)."""
    scene = with_regex(profile, "x.*")
    epoch = scene.seen.group_epoch
    scene.ok("m1", scene.who("m1").member_epoch, regex="")
    assert scene.seen.group_epoch == epoch + bump


def test_two_resolutions_are_ten_seconds_apart() -> None:
    """A second regex waits for a later heartbeat (M-RX-03)."""
    scene = with_regex()
    scene.ok("m2", 0, None, {}, regex="c", timeout=5)
    assert not running(scene)
    scene.pass_time(10_000)
    epoch = scene.who("m1").member_epoch
    scene.ok("m1", epoch)
    assert not running(scene)
    scene.pass_time(1)
    scene.ok("m1", scene.who("m1").member_epoch)
    assert running(scene)
    scene.ok("m1", scene.who("m1").member_epoch)
    scene.resolved()
    assert [found.regex for found in scene.seen.regexes] == ["[ab]", "c"]


def test_new_topics_and_old_age_ask_for_another_resolution() -> None:
    """A new topic causes it; a deleted one does not (M-RX-03, M-RX-08, V-10)."""
    scene = with_regex()
    scene.pass_time(10_001)
    scene.topics(TOPICS[1])
    scene.ok("m1", scene.who("m1").member_epoch)
    assert not running(scene)
    assert scene.seen.regexes[0].topics == ("a", "b")
    scene.topics(*TOPICS)
    scene.ok("m1", scene.who("m1").member_epoch)
    assert running(scene)
    for profile, refreshed in ((KAFKA_4_3, True), (KAFKA_4_0, False)):
        aged = with_regex(profile)
        for _ in range(21):
            aged.pass_time(30_000)
            aged.ok("m1", aged.who("m1").member_epoch)
        assert running(aged) is refreshed


def test_a_failed_task_changes_nothing_and_is_tried_again() -> None:
    """M-RX-04."""
    scene = ConsumerScene()
    scene.ok("m1", 0, None, {}, regex="a", timeout=5)
    count = len(scene.records)
    scene.resolved(failed=True)
    assert (len(scene.records), running(scene)) == (count, False)
    scene.ok("m1", 1)
    assert running(scene)


def test_a_regex_result_without_a_user_is_dropped() -> None:
    """The user has left, or the partition is lost (M-RX-04, F-UNLOAD-01)."""
    scene = ConsumerScene()
    scene.ok("m1", 0, None, {}, regex="a", timeout=5)
    scene.ok("m1", -1)
    count = len(scene.records)
    scene.resolved()
    assert len(scene.records) == count
    lost = ConsumerScene()
    lost.ok("m1", 0, None, {}, regex="a", timeout=5)
    lost.feed(Unload(0, leader_epoch=None))
    assert not running(lost)
    with pytest.raises(ValueError, match="no regex task"):
        scene.feed(TaskDone(scene.now, KEY))


def test_changing_to_an_unresolved_regex_loses_the_old_topics_and_bumps() -> None:
    """Fixed under ``intended``; Kafka does not bump (LIV-15, M-RX-07, M-REC-25)."""
    for profile, bump in ((INTENDED, 1), (KAFKA_4_3, 0)):
        scene = with_regex(profile)
        scene.ok("m2", 0, None, {}, regex="[ab]", timeout=5)
        scene.pass_time(LATER)
        epoch = scene.seen.group_epoch
        scene.ok("m1", scene.who("m1").member_epoch, regex="c")
        assert scene.seen.group_epoch == epoch + bump
        assert plain(scene.who("m1").assigned) == {}


@pytest.mark.parametrize(("left", "bump"), [(TOPICS, 1), (TOPICS[2:], 0)], ids=["exist", "deleted"])
def test_topics_that_do_not_exist_any_more_are_nothing_to_lose(left: tuple[Topic, ...], bump: int) -> None:
    """Fixed under ``intended``: the stored resolution still has them, but no member can own them (LIV-15, M-RX-08)."""
    scene = with_regex()
    scene.ok("m2", 0, None, {}, regex="[ab]", timeout=5)
    scene.topics(*left)
    scene.pass_time(LATER)
    scene.ok("m2", scene.who("m2").member_epoch)  # takes up the new image
    epoch = scene.seen.group_epoch
    scene.ok("m1", scene.who("m1").member_epoch, regex="c")
    assert scene.seen.group_epoch == epoch + bump


@pytest.mark.parametrize(("profile", "version"), [(INTENDED, 0), (KAFKA_4_2, 0), (KAFKA_4_1, -1), (KAFKA_4_0, -1)])
def test_before_the_first_image(profile: Profile, version: int) -> None:
    """The tests that need Kafka's own classes ask them the same questions (M-RX-03, M-RX-04, V-43)."""
    scene = Scene(profile)
    body = ConsumerGroupHeartbeatRequest(
        GROUP,
        member_id="m1",
        member_epoch=0,
        rebalance_timeout_ms=30_000,
        subscribed_topic_regex="a",
        topic_partitions=(),
    )
    scene.ask(body, 1)
    scene.feed(TaskDone(scene.now, KEY))
    (found,) = [record.value for record in scene.records if isinstance(record.value, Resolved)]
    assert (found.topics, found.version) == ((), version)
    scene.pass_time(20_000)
    scene.feed(TopicsChanged(scene.now, (), version=5))
    scene.ask(replace(body, member_epoch=1), 1)
    assert (GROUP in scene.state.tasks) is (version < 0)


@pytest.mark.parametrize("functions", [StandardFunctions(), KafkaFunctions()])
def test_functions_match_whole_names_and_hash_into_64_signed_bits(functions: Functions) -> None:
    """M-RX-01, M-META-07."""
    matcher = functions.matcher("a|b.*")
    assert matcher is not None
    assert [name for name in ("a", "ab", "b", "bc", "cb") if matcher(name)] == ["a", "b", "bc"]
    assert functions.matcher("(") is None
    assert "missing" in functions.regex_fault("(")
    assert functions.regex_fault("a|b.*") == ""
    hashes = {functions.hash64(bytes([number])) for number in range(50)}
    assert len(hashes) == 50
    assert all(-(2**63) <= value < 2**63 for value in hashes)
    assert any(value < 0 for value in hashes)


def test_a_coordinator_keeps_the_functions_that_it_is_given() -> None:
    """Another test compares the hash with Kafka's (M-META-07)."""
    assert KafkaFunctions().hash64(b"") == 3_244_421_341_483_603_138
    state = coordinator.initial_state(Settings(), INTENDED, functions=KafkaFunctions())
    assert state.functions == KafkaFunctions()
    assert coordinator.initial_state(Settings(), INTENDED).functions == StandardFunctions()
