"""Offsets that are deleted by request, with their group or topic, or by expiry (6.5, 6.6)."""

from collections.abc import Iterable

import pytest

from fencepost.protocol import messages as m
from fencepost.protocol import offset_messages as o
from fencepost.protocol.embedded import Subscription, encode_subscription
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import LoadStarted, TimerKey, TimerKind, Topic, Unload
from fencepost.protocol.profiles import INTENDED, KAFKA_4_2, KAFKA_4_4
from fencepost.protocol.records import GroupMetadataKey
from fencepost.protocol.view import GroupState

from .consumer_scene import LATER, TOPICS, B
from .offset_scene import NONE, PRODUCER, OffsetScene, gone
from .scene import GROUP

ONE = {("a", 0): 5}
KEPT = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
R = 10_000  #: retention and check interval: checks come less often than sessions end
EVERY = 1_000


def wants(*topics: str) -> bytes:
    return encode_subscription(Subscription(topics))


def joined(topics: Iterable[str] | None, kind: str = "consumer", **settings: int) -> tuple[OffsetScene, str]:
    """Return a group with one static member, Stable, which subscribes to these topics; None: its metadata is not a
    subscription."""
    scene = OffsetScene(**settings)
    data = b"?" if topics is None else wants(*topics)
    number = scene.join("", instance="i", data=data, session=1_800_000, kind=kind)
    while number not in scene.answers:
        scene.pass_time(100)
    name = scene.joined(number).member_id
    scene.sync(name, 1, {name: b""}, protocol_type=kind)
    assert scene.now_in is GroupState.STABLE
    return scene, name


def old(profile=INTENDED, **more: object) -> OffsetScene:
    """Return a scene in which offsets expire soon."""
    return OffsetScene(profile, offsets_retention_ms=R, offsets_retention_check_interval_ms=EVERY, **more)


