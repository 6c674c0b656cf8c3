"""Faults of Kafka without a better place, each with its fix."""

from __future__ import annotations

from fencepost.protocol import messages as m
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import Load, TimerKind, Unload
from fencepost.protocol.profiles import INTENDED, KAFKA_4_0, KAFKA_4_3
from fencepost.protocol.view import GroupState
from fencepost_conformance.generate.cleaner import while_read

from .consumer_scene import A, B, ConsumerScene, plain
from .mixed_scene import MixedScene, gets, wants
from .scene import GROUP, Scene


def test_the_newcomer_flag_of_an_earlier_round() -> None:
    for profile, delay in ((KAFKA_4_3, 6_000), (INTENDED, 3_000)):
        scene = Scene(profile)
        names = [scene.newcomer(rebalance=2_000)[0] for _ in range(2)]
        scene.pass_time(3_000)
        scene.leave(*names)
        assert scene.now_in is GroupState.EMPTY
        assert scene.group().new_member_added is (profile is KAFKA_4_3)  # C-JOIN-71
        _, joined = scene.newcomer(rebalance=20_000)
        start = scene.now
        while joined not in scene.answers:
            scene.pass_time(1_000)
        assert scene.now - start == delay


def test_a_refusal_may_have_been_the_last_that_was_missing() -> None:
    for profile, answered in ((KAFKA_4_3, False), (INTENDED, True)):
        scene = Scene(profile, group_max_size=2)
        first, second = scene.stable(2)
        waits = scene.join(first)
        static = scene.join(instance="i")
        scene.join(second)
        assert (static in scene.answers, waits in scene.answers) == (answered, answered)  # C-JOIN-23


def test_a_name_listed_twice() -> None:
    for profile in (KAFKA_4_3, INTENDED):
        scene = Scene(profile)
        name = scene.joined(scene.join()).member_id
        protocols = (m.Protocol("a", b""), m.Protocol("a", b""))
        body = m.JoinGroupRequest(
            GROUP,
            session_timeout_ms=10_000,
            rebalance_timeout_ms=30_000,
            member_id=name,
            protocol_type="consumer",
            protocols=protocols,
        )
        asked = scene.ask(body)
        scene.pass_time(3_000)
        if profile is INTENDED:
            assert scene.joined(asked).error_code is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
            assert scene.now_in is GroupState.EMPTY
        else:
            assert asked not in scene.answers
            assert (scene.now_in, scene.group().generation_id) == (GroupState.PREPARING_REBALANCE, 1)
            assert scene.timer(TimerKind.JOIN) is None  # C-JOIN-72, C-ST-27
            scene.leave(name)
            assert scene.now_in is GroupState.PREPARING_REBALANCE


def test_4_0_deletes_in_one_operation() -> None:
    assert not KAFKA_4_0.fault_deletion_waits_twice


def test_a_partition_that_the_topic_does_not_have() -> None:
    """In Kafka no member can join; with the fix the partition is revoked like any other (A-UHET-06, X-UP-05)."""
    for profile in (KAFKA_4_3, INTENDED):
        scene = MixedScene(profile)
        asked = scene.join("", instance="i1", data=wants("a"))
        scene.pass_time(6_000)
        first = scene.joined(asked).member_id
        scene.sync(first, 1, {first: gets({"a": [0, 7]})})
        if profile is KAFKA_4_3:
            assert scene.error("m1", 0, ("b",), {}, timeout=5) is ErrorCode.UNKNOWN_SERVER_ERROR
            assert scene.now_in is GroupState.STABLE
            continue
        assert plain(scene.come("m1", "b").assignment or ()) == {B: (0, 1)}
        assert plain(dict(scene.seen.target)[first]) == {A: (0, 1, 2, 3)}
        answer = scene.rejoin(first, "a", instance="i1")
        assert plain(scene.who(first).assigned) == {A: (0, 1, 2, 3)}
        assert answer.generation_id == scene.seen.group_epoch


def test_a_log_that_is_compacted_while_it_is_read() -> None:
    """At any place where the cleaner overtakes the reader (F-REPLAY-18, M-PE-02)."""
    for profile in (KAFKA_4_3, INTENDED):
        scene = ConsumerScene(profile)
        scene.come("one", "a")
        read = len(scene.records)
        scene.ok("one", -1)
        scene.ask(m.DeleteGroupsRequest((GROUP,)))
        scene.come("two", "a")  # in a new group, whose epochs start again
        scene.come("one", "a")
        live, end = scene.seen, len(scene.records)
        for place in (0, read, end):
            scene.records = scene.records[:end]
            scene.feed(Unload(scene.now, leader_epoch=None))
            scene.feed(Load(scene.now, leader_epoch=2, records=while_read(scene.records, place, end)))
            if profile is KAFKA_4_3 and place == read:
                assert not scene.state.groups
            else:
                assert scene.seen.members == live.members
                assert scene.seen.partition_epochs == live.partition_epochs


def test_an_assignment_that_an_upgrade_overtook() -> None:
    """With the fix its timeout has no effect; Kafka sets a join timer of the former classic group (X-UP-16)."""
    for profile in (KAFKA_4_3, INTENDED):
        scene = MixedScene(profile)
        asked = scene.join("", instance="i1", data=wants("a"))
        scene.pass_time(10_000)
        member = scene.joined(asked).member_id
        scene.log = "later"
        sync = scene.sync(member, 1, {member: gets({"a": [0]})})
        assert scene.beat("m1", 0, ("a",), {}, timeout=5) is None
        assert scene.synced(sync).error_code is ErrorCode.REBALANCE_IN_PROGRESS
        scene.pass_time(5_000)
        assert (scene.timer(TimerKind.JOIN) is None) is (profile is INTENDED)
        scene.replicate()
        assert not scene.is_classic
        assert {row.member_id for row in scene.seen.members} == {member, "m1"}
