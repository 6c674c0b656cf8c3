"""Timers when records are lost (M-HB-13), and late joins (M-FENCE-07): Kafka's behaviour and the fix."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from fencepost.protocol.consumer_view import MemberState
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import TimerKind
from fencepost.protocol.profile import Profile
from fencepost.protocol.profiles import INTENDED, KAFKA_4_0, KAFKA_4_1, KAFKA_4_3
from fencepost_conformance.judge.compare.lockstep import as_far_as_recorded, first_difference

from .consumer_scene import LATER, TOPICS, A, ConsumerScene, plain, settled
from .test_findings import DOCS, read, run, seen

ALL = {A: (0, 1, 2, 3)}
SESSION, REBALANCE = TimerKind.CONSUMER_SESSION, TimerKind.CONSUMER_REBALANCE
#: Traces of Kafka 4.3.1 that the core repeats under Kafka's profile, but not under ``intended``.
FIXED = ("leave-not-stored", "confirmation-not-stored", "late-join")


def lose(scene: ConsumerScene, *beat: object, **more: object) -> None:
    """Send a heartbeat whose records are not appended."""
    scene.log = "later"
    count = len(scene.records)
    assert scene.beat(*beat, **more) is None  # type: ignore[arg-type]
    scene.fail(ErrorCode.NOT_ENOUGH_REPLICAS, len(scene.records) - count)
    scene.log = "at once"


def shared(profile: Profile) -> ConsumerScene:
    """Return a scene in which m1 has four partitions; m2 has joined and must get two of them."""
    scene = ConsumerScene(profile)
    scene.come("m1", "a")
    scene.pass_time(LATER)
    scene.come("m2", "a")
    return scene


def revoking(profile: Profile) -> ConsumerScene:
    """Return a scene in which m1 was asked to revoke them; 29 s are left."""
    scene = shared(profile)
    scene.ok("m1", 2, None, ALL)
    assert scene.who("m1").state is MemberState.UNREVOKED_PARTITIONS
    scene.pass_time(1_000)
    return scene


@pytest.mark.parametrize(("profile", "left"), [(KAFKA_4_3, None), (INTENDED, 45_000)])
def test_a_member_whose_leave_was_not_stored_is_watched_again(profile: Profile, left: int | None) -> None:
    """Without the timer, the member keeps its partitions for ever, because no member leaves twice (M-LEAVE-03, M-HB-13,
    N-HB-09)."""
    scene = settled(profile)
    scene.pass_time(7)
    lose(scene, "m1", -1)
    assert scene.timer(SESSION, "m1") == left
    assert scene.timer(SESSION, "m2") == 44_993  # m2 is unchanged
    scene.pass_time(44_000)
    scene.ok("m2", scene.who("m2").member_epoch)
    scene.pass_time(1_000)
    assert [row.member_id for row in scene.seen.members] == (["m1", "m2"] if left is None else ["m2"])


@pytest.mark.parametrize(("profile", "left"), [(KAFKA_4_3, None), (INTENDED, 30_000)])
def test_a_member_whose_confirmation_was_not_stored_has_a_time_limit_again(profile: Profile, left: int | None) -> None:
    """M-TMR-02, LIV-08."""
    scene = revoking(profile)
    lose(scene, "m1", 2, None, {A: (0, 1)})
    assert scene.who("m1").state is MemberState.UNREVOKED_PARTITIONS
    assert scene.timer(REBALANCE, "m1") == left
    scene.ok("m1", 2)
    scene.pass_time(30_000)
    assert len(scene.seen.members) == (2 if left is None else 1)


def test_a_timer_that_the_lost_step_left_alone_runs_on() -> None:
    scene = revoking(INTENDED)
    lose(scene, "m1", 2, ("a", "b"))
    assert scene.timer(REBALANCE, "m1") == 29_000


@pytest.mark.parametrize(("profile", "left"), [(KAFKA_4_3, 30_000), (INTENDED, None)])
def test_a_member_whose_revocation_was_not_stored_has_no_time_limit(profile: Profile, left: int | None) -> None:
    """The record of the revocation itself was not stored (M-HB-13)."""
    scene = shared(profile)
    lose(scene, "m1", 2, None, ALL)
    assert scene.who("m1").state is MemberState.STABLE
    assert scene.timer(REBALANCE, "m1") == left


def test_a_timer_that_fired_comes_again_after_its_own_time() -> None:
    """M-TMR-08 has priority: the session timer fires again in 500 ms, and the rebalance timer that was cancelled with
    it runs its full time."""
    scene = revoking(INTENDED)
    scene.log = "later"
    count = len(scene.records)
    scene.fire(SESSION, "m1")
    scene.fail(ErrorCode.NOT_ENOUGH_REPLICAS, len(scene.records) - count)
    assert (scene.timer(SESSION, "m1"), scene.timer(REBALANCE, "m1")) == (500, 30_000)


@pytest.mark.parametrize("stage", [shared, revoking])
@pytest.mark.parametrize(("profile", "given"), [(KAFKA_4_3, {A: (2, 3)}), (INTENDED, {})])
def test_a_late_join_does_not_confirm_a_revocation(
    profile: Profile, given: dict[bytes, tuple[int, ...]], stage: Callable[[Profile], ConsumerScene]
) -> None:
    """A late copy of m1's join releases nothing; in Kafka m2 gets the partitions that m1 owns (M-FENCE-07)."""
    scene = stage(profile)
    scene.ok("m1", 0, ("a",), {}, timeout=30_000)
    assert plain(scene.ok("m2", 3, None, {}).assignment or ()) == given