class TestOffsetDelete:
    def test_errors_before_the_group_is_looked_up(self) -> None:
        """O-DEL-01, O-DEL-02, O-DEL-03."""
        scene = OffsetScene()
        scene.commit(ONE)
        assert scene.delete({"a": (0,)}, denied=frozenset({GROUP})) is ErrorCode.GROUP_AUTHORIZATION_FAILED
        assert scene.delete({"a": (0, 9), "b": (0,), "x": (0,)}, denied_topics=frozenset({"b"})) == {
            ("a", 9): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            ("a", 0): NONE,
            ("b", 0): ErrorCode.TOPIC_AUTHORIZATION_FAILED,
            ("x", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        }
        assert scene.delete({"a": (0,)}, group="") is ErrorCode.INVALID_GROUP_ID
        assert scene.delete({"x": (0,)}, group="nobody") is ErrorCode.GROUP_ID_NOT_FOUND
        scene.feed(Unload(0, leader_epoch=None))
        assert scene.delete({"a": (0,)}) is ErrorCode.NOT_COORDINATOR
        scene.feed(LoadStarted(0, leader_epoch=2))
        assert scene.delete({"a": (0,)}) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        assert scene.delete({"a": (0,)}, group="") is ErrorCode.INVALID_GROUP_ID
        scene.state = scene.state._replace(running=False)
        assert scene.delete({"a": (0,)}, group="") is ErrorCode.COORDINATOR_NOT_AVAILABLE

    def test_tombstones_for_existing_offsets(self) -> None:
        """O-DEL-06."""
        scene = OffsetScene()
        scene.commit(ONE)
        scene.transact({("a", 1): 6})
        since = len(scene.records)
        assert scene.delete({"a": (0, 1, 2)}) == {("a", number): NONE for number in range(3)}
        assert gone(scene.records[since:]) == [(GROUP, "a", 0), (GROUP, "a", 1)]
        assert GROUP in scene.state.groups
        assert not scene.state.offsets.groups

    def test_pending_offsets_are_deleted_too(self) -> None:
        """They do not come back; the producer's other groups are unchanged (O-DEL-09, O-TXN-10)."""
        scene = OffsetScene()
        scene.transact(ONE)
        scene.transact({("a", 1): 8})
        scene.transact(ONE, group="other")
        scene.delete({"a": (0,)})
        assert scene.pending() == {("a", 1, PRODUCER): 8}
        scene.end()
        assert scene.read() == {("a", 1): 8}
        assert scene.read(group="other") == ONE

    def test_a_consumer_group_keeps_the_offsets_of_subscribed_topics(self) -> None:
        """The subscription is by name, or by a resolved regex (O-DEL-05, O-DEL-07)."""
        scene = OffsetScene()
        scene.come("m1", "a")
        scene.commit({("a", 0): 5, ("b", 0): 6}, scene.who("m1").member_epoch, "m1")
        assert scene.delete({"a": (0, 1), "b": (0,)}) == {("a", 0): KEPT, ("a", 1): KEPT, ("b", 0): NONE}
        assert scene.stored() == ONE
        scene.ok("m1", -1)
        assert scene.delete({"a": (0,)}) == {("a", 0): NONE}

    def test_a_classic_group_of_consumers(self) -> None:
        """O-DEL-05, O-DEL-07, O-DEL-08."""
        scene, name = joined(["a"])
        scene.commit({("a", 0): 5, ("b", 0): 6}, 1, name)
        assert scene.delete({"a": (0,), "b": (0,)}) == {("a", 0): KEPT, ("b", 0): NONE}
        scene.load(scene.records)
        assert scene.delete({"a": (0,), "b": (0,)}) == {("a", 0): KEPT, ("b", 0): NONE}  # read from its record
        scene.leave(name)
        assert scene.now_in is GroupState.EMPTY
        assert scene.delete({"a": (0,)}) == {("a", 0): NONE}

    def test_a_member_with_unreadable_subscriptions(self) -> None:
        """O-DEL-07, G-DATA-10."""
        scene, _ = joined(None)
        assert scene.delete({"a": (0,), "b": (0,)}) == {("a", 0): KEPT, ("b", 0): KEPT}

    def test_a_first_rebalance_has_no_subscriptions_yet(self) -> None:
        """O-DEL-07, G-DATA-10."""
        scene = OffsetScene()
        scene.join("", instance="i", data=wants("a"))
        assert scene.delete({"b": (0,)}) == {("b", 0): KEPT}

    def test_a_classic_group_of_others(self) -> None:
        """O-DEL-04, O-DEL-07."""
        scene, name = joined(["a"], "connect")
        assert scene.delete({"b": (0,)}) is ErrorCode.NON_EMPTY_GROUP
        scene.leave(name)
        assert scene.delete({"a": (0,)}) == {("a", 0): NONE}

    def test_an_answer_waits_for_the_log(self) -> None:
        """F-RT-26."""
        scene = OffsetScene(log="late")
        scene.commit(ONE)
        scene.replicate()
        assert scene.delete({"a": (0,)}) is None
        scene.fail(ErrorCode.NOT_ENOUGH_REPLICAS)
        assert scene.answers[2] == o.OffsetDeleteResponse(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        assert scene.stored() == ONE
        assert scene.delete({"a": (0,)}) is None
        assert scene.read() == ONE
        scene.replicate()
        assert scene.answers[3] == o.OffsetDeleteResponse(NONE, scene.answers[3].topics)
        assert scene.read() == {}


class TestDeleteGroups:
    def test_offsets_go_first(self) -> None:
        """F-ORD-13, O-DEL-09, C-ADM-10."""
        scene = OffsetScene()
        scene.commit({("b", 0): 1, ("a", 1): 5, ("a", 0): 5})
        scene.transact({("a", 0): 7, ("c", 0): 7})
        since = len(scene.records)
        assert scene.delete_group() is NONE
        written = scene.records[since:]
        assert gone(written) == [(GROUP, "a", 0), (GROUP, "a", 1), (GROUP, "b", 0), (GROUP, "c", 0)]
        assert written[-1].key == GroupMetadataKey(GROUP)
        assert not scene.state.groups
        scene.end()
        assert not scene.state.offsets.groups

    def test_of_a_consumer_group(self) -> None:
        """F-ORD-13, F-ORD-09."""
        scene = OffsetScene()
        scene.come("m1", "a")
        scene.commit(ONE, scene.who("m1").member_epoch, "m1")
        assert scene.delete_group() is ErrorCode.NON_EMPTY_GROUP
        scene.ok("m1", -1)
        since = len(scene.records)
        assert scene.delete_group() is NONE
        assert gone(scene.records[since : since + 1]) == [(GROUP, "a", 0)]
        assert scene.written(since + 1) == ["TargetEpoch†", "PartitionMetadata†", "GroupEpoch†"]
        assert not scene.state.offsets.groups

    def test_a_deletion_that_failed(self) -> None:
        """F-RT-08."""
        scene = OffsetScene(log="late")
        scene.commit(ONE)
        scene.replicate()
        before = scene.state.offsets
        count = len(scene.records)
        scene.ask(m.DeleteGroupsRequest((GROUP,)))
        scene.fail(ErrorCode.NOT_ENOUGH_REPLICAS, len(scene.records) - count)
        assert scene.state.offsets is before
        assert GROUP in scene.state.groups


class TestDeletedTopics:
    AGAIN = bytes(15) + b"\x0a"

    @pytest.mark.parametrize("profile", [INTENDED, KAFKA_4_2], ids=lambda profile: profile.name)
    def test_by_name_and_id(self, profile) -> None:
        """An offset that is stored with another id stays; before 4.3 ids do not matter (O-EXP-23, V-57)."""
        scene = OffsetScene(profile)
        scene.commit({("a", 0): 5, ("b", 0): 6}, version=4, retention=10**9)
        scene.commit({("a", 1): 5})
        scene.transact({("a", 1): 7, ("a", 2): 7})
        since = len(scene.records)
        scene.topics(Topic("b", B, 2))
        assert gone(scene.records[since:]) == [(GROUP, "a", 0), (GROUP, "a", 1), (GROUP, "a", 1), (GROUP, "a", 2)]
        assert scene.stored() == {("b", 0): 6}
        assert not scene.pending()

    def test_another_id(self) -> None:
        """O-EXP-23."""
        for profile, stays in ((INTENDED, True), (KAFKA_4_2, False)):
            scene = OffsetScene(profile)
            scene.topics(*(topic for topic in TOPICS if topic.name != "a"), Topic("a", self.AGAIN, 4))
            scene.commit(ONE)
            records = list(scene.records)
            scene.feed(Unload(0, leader_epoch=None))
            scene.topics(*TOPICS)
            scene.load(records)
            since = len(scene.records)
            scene.topics(*(topic for topic in TOPICS if topic.name != "a"))
            assert (scene.stored() == ONE) is stays
            assert bool(gone(scene.records[since:])) is not stays

    def test_groups_that_are_out_of_sight_too(self) -> None:
        """O-EXP-23, G-DATA-42."""
        scene = OffsetScene(KAFKA_4_4)
        scene.come("m1", "a")
        scene.commit(ONE, scene.who("m1").member_epoch, "m1")
        scene.ok("m1", -1)
        scene.join("stranger")
        scene.topics()
        assert not scene.stored()

    def test_a_deletion_without_offsets_waits_for_earlier_writes(self) -> None:
        """O-EXP-23, F-RT-16."""
        scene = OffsetScene(log="late")
        scene.commit({("b", 0): 1})
        before = dict(scene.state.operations)
        scene.topics(*(topic for topic in TOPICS if topic.name != "a"))
        (waiting,) = scene.state.operations.keys() - before.keys()
        assert waiting < 0
        assert not scene.state.ends[1:]  # it wrote nothing

    def test_a_failed_append_is_not_reported(self) -> None:
        """O-EXP-23."""
        scene = OffsetScene(log="late")
        scene.commit(ONE)
        scene.replicate()
        scene.topics()
        scene.fail(ErrorCode.NOT_ENOUGH_REPLICAS)
        assert scene.stored() == ONE
        assert not scene.state.operations


class TestExpiry:
    def test_a_simple_group_by_the_time_of_each_commit(self) -> None:
        """The group is removed with its last offset, by a separate tombstone (O-EXP-04, O-EXP-12, O-EXP-20)."""
        scene = old()
        scene.commit(ONE)
        scene.now = 4_000
        scene.commit({("a", 1): 6})
        scene.expire(R - 4_001)
        assert len(scene.stored()) == 2
        since = len(scene.records)
        scene.expire(1)
        assert scene.now == R - 1 + EVERY
        assert gone(scene.records[since:]) == [(GROUP, "a", 0)]
        assert scene.stored() == {("a", 1): 6}
        since = len(scene.records)
        scene.expire(4_000)
        assert gone(scene.records[since:]) == [(GROUP, "a", 1)]
        assert scene.records[-1].key == GroupMetadataKey(GROUP)
        assert not scene.state.groups

    def test_a_commit_may_have_its_own_expiry(self) -> None:
        """O-EXP-01."""
        scene = old()
        scene.commit(ONE, version=4, retention=3 * R)
        scene.commit({("a", 1): 6}, version=4, retention=0)
        scene.expire(EVERY)
        assert scene.stored() == ONE
        scene.expire(2 * R)
        assert scene.stored() == ONE
        scene.expire(R)
        assert not scene.stored()

    def test_an_empty_classic_group_by_when_it_became_so(self) -> None:
        """Later commits expire too, also after a reload (O-EXP-02, O-EXP-13, O-EXP-15)."""
        scene, name = joined(["a"], offsets_retention_ms=R, offsets_retention_check_interval_ms=EVERY)
        scene.commit(ONE, 1, name)
        scene.now += R
        scene.leave(name)
        left = scene.now
        scene.now += R - 2 * EVERY
        scene.commit({("b", 0): 6})
        scene.load(scene.records)
        scene.expire(0)
        assert scene.now == left + R - EVERY
        assert len(scene.stored()) == 2
        scene.expire(0)
        assert scene.now == left + R
        assert not scene.stored()
        assert not scene.state.groups

    def test_a_stable_classic_group_of_consumers(self) -> None:
        """O-EXP-03, O-EXP-10, INV-COMMIT-04."""
        scene, name = joined(["a"], offsets_retention_ms=R, offsets_retention_check_interval_ms=EVERY)
        scene.commit({("a", 0): 5, ("b", 0): 6}, 1, name)
        scene.expire(R)
        assert scene.stored() == ONE
        assert GROUP in scene.state.groups

    @pytest.mark.parametrize(("topics", "kind"), [(None, "consumer"), (["a"], "connect")])
    def test_offsets_of_a_group_with_an_unknown_subscription_stay(self, topics: list[str] | None, kind: str) -> None:
        """O-EXP-06."""
        scene, name = joined(topics, kind, offsets_retention_ms=R, offsets_retention_check_interval_ms=EVERY)
        scene.commit({("b", 0): 6}, 1, name)
        scene.expire(3 * R)
        assert scene.stored() == {("b", 0): 6}

    def test_a_rebalance(self) -> None:
        """O-EXP-06."""
        scene, name = joined(["a"], offsets_retention_ms=R, offsets_retention_check_interval_ms=EVERY)
        scene.commit({("b", 0): 6}, 1, name)
        scene.join("", instance="j", data=wants("a"))
        assert scene.now_in is GroupState.PREPARING_REBALANCE
        scene.expire(3 * R)
        assert scene.stored() == {("b", 0): 6}

    def test_a_consumer_group(self) -> None:
        """O-EXP-05, O-EXP-10, O-EXP-14."""
        scene = old()
        scene.come("m1", "a")
        scene.pass_time(LATER - EVERY)
        scene.commit({("a", 0): 5, ("b", 0): 6}, scene.who("m1").member_epoch, "m1")
        scene.expire(R)
        assert scene.stored() == ONE
        scene.ok("m1", -1)
        since = len(scene.records)
        scene.expire(0)
        assert gone(scene.records[since:]) == [(GROUP, "a", 0)]
        assert scene.written(since + 1) == ["TargetEpoch†", "PartitionMetadata†", "GroupEpoch†"]
        assert not scene.state.groups

    def test_pending_offsets_do_not_expire(self) -> None:
        """O-EXP-11, O-EXP-20, O-EXP-24."""
        scene = old()
        scene.commit({("a", 0): 5, ("a", 1): 5})
        scene.transact({("a", 0): 6})
        scene.transact({("b", 0): 6}, group="other")
        scene.expire(R)
        assert scene.stored() == ONE
        assert set(scene.state.groups) == {GROUP, "other"}
        scene.end(committed=False)
        scene.expire(0)
        assert not scene.state.groups

    def test_groups_without_offsets_are_removed_immediately(self) -> None:
        """O-EXP-20, O-EXP-21, O-EXP-25, LIV-10."""
        scene = OffsetScene()
        name = scene.joined(scene.join()).member_id
        assert scene.now_in is GroupState.EMPTY
        scene.come("m1", "a", group="members")
        scene.expire(0)
        assert set(scene.state.groups) == {"members"}
        assert scene.joined(scene.join(name)).error_code is ErrorCode.UNKNOWN_MEMBER_ID

    def test_the_expiry_check_is_repeated(self) -> None:
        """Checks run one interval after a load, then after each check, and after a failure (O-EXP-26, F-LOAD-07)."""
        key = TimerKey(TimerKind.EXPIRY)
        scene = OffsetScene(log="late", offsets_retention_ms=R, offsets_retention_check_interval_ms=2 * R)
        assert scene.timers == {key: 2 * R}
        scene.commit(ONE)
        scene.replicate()
        scene.expire(3 * R)
        assert scene.timers[key] == scene.now + 2 * R
        count = len(scene.records)
        assert count == 3
        scene.fail(ErrorCode.NOT_ENOUGH_REPLICAS, 2)
        assert scene.stored() == ONE
        assert GROUP in scene.state.groups
        assert scene.timers == {key: scene.now + 2 * R}
        scene.expire(0)
        assert not scene.state.groups
        scene.pass_time(5_000)
        assert scene.timers == {key: scene.now + 2 * R}  # its write was late
        scene.feed(Unload(scene.now, leader_epoch=None))
        assert not scene.timers
