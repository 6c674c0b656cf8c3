"""Epochs, targets, reconciliation, and the content of answers (7.4–7.7)."""

from __future__ import annotations

import pytest

from fencepost.protocol import consumer_records as r
from fencepost.protocol.consumer_view import ConsumerGroupState, MemberState, SubscriptionType
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import GroupConfig, GroupConfigChanged, Load, TimerKind, Topic, Unload
from fencepost.protocol.profile import Profile
from fencepost.protocol.profiles import INTENDED, KAFKA_4_0, KAFKA_4_1, KAFKA_4_2, KAFKA_4_3
from fencepost_conformance.generate.simulate.consumer_group_rules import check_consumer_group

from .consumer_scene import LATER, TOPICS, A, B, ConsumerScene, kinds, plain, settled

ALL = {A: (0, 1, 2, 3)}


@pytest.mark.parametrize(("profile", "epoch"), [(KAFKA_4_3, 2), (KAFKA_4_2, 1), (KAFKA_4_0, 1)])
def test_the_first_member_gets_everything(profile: Profile, epoch: int) -> None:
    """M-VAL-21, G-DATA-20, M-EPOCH-01, M-ST-04, F-ORD-06, V-30, V-34."""
    scene = ConsumerScene(profile)
    answer = scene.come("m1", "a")
    assert (answer.member_epoch, plain(answer.assignment or ())) == (epoch, ALL)
    assert answer.heartbeat_interval_ms == 5_000
    before = ["PartitionMetadata"] if profile is KAFKA_4_0 else []
    assert kinds(scene.records) == [
        "MemberMetadata", *before, "GroupEpoch", "TargetMember", "TargetEpoch", "Current",
    ]  # fmt: skip
    assert scene.seen.state is ConsumerGroupState.STABLE
    assert scene.timer(TimerKind.CONSUMER_SESSION, "m1") == 45_000


@pytest.mark.parametrize(("profile", "written"), [(KAFKA_4_3, 2), (KAFKA_4_2, 5)])
def test_a_member_of_nothing_does_not_bump(profile: Profile, written: int) -> None:
    """The first epoch is 1 in every release; 4.3 writes no GroupEpoch record (M-VAL-21, M-HB-03, V-31)."""
    scene = ConsumerScene(profile)
    assert scene.ok("m1", 0, (), {}, timeout=5).member_epoch == 1
    assert len(scene.records) == written


def test_a_second_member_waits_for_the_first_to_let_go() -> None:
    """M-REC-10, 13, 16, 17, 18, 20, M-RSP-01…03, M-TMR-02, M-ST-03."""
    scene = ConsumerScene()
    scene.come("m1", "a")
    scene.pass_time(LATER)
    joined = scene.come("m2", "a")
    assert (joined.member_epoch, joined.assignment) == (3, ())
    assert scene.who("m2").state is MemberState.UNRELEASED_PARTITIONS
    answer = scene.ok("m1", 2, None, ALL)
    assert (answer.member_epoch, plain(answer.assignment or ())) == (2, {A: (0, 1)})
    assert scene.who("m1").state is MemberState.UNREVOKED_PARTITIONS
    assert scene.timer(TimerKind.CONSUMER_REBALANCE, "m1") == 30_000
    assert scene.seen.state is ConsumerGroupState.RECONCILING
    scene.pass_time(5)
    assert scene.ok("m1", 2).assignment is None  # M-REC-18: no list, so nothing is confirmed
    assert scene.ok("m1", 2, None, {A: (0, 1, 2)}).assignment is None
    assert scene.timer(TimerKind.CONSUMER_REBALANCE, "m1") == 29_995  # M-TMR-04
    assert scene.ok("m2", 3, None, {}).assignment is None
    let_go = scene.ok("m1", 2, None, {A: (0, 1)})
    assert (let_go.member_epoch, let_go.assignment) == (3, None)
    assert scene.timer(TimerKind.CONSUMER_REBALANCE, "m1") is None
    assert plain(scene.ok("m2", 3, None, {}).assignment or ()) == {A: (2, 3)}
    assert scene.seen.state is ConsumerGroupState.STABLE