def test_a_member_that_comes_back_under_its_id_lets_go_in_its_next_heartbeat() -> None:
    """The answer has the member's assignment without the partitions to revoke; the member takes that and confirms it
    (M-FENCE-07, LIV-07)."""
    scene = shared(INTENDED)
    answer = scene.ok("m1", 0, ("a",), {}, timeout=30_000)
    assert (answer.member_epoch, plain(answer.assignment or ())) == (2, {A: (0, 1)})
    assert scene.who("m1").state is MemberState.UNREVOKED_PARTITIONS
    assert scene.timer(REBALANCE, "m1") == 30_000
    again = scene.ok("m1", 0, ("a",), {}, timeout=30_000)
    assert plain(again.assignment or ()) == {A: (0, 1)}  # the answer may be lost
    assert scene.ok("m1", 2, None, {A: (0, 1)}).member_epoch == 3
    assert plain(scene.ok("m2", 3, None, {}).assignment or ()) == {A: (2, 3)}


def test_a_member_that_comes_back_after_a_leave_owns_nothing() -> None:
    """A static member that left temporarily has released its partitions (M-REC-24)."""
    scene = ConsumerScene()
    epoch = scene.come("m1", "a", instance="i").member_epoch
    scene.ok("m1", -2, instance="i")
    scene.pass_time(LATER)
    scene.come("m2", "a")
    scene.pass_time(LATER)
    back = scene.come("m3", "a", instance="i")
    assert (back.member_epoch, plain(back.assignment or ())) == (epoch + 1, {A: (0, 1)})
    assert scene.who("m3").state is MemberState.STABLE


@pytest.mark.parametrize("name", [*FIXED, "unreported-partitions"])
def test_the_core_does_as_kafka_did(name: str) -> None:
    trace = read(DOCS / "findings" / "consumer" / f"{name}.jsonl")
    assert len(seen(trace)) == len(trace.events)
    assert first_difference(as_far_as_recorded(run(trace, KAFKA_4_3), seen(trace)), seen(trace)) is None


@pytest.mark.parametrize("name", FIXED)
def test_the_intended_protocol_does_not(name: str) -> None:
    trace = read(DOCS / "findings" / "consumer" / f"{name}.jsonl")
    assert first_difference(as_far_as_recorded(run(trace, INTENDED), seen(trace)), seen(trace)) is not None


@pytest.mark.parametrize(
    ("profile", "answer"),
    [(KAFKA_4_0, ErrorCode.UNKNOWN_SERVER_ERROR), (KAFKA_4_1, ErrorCode.NONE), (INTENDED, ErrorCode.NONE)],
)
def test_a_lost_metadata_check_keeps_its_deadline(profile: Profile, answer: ErrorCode) -> None:
    """4.0 assigns the topics that the group last saw, later releases those of the cluster (M-META-02, V-136)."""
    scene = ConsumerScene(profile)
    scene.beat("m1", 0, (), {}, regex="a.*", timeout=30_000)
    scene.resolved()
    scene.come("m2", "a")
    scene.topics(*TOPICS[1:])
    scene.ok("m2", -1)  # the group has no topic now, and a target is due
    scene.topics(*TOPICS)
    epoch = scene.who("m1").member_epoch
    lose(scene, "m1", epoch, (), {}, regex="")  # no topic here either: nothing differs, and the next check is far away
    assert scene.error("m1", epoch) is answer
