"""The effects for members when the group moves to a coordinator that has only the log (11.7)."""

from __future__ import annotations

from fencepost.protocol.consumer_view import MemberState
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import Load, LoadStarted, TimerKind, Unload
from fencepost.protocol.profile import Profile
from fencepost.protocol.profiles import INTENDED, KAFKA_4_3
from fencepost.protocol.view import GroupState

from .mixed_scene import mixed
from .scene import GROUP, Scene


def fail_over(scene: Scene) -> None:
    """Lose the partition and load it again from the log."""
    scene.feed(Unload(scene.now, leader_epoch=None))
    scene.timers.clear()
    scene.feed(LoadStarted(scene.now, leader_epoch=2))
    scene.feed(Load(scene.now, leader_epoch=2, records=tuple(scene.records)))


def rebalancing() -> tuple[Scene, list[str], str]:
    """Return two members of generation 1 and a newcomer, all of which got generation 2, whose assignment was never
    logged."""
    scene = Scene()
    old = scene.stable(2)
    newcomer, parked = scene.newcomer()
    for member_id in old:
        scene.join(member_id)
    assert scene.joined(parked).generation_id == 2
    assert scene.now_in is GroupState.COMPLETING_REBALANCE
    return scene, old, newcomer


def replaced(profile: Profile) -> tuple[Scene, str, str]:
    """Return a static member whose replacement is not replicated yet, and a newcomer; both got generation 2."""
    scene = Scene(profile)
    first = scene.join(instance="i")
    scene.pass_time(3_000)
    old = scene.joined(first).member_id
    scene.sync(old, 1, {old: b"all"})
    scene.log = "later"
    back = scene.join(instance="i")
    newcomer, _ = scene.newcomer()
    assert scene.joined(back).generation_id == 2
    return scene, scene.joined(back).member_id, newcomer


def test_a_parked_sync_of_a_replaced_member_is_sent_to_the_new_coordinator() -> None:
    """Kafka undoes the replacement first, which fences a client that no other client displaced (C-STATIC-06,
    F-UNLOAD-01)."""
    for profile, code in ((KAFKA_4_3, ErrorCode.FENCED_INSTANCE_ID), (INTENDED, ErrorCode.NOT_COORDINATOR)):
        scene, member_id, _ = replaced(profile)
        waits = scene.sync(member_id, 2, {member_id: b"all"}, group_instance_id="i")
        scene.feed(Unload(scene.now, leader_epoch=None))
        assert scene.synced(waits).error_code is code


def test_a_later_join_of_a_replaced_member_is_answered_when_the_partition_is_lost() -> None:
    """Undoing the replacement would forget it (C-STATIC-06); in Kafka the member's own operation answers it
    (C-JOIN-70)."""
    for profile in (KAFKA_4_3, INTENDED):
        scene, member_id, newcomer = replaced(profile)
        scene.sync(newcomer, 2)
        waits = scene.join(member_id, "range", data=b"changed", instance="i")
        assert scene.now_in is GroupState.PREPARING_REBALANCE
        scene.feed(Unload(scene.now, leader_epoch=None))
        assert scene.joined(waits).error_code is ErrorCode.NOT_COORDINATOR


def test_a_waiting_replacement_is_answered_once_when_the_partition_is_lost() -> None:
    for profile in (KAFKA_4_3, INTENDED):
        for rebalances in (False, True):
            scene = Scene(profile)
            first, (second, *_) = scene.join(instance="i"), scene.newcomer()
            scene.pass_time(6_000)
            leader = scene.joined(first).member_id
            scene.sync(second, 1)
            scene.sync(leader, 1, {leader: b"L", second: b"F"})
            scene.log = "later"
            back = scene.join(instance="i")
            if rebalances:
                scene.newcomer()
            assert scene.now_in is (GroupState.PREPARING_REBALANCE if rebalances else GroupState.STABLE)
            assert back not in scene.answers
            scene.feed(Unload(scene.now, leader_epoch=None))
            assert scene.joined(back).error_code is ErrorCode.NOT_COORDINATOR