def test_two_members_are_never_given_one_partition() -> None:
    """All promises are kept after every heartbeat of a long exchange (INV-KIP-01, M-PE-01)."""
    scene = ConsumerScene()
    epochs: dict[str, int] = {}
    owned: dict[str, dict[bytes, tuple[int, ...]]] = {}
    for turn in range(60):
        scene.pass_time(700)
        member = f"m{turn * 7 % 4}"
        if member not in epochs:
            answer = scene.come(member, "a", "b")
        elif turn % 13 == 12:
            scene.ok(member, -1)
            del epochs[member], owned[member]
            continue
        else:
            answer = scene.ok(member, epochs[member], None, owned[member])
        epochs[member] = answer.member_epoch
        if answer.assignment is not None:
            owned[member] = plain(answer.assignment)
        check_consumer_group(scene.seen)


@pytest.mark.parametrize("profile", [KAFKA_4_3, KAFKA_4_1])
def test_confirming_a_revocation_leads_to_the_target_or_to_the_next_revocation(profile: Profile) -> None:
    """4.1 advances to e + 1 in between (M-REC-04, M-REC-19, M-TMR-05)."""
    scene = ConsumerScene(profile, group_consumer_assignment_interval_ms=0)
    first = scene.come("m1", "a").member_epoch
    scene.come("m2", "a")
    scene.ok("m1", first, None, ALL)
    scene.come("m3", "a")
    scene.come("m4", "a")
    answer = scene.ok("m1", first, None, {A: (0, 1)})
    assert answer.member_epoch == first + (profile is KAFKA_4_1)
    assert scene.who("m1").state is MemberState.UNREVOKED_PARTITIONS


def test_within_the_assignment_interval_the_old_target_stays() -> None:
    """Before 4.3 nothing waits (V-38; M-TGT-08, M-TGT-09, M-HB-06, M-ST-02, M-ST-07, F-ORD-06)."""
    scene = ConsumerScene(KAFKA_4_3)
    scene.pass_time(50)
    scene.come("m1", "a")
    count = len(scene.records)
    joined = scene.come("m2", "a")
    assert (joined.member_epoch, joined.assignment) == (2, ())
    assert scene.written(count) == ["MemberMetadata", "GroupEpoch", "Current"]
    assert scene.seen.state is ConsumerGroupState.ASSIGNING
    scene.pass_time(LATER - 1)
    assert scene.ok("m1", 2, None, ALL).assignment is None
    scene.pass_time(1)
    assert plain(scene.ok("m1", 2, None, ALL).assignment or ()) == {A: (0, 1)}
    assert scene.seen.assignment_timestamp == scene.now
    old = ConsumerScene(KAFKA_4_2)
    old.pass_time(50)
    old.come("m1", "a")
    assert old.come("m2", "a").member_epoch == 2
    assert old.seen.assignment_timestamp == 0


def test_the_groups_own_settings_are_kept_within_bounds() -> None:
    """M-CFG-01, G-CFG-28, V-12."""
    for profile, session in ((KAFKA_4_3, 60_000), (KAFKA_4_2, 99_000)):
        scene = ConsumerScene(profile)
        scene.feed(
            GroupConfigChanged(
                0,
                "g",
                GroupConfig(
                    consumer_session_timeout_ms=99_000,
                    consumer_heartbeat_interval_ms=7_000,
                    consumer_assignment_interval_ms=0,
                ),
            )
        )
        scene.pass_time(10)
        assert scene.come("m1", "a").heartbeat_interval_ms == 7_000
        assert scene.timer(TimerKind.CONSUMER_SESSION, "m1") == session
        assert scene.come("m2", "a").member_epoch == scene.seen.group_epoch  # the interval is 0
        scene.feed(GroupConfigChanged(scene.now, "g", None))
        assert scene.ok("m2", scene.who("m2").member_epoch).heartbeat_interval_ms == 5_000


