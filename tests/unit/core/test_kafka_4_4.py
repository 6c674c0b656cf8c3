"""Differences of Kafka 4.4 from 4.3 (V-120…127), and the fault that 4.4 introduced (M-HB-15)."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from core.consumer_scene import LATER, A, ConsumerScene, plain, settled
from core.mixed_scene import MixedScene, wants
from core.scene import FirstOf
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.profile import Profile
from fencepost.protocol.profiles import INTENDED, KAFKA_4_2, KAFKA_4_2_2, KAFKA_4_3, KAFKA_4_4

ALL = pytest.mark.parametrize("profile", [KAFKA_4_3, KAFKA_4_4, INTENDED], ids=lambda each: each.name)


@ALL
def test_a_vote_that_elects_another_assignor_bumps(profile: Profile) -> None:
    """The assignor that the members vote for computes the target, not the previous one (M-HB-14, M-TGT-02, V-121)."""
    scene = settled(profile)
    epoch, votes = scene.seen.group_epoch, []
    for member in ("m1", "m2"):
        scene.pass_time(LATER)
        scene.ok(member, scene.who(member).member_epoch, None, None, assignor="range")
        votes.append(scene.seen.group_epoch)
    assert votes == ([epoch] * 2 if profile is KAFKA_4_3 else [epoch + 1] * 2)
    scene.pass_time(LATER)
    scene.ok("m1", scene.who("m1").member_epoch, None, None, assignor="uniform")
    assert scene.seen.group_epoch == votes[-1]  # a tie: the first of both is the previous one


class OneAndTheOther(FirstOf):
    """Elect the last of equal assignors where Kafka asks another map."""

    def assignor(self, group_id: str, tied: Sequence[str]) -> str:
        return tied[0]

    def shown(self, group_id: str, *, least: int, most: int) -> int:
        return most

    def standing(self, group_id: str, tied: Sequence[str]) -> str:
        return tied[-1]


@ALL
def test_a_tie_of_votes_bumps_with_every_heartbeat(profile: Profile) -> None:
    """No request asks for a change and nothing changes, but the group never becomes stable (M-HB-15)."""
    scene = ConsumerScene(profile)
    scene.choices = OneAndTheOther()
    scene.come("m1", "a", assignor="range")
    scene.come("m2", "a", assignor="uniform")
    epochs = []
    for _ in range(3):
        scene.pass_time(LATER)
        for member in ("m1", "m2"):
            held = plain(scene.who(member).assigned)
            scene.ok(member, scene.who(member).member_epoch, None, held)
        epochs.append(scene.seen.group_epoch)
    if profile is KAFKA_4_4:
        assert epochs == [epochs[0], epochs[0] + 2, epochs[0] + 4]
    else:
        assert len(set(epochs)) == 1


@ALL
def test_the_target_of_an_emptied_group_is_as_new_as_its_epoch(profile: Profile) -> None:
    """The next member gets a target immediately, whatever the interval (M-LEAVE-08, F-ORD-07, V-122)."""
    scene = ConsumerScene(profile, group_consumer_assignment_interval_ms=15_000)
    scene.pass_time(5)
    scene.come("m1", "a")
    scene.ok("m1", -1)
    scene.pass_time(5)
    late = profile is KAFKA_4_3
    assert (scene.seen.assignment_epoch == scene.seen.group_epoch) is not late
    scene.come("m2", "a")
    assert (not scene.who("m2").assigned) is late


@ALL
def test_a_replacement_takes_its_target_along(profile: Profile) -> None:
    """An unchanged target is not written again (V-127, M-STATIC-03, M-TGT-04)."""
    scene = ConsumerScene(profile)
    scene.come("m1", "a", instance="i")
    scene.ok("m1", -2, instance="i")
    scene.pass_time(LATER)
    count = len(scene.records)
    scene.come("m2", "a", "none", instance="i")
    assert scene.written(count).count("TargetMember") == (2 if profile is KAFKA_4_3 else 1)
    assert plain(scene.who("m2").assigned) == {A: (0, 1, 2, 3)}


@pytest.mark.parametrize(
    ("profile", "answer"),
    [
        (KAFKA_4_2, ErrorCode.UNKNOWN_SERVER_ERROR),
        (KAFKA_4_2_2, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        (KAFKA_4_3, ErrorCode.UNKNOWN_SERVER_ERROR),
        (KAFKA_4_4, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
    ],
    ids=lambda each: getattr(each, "name", ""),
)
def test_a_subscription_that_cannot_be_read_is_the_clients_fault(profile: Profile, answer: ErrorCode) -> None:
    """X-JOIN-09, V-125."""
    scene = MixedScene(profile)
    scene.come("m1", "a")
    assert scene.joined(scene.join("x", data=b"\0")).error_code is answer
    assert scene.joined(scene.join("x", data=wants("a"))).error_code is ErrorCode.NONE
