"""Faults of Kafka that have no other place: each with its mend beside it."""

from __future__ import annotations

from fencepost.protocol import messages as m
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import TimerKind
from fencepost.protocol.settings import INTENDED, KAFKA_4_0, KAFKA_4_3
from fencepost.protocol.view import GroupState

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
        body = m.JoinGroupRequest(GROUP, 10_000, 30_000, name, None, "consumer", protocols)
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