def test_a_full_request_gets_the_whole_assignment() -> None:
    """M-RSP-01, M-RSP-02."""
    scene = settled()
    member = scene.who("m1")
    epoch, mine = member.member_epoch, plain(member.assigned)
    assert scene.ok("m1", epoch, None, mine).assignment is None
    assert scene.ok("m1", epoch, ("a",), mine).assignment is None
    assert plain(scene.ok("m1", epoch, ("a",), mine, timeout=30_000).assignment or ()) == mine


def test_only_names_and_votes_bump() -> None:
    """Rack, timeout, client and the order of names cause no bump (M-HB-01…03, M-EPOCH-02, M-EPOCH-06)."""
    scene = settled()
    epoch, group_epoch = scene.who("m1").member_epoch, scene.seen.group_epoch
    count = len(scene.records)
    scene.ok("m1", epoch, ("a",), rack="r", timeout=7, client="other")
    assert scene.written(count) == ["MemberMetadata"]
    assert scene.seen.group_epoch == group_epoch
    scene.pass_time(LATER)
    scene.ok("m1", epoch, ("b", "a"))
    assert scene.seen.group_epoch == group_epoch + 1
    assert scene.seen.subscription_type is SubscriptionType.HETEROGENEOUS
    scene.ok("m1", scene.who("m1").member_epoch, ("a", "b"))
    assert scene.seen.group_epoch == group_epoch + 1


def test_a_topic_dropped_from_the_subscription_is_pruned_at_once() -> None:
    """Although no new target has been computed yet (M-REC-01, M-REC-25, M-HB-08, V-51)."""
    scene = ConsumerScene(group_consumer_assignment_interval_ms=15_000)
    scene.pass_time(1)
    epoch = scene.come("m1", "a", "b").member_epoch
    answer = scene.ok("m1", epoch, ("b",), {**ALL, B: (0, 1)})
    assert (answer.member_epoch, plain(answer.assignment or ())) == (epoch, {B: (0, 1)})
    member = scene.who("m1")
    assert (member.state, member.previous_member_epoch) == (MemberState.UNREVOKED_PARTITIONS, epoch)
    assert plain(member.pending_revocation) == ALL
    assert scene.timer(TimerKind.CONSUMER_REBALANCE, "m1") == 30_000


def test_before_4_2_a_dropped_topic_stays_until_a_target_takes_it() -> None:
    """M-REC-01, M-REC-02, V-50, V-51."""
    scene = ConsumerScene(KAFKA_4_1)
    epoch = scene.come("m1", "a", "b").member_epoch
    answer = scene.ok("m1", epoch, ("b",), {**ALL, B: (0, 1)})
    assert plain(answer.assignment or ()) == {B: (0, 1)}  # the target is computed immediately (V-38)
    assert scene.who("m1").previous_member_epoch == epoch


def test_a_partition_taken_back_before_its_revocation_has_a_new_assignment_epoch() -> None:
    """The list of partitions is the same and is announced nevertheless (M-REC-21, M-PE-06, M-RSP-01, V-53)."""
    scene = ConsumerScene()
    scene.come("m1", "a")
    scene.pass_time(LATER)
    scene.come("m2", "a")
    scene.ok("m1", 2, None, ALL)
    scene.ok("m2", -1)
    scene.pass_time(LATER)
    answer = scene.ok("m1", 2, None, {A: (0, 1)})
    assert (answer.member_epoch, plain(answer.assignment or ())) == (4, ALL)
    assert scene.who("m1").assigned == (r.AssignedPartitions(A, (0, 1, 2, 3), assignment_epochs=(2, 2, 4, 4)),)