def test_a_generation_that_was_not_logged_is_lost() -> None:
    """A member of the logged generation gets ILLEGAL_GENERATION, any other UNKNOWN_MEMBER_ID (F-CONS-01)."""
    scene, old, newcomer = rebalancing()
    fail_over(scene)
    assert scene.group().generation_id == 1
    assert scene.heartbeat(old[0], 2) is ErrorCode.ILLEGAL_GENERATION
    assert scene.heartbeat(newcomer, 2) is ErrorCode.UNKNOWN_MEMBER_ID
    assert scene.heartbeat(old[0], 1) is ErrorCode.NONE


def test_a_generation_number_is_given_out_again() -> None:
    """Generation 2 once had three members; now it has the two that returned (F-CONS-02)."""
    scene, old, _ = rebalancing()
    fail_over(scene)
    asked = [scene.join(member_id, "range", data=b"changed") for member_id in old]
    assert {scene.joined(number).generation_id for number in asked} == {2}
    assert {member.member_id for member in scene.group().members} == set(old)


def test_a_restored_member_offers_one_protocol_until_it_rejoins() -> None:
    """F-CONS-04, C-TMR-13."""
    scene = Scene()
    first, _ = scene.newcomer("range", "roundrobin")
    scene.pass_time(60_000 // 10)
    scene.sync(first, 1, {first: b"all"})
    assert [protocol.name for protocol in scene.member(first).protocols] == ["range", "roundrobin"]
    fail_over(scene)
    refused = scene.joined(scene.join("", "roundrobin"))
    assert refused.error_code is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    scene.join(first, "range", "roundrobin")
    assert scene.joined(scene.join("", "roundrobin")).error_code is ErrorCode.MEMBER_ID_REQUIRED


def test_members_learn_of_a_fail_over_only_by_refusals() -> None:
    """NOT_COORDINATOR first; during the load a heartbeat gets NONE, whatever its generation (F-CONS-06, C-HB-03)."""
    scene = Scene()
    member_id = scene.stable(1)[0]
    scene.feed(Unload(scene.now, leader_epoch=None))
    scene.timers.clear()
    assert scene.heartbeat(member_id, 1) is ErrorCode.NOT_COORDINATOR
    scene.feed(LoadStarted(scene.now, leader_epoch=2))
    assert scene.heartbeat("nobody", 77) is ErrorCode.NONE
    scene.feed(Load(scene.now, leader_epoch=2, records=tuple(scene.records)))
    assert scene.heartbeat(member_id, 1) is ErrorCode.NONE


def test_a_generation_that_failed_for_its_members_may_exist_after_a_reload() -> None:
    """The leader's record timed out, so its SyncGroup failed; the log has the record, and a reload restores it
    (F-CONS-08)."""
    scene = Scene(log="later")
    scene.newcomer()
    scene.replicate()
    leader, _ = scene.newcomer()
    scene.pass_time(6_000)
    leader = scene.group().leader or leader
    sent = scene.sync(leader, 1, {leader: b"all"})
    scene.pass_time(5_000)
    assert scene.synced(sent).error_code is ErrorCode.COORDINATOR_NOT_AVAILABLE
    fail_over(scene)
    assert scene.now_in is GroupState.STABLE
    assert scene.member(leader).assignment == b"all"
    assert scene.group().group_id == GROUP


def test_a_classic_member_that_must_revoke_is_watched_after_a_fail_over() -> None:
    """The converted member gets the timers of a consumer, which it never had before (F-LOAD-05, X-TMR-04, X-JOIN-21),
    as in Kafka."""
    for profile in (KAFKA_4_3, INTENDED):
        scene, _, second = mixed(profile)
        scene.rejoin(second, "a", owned={"a": [1, 3]}, instance="i2")
        assert scene.who(second).state is MemberState.UNREVOKED_PARTITIONS
        assert scene.timer(TimerKind.CONSUMER_REBALANCE, second) is None
        fail_over(scene)
        assert scene.timer(TimerKind.CONSUMER_REBALANCE, second) == 30_000
        assert scene.timer(TimerKind.CONSUMER_SESSION, second) == 45_000
        assert scene.timer(TimerKind.CONSUMER_SYNC, second) is None