def test_topics_that_change_bump_with_the_next_heartbeat() -> None:
    """A change of racks counts too, except in 4.0; a change of other topics does not (M-META-01…03, 05, 06, M-EPOCH-03,
    V-35)."""
    for profile, with_racks in ((INTENDED, 1), (KAFKA_4_0, 0)):
        scene = ConsumerScene(profile)
        epoch = scene.come("m1", "a", "later").member_epoch
        scene.ok("m1", epoch)
        deadline = scene.seen.refresh_deadline
        assert deadline is not None
        group_epoch = scene.seen.group_epoch
        scene.topics(TOPICS[0])
        assert scene.seen.refresh_deadline == deadline
        scene.topics(Topic("a", A, 4, (frozenset({"r"}),) * 4))
        assert scene.seen.refresh_deadline is None
        scene.ok("m1", epoch)
        assert scene.seen.group_epoch == group_epoch + with_racks
        scene.topics(Topic("a", A, 5), Topic("later", B, 1))
        scene.pass_time(LATER)
        scene.ok("m1", scene.who("m1").member_epoch)
        assert scene.seen.group_epoch == group_epoch + with_racks + 1
        assert plain(dict(scene.seen.target)["m1"]) == {A: (0, 1, 2, 3, 4), B: (0,)}


def test_only_targets_that_change_are_written() -> None:
    """M-TGT-04."""
    scene = settled()
    scene.pass_time(LATER)
    count = len(scene.records)
    scene.come("m3", "c")
    assert scene.written(count) == ["MemberMetadata", "GroupEpoch", "TargetMember", "TargetEpoch", "Current"]


def test_no_topic_no_hash() -> None:
    """M-META-05, M-META-07, G-DATA-30."""
    scene = ConsumerScene()
    scene.come("m1", "nowhere")
    assert scene.seen.metadata_hash == 0
    scene.come("m1", "a")
    assert scene.seen.metadata_hash != 0


def test_a_target_is_never_computed_with_yesterdays_subscription_type() -> None:
    """Fixed under ``intended``: a joiner without topics empties no member's target (M-TGT-05, M-TGT-06, LIV-13)."""
    scene = settled()
    scene.pass_time(LATER)
    scene.ok("m2", -1)
    scene.ok("m0", 0, (), {}, timeout=5)
    assert plain(dict(scene.seen.target)["m1"]) == ALL
    assert plain(dict(scene.seen.target)["m0"]) == {}


def test_the_assignor_with_most_votes_assigns() -> None:
    """Without votes the default assignor counts; a changed vote counts immediately (M-TGT-02, G-CFG-13)."""
    scene = ConsumerScene()
    scene.come("m1", "a")
    assert scene.described()[0].assignor_name == "uniform"
    scene.come("m1", "a", assignor="range")
    scene.come("m2", "a", assignor="range")
    scene.come("m3", "a", assignor="uniform")
    assert scene.described()[0].assignor_name == "range"


@pytest.mark.parametrize("profile", [INTENDED, KAFKA_4_3], ids=lambda profile: profile.name)
def test_an_assignor_of_other_days(profile: Profile) -> None:
    """In Kafka the answer is an error, no record is written and no timer is set; with the fix the vote does not count
    (M-TGT-02, M-HB-12)."""
    before = ConsumerScene(profile, group_consumer_assignors=("range",))
    before.come("m1", "a", assignor="range")
    scene = ConsumerScene(profile, group_consumer_assignors=("uniform",))
    scene.feed(Unload(0, leader_epoch=None))
    scene.feed(Load(0, leader_epoch=7, records=tuple(before.records)))
    scene.topics(Topic("a", A, 8))
    scene.records = list(before.records)
    scene.pass_time(9_000)
    if profile is KAFKA_4_3:
        assert scene.error("m1", 2, None, ALL) is ErrorCode.UNKNOWN_SERVER_ERROR
        assert scene.records == before.records
        assert scene.timer(TimerKind.CONSUMER_SESSION, "m1") == 45_000 - 9_000
        assert scene.described()[0].assignor_name == "range"
    else:
        assert plain(scene.ok("m1", 2, None, ALL).assignment or ()) == {A: tuple(range(8))}
        assert scene.described()[0].assignor_name == "uniform"
