"""From a consumer group to a classic group (9.5), rule by rule."""

from __future__ import annotations

import pytest

from fencepost.protocol import messages as m
from fencepost.protocol.consumer_records import ConsumerGroupTargetAssignmentMemberKey
from fencepost.protocol.consumer_view import MemberState
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import TimerKind
from fencepost.protocol.profile import Profile
from fencepost.protocol.profiles import INTENDED, KAFKA_4_2, KAFKA_4_3
from fencepost.protocol.settings import MigrationPolicy
from fencepost.protocol.view import GroupState

from .consumer_scene import LATER, A, kinds, plain
from .mixed_scene import MixedScene, gets, got, mixed, wants

BOTH = pytest.mark.parametrize("profile", [INTENDED, KAFKA_4_3], ids=lambda profile: profile.name)


@BOTH
@pytest.mark.parametrize("how", ["heartbeat", "leave", "expiry"])
def test_the_last_consumer_member_takes_the_protocol_along(profile: Profile, how: str) -> None:
    """With the fix of X-DOWN-33 (X-DOWN-01…06, X-LEAVE-05, F-ORD-09)."""
    scene, first, second = mixed(profile)
    for member, instance in ((first, "i1"), (second, "i2")):
        scene.rejoin(member, "a", instance=instance, session=300_000, rebalance=300_000)
        scene.fetched(member, 2)
    targets = {row[0]: row[1] for row in scene.seen.target}
    has = {row.member_id: row.assigned for row in scene.seen.members}
    count = len(scene.records)
    if how == "heartbeat":
        scene.ok("m1", -1)
    elif how == "leave":
        assert scene.removed("m1") == [ErrorCode.NONE]
    else:
        left = scene.timer(TimerKind.CONSUMER_SESSION, "m1")
        assert left is not None
        scene.pass_time(left)
    written = scene.records[count:]
    assert kinds(written[:-1]) == [
        *["Current†"] * 3,
        *["TargetMember†"] * 3,
        "TargetEpoch†",
        *["MemberMetadata†"] * 3,
        "PartitionMetadata†",
        "GroupEpoch†",
    ]
    value = written[-1].group_metadata
    assert value is not None
    assert (value.generation, value.protocol_type, value.protocol) == (2, "consumer", "range")
    for row in value.members:  # X-DOWN-04: a member that loses a part still has it; one that gains a part waits for it
        held = targets if profile is KAFKA_4_3 else has
        assert got(row.assignment) == {"a": held[row.member_id][0].partitions}
    assert scene.now_in is GroupState.PREPARING_REBALANCE
    assert scene.timer(TimerKind.JOIN) == 300_000
    assert scene.timer(TimerKind.SESSION, first) == 300_000
    assert (scene.timer(TimerKind.CONSUMER_SESSION, first) is not None) is (profile is KAFKA_4_3)
    assert scene.heartbeat(first, 2, "i1") is ErrorCode.REBALANCE_IN_PROGRESS


def test_a_lagging_member_has_another_generation() -> None:
    """X-DOWN-07, X-DOWN-32."""
    scene, first, _ = mixed()
    scene.ok("m1", -1)
    assert scene.heartbeat(first, 1, "i1") is ErrorCode.ILLEGAL_GENERATION


@pytest.mark.parametrize(
    ("policy", "size"), [(MigrationPolicy.UPGRADE, 9), (MigrationPolicy.BIDIRECTIONAL, 1)], ids=["policy", "size"]
)
def test_the_policy_may_forbid_a_downgrade(policy: MigrationPolicy, size: int) -> None:
    """The next departure tries again (X-DOWN-01, X-DOWN-08, X-POL-02)."""
    scene = MixedScene(KAFKA_4_3, policy=policy, group_max_size=size)
    scene.come("m1", "a")
    for instance in ("i1", "i2"):
        scene.join("", instance=instance, data=wants("a"))
    scene.ok("m1", -1)
    assert not scene.is_classic
    scene.removed(m.LeaveGroupMember("", group_instance_id="i1"))
    assert scene.is_classic is (size == 1)


@BOTH
def test_only_readable_subscriptions_are_converted(profile: Profile) -> None:
    """In Kafka the leave is rejected, and a silent member stays in the group permanently (X-DOWN-09)."""
    scene = MixedScene(profile)
    scene.come("m1", "a")
    body = m.JoinGroupRequest(
        "g",
        session_timeout_ms=300_000,
        rebalance_timeout_ms=300_000,
        member_id="x",
        protocol_type="consumer",
        protocols=(m.Protocol("one", wants("a")), m.Protocol("two", b"")),
    )
    joined = scene.joined(scene.ask(body))
    if profile is INTENDED:
        assert joined.error_code is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        return
    second = m.JoinGroupRequest(
        "g",
        session_timeout_ms=300_000,
        rebalance_timeout_ms=300_000,
        member_id="y",
        protocol_type="consumer",
        protocols=(m.Protocol("two", wants("a")),),
    )
    assert scene.joined(scene.ask(second)).error_code is ErrorCode.NONE
    scene.come("m2", "a")
    scene.ok("m2", -1)
    count = len(scene.records)
    assert scene.left(scene.leave("m1")).error_code is ErrorCode.GROUP_ID_NOT_FOUND
    assert scene.error("m1", -1) is ErrorCode.GROUP_ID_NOT_FOUND
    scene.pass_time(100_000)
    assert "m1" in [row.member_id for row in scene.seen.members]
    assert scene.timer(TimerKind.CONSUMER_SESSION, "m1") is None
    assert len(scene.records) == count


def alone(profile: Profile, *names: str) -> MixedScene:
    """Return a group of a static consumer m1 with instance id i1 and a classic member c1 at the same epoch."""
    scene = MixedScene(profile)
    scene.come("m1", *names, instance="i1")
    scene.rejoin("c1", "b", session=300_000, rebalance=300_000)
    scene.pass_time(LATER)
    answer = scene.ok("m1", scene.who("m1").member_epoch, None, {})
    scene.rejoin("c1", "b", session=300_000, rebalance=300_000)
    scene.fetched("c1", answer.member_epoch)
    assert scene.seen.assignment_epoch == scene.seen.group_epoch == answer.member_epoch
    return scene


@BOTH
def test_a_replacement_with_the_same_topics_need_not_rebalance(profile: Profile) -> None:
    """The joiner has the target of its predecessor, and its SyncGroup works (X-DOWN-20…24)."""
    scene = alone(profile, "a")
    epoch = scene.seen.group_epoch
    answer = scene.joined(scene.join("", instance="i1", data=wants("a")))
    assert (answer.error_code, answer.leader, answer.generation_id) == (ErrorCode.NONE, "", epoch)
    assert scene.now_in is GroupState.STABLE
    assert scene.group().generation_id == epoch
    assert got(scene.fetched(answer.member_id, epoch).assignment) == {"a": (0, 1, 2, 3)}
    assert scene.heartbeat("c1", epoch) is ErrorCode.NONE
    assert scene.timer(TimerKind.CONSUMER_SYNC, answer.member_id) is None


def waiting(profile: Profile, *, synced: bool = True) -> MixedScene:
    """Return a group in which the static consumer m1, as i1, owns everything; the classic member c1 waits for its half
    at the same epoch."""
    scene = MixedScene(profile)
    scene.come("m1", "a", instance="i1")
    scene.pass_time(LATER)
    epoch = scene.rejoin("c1", "a", session=300_000, rebalance=300_000).generation_id
    if synced:
        assert got(scene.fetched("c1", epoch).assignment) == {}
    assert scene.who("c1").state is MemberState.UNRELEASED_PARTITIONS
    assert scene.seen.assignment_epoch == scene.seen.group_epoch == epoch
    return scene


def test_a_downgrade_leaves_a_waiting_member_without_its_share() -> None:
    """In Kafka the group is Stable, and c1 never gets its half (X-DOWN-22)."""
    scene = waiting(KAFKA_4_3)
    epoch = scene.seen.group_epoch
    answer = scene.joined(scene.join("", instance="i1", data=wants("a")))
    assert (scene.now_in, answer.generation_id) == (GroupState.STABLE, epoch)
    assert scene.heartbeat("c1", epoch) is ErrorCode.NONE


@pytest.mark.parametrize("synced", [True, False])
@pytest.mark.parametrize("member_id", ["", "m1"])
def test_with_the_fix_every_member_that_waits_for_its_share_must_rejoin(member_id: str, synced: bool) -> None:
    """With the fix of X-DOWN-22 the joiner is parked (X-DOWN-23), and the next generation gives each member its
    share."""
    scene = waiting(INTENDED, synced=synced)
    epoch = scene.seen.group_epoch
    ask = scene.join(member_id, instance="i1", data=wants("a"))
    assert ask not in scene.answers
    assert (scene.now_in, scene.group().generation_id) == (GroupState.PREPARING_REBALANCE, epoch)
    assert scene.timer(TimerKind.CONSUMER_SESSION, "c1") is None
    assert scene.heartbeat("c1", epoch) is ErrorCode.REBALANCE_IN_PROGRESS
    other = scene.joined(scene.join("c1", data=wants("a"), session=300_000, rebalance=300_000))
    joiner = scene.joined(ask)
    assert (joiner.error_code, joiner.generation_id, joiner.leader) == (ErrorCode.NONE, epoch + 1, "c1")
    assert (other.generation_id, other.leader, len(other.members)) == (epoch + 1, "c1", 2)
    shares = {"c1": gets({"a": (0, 1)}), joiner.member_id: gets({"a": (2, 3)})}
    assert got(scene.fetched("c1", epoch + 1, shares=shares).assignment) == {"a": (0, 1)}
    assert got(scene.fetched(joiner.member_id, epoch + 1).assignment) == {"a": (2, 3)}
    assert scene.now_in is GroupState.STABLE


@pytest.mark.parametrize(
    ("profile", "state"), [(KAFKA_4_3, GroupState.STABLE), (INTENDED, GroupState.PREPARING_REBALANCE)]
)
def test_with_the_fix_the_group_waits_for_every_member_behind_the_target(profile: Profile, state: GroupState) -> None:
    """With the fix of X-DOWN-22, c1 already has its target, but does not know the epoch (X-DOWN-32)."""
    scene = alone(profile, "a")
    epoch = scene.seen.group_epoch
    scene.pass_time(LATER)
    assert scene.ok("m1", epoch, ("a", "nothing")).member_epoch == epoch + 1
    assert (scene.who("c1").member_epoch, scene.who("c1").state) == (epoch, MemberState.STABLE)
    scene.join("", instance="i1", data=wants("a", "nothing"))
    assert (scene.now_in, scene.group().generation_id) == (state, epoch + 1)
    assert scene.heartbeat("c1", epoch) is ErrorCode.ILLEGAL_GENERATION


def test_a_replacement_with_other_topics_rebalances() -> None:
    """Kafka forgets the bump, and answers with an epoch that is not a generation (X-DOWN-22, X-DOWN-23)."""
    scene = alone(KAFKA_4_3, "a")
    epoch = scene.seen.group_epoch
    answer = scene.joined(scene.join("", instance="i1", data=wants("a", "b")))
    assert (answer.error_code, answer.generation_id) == (ErrorCode.NONE, 0)
    assert scene.now_in is GroupState.PREPARING_REBALANCE
    assert scene.group().generation_id == epoch
    assert scene.fetched(answer.member_id, 0).error_code is ErrorCode.ILLEGAL_GENERATION


def test_with_the_fix_a_replacement_that_rebalances_waits_for_the_others() -> None:
    """The fix of X-DOWN-23."""
    scene = alone(INTENDED, "a")
    epoch = scene.seen.group_epoch
    ask = scene.join("", instance="i1", data=wants("a", "b"))
    assert ask not in scene.answers
    other = scene.join("c1", data=wants("b"))
    answer = scene.joined(ask)
    assert (answer.error_code, answer.generation_id) == (ErrorCode.NONE, epoch + 2)
    assert scene.joined(other).generation_id == epoch + 2


@pytest.mark.parametrize(
    ("profile", "error"), [(KAFKA_4_3, ErrorCode.UNKNOWN_SERVER_ERROR), (INTENDED, ErrorCode.NONE)]
)
def test_kafka_takes_a_member_with_another_name_for_one_that_stays(profile: Profile, error: ErrorCode) -> None:
    """Kafka converts every member whose id differs from the joiner's, and fails (X-DOWN-20, M-STATIC-13)."""
    scene = alone(profile, "a")
    scene.ok("m1", 0, ("a",), {}, timeout=30_000, instance="i2")
    count = len(scene.records)
    ask = scene.join("", instance="i1", data=wants("a"))
    assert scene.joined(ask).error_code is error
    assert (len(scene.records) == count) == (error is not ErrorCode.NONE)


def test_before_4_3_only_the_subscription_counts() -> None:
    """V-65."""
    scene = alone(KAFKA_4_2, "a")
    scene.come("m9", "a")
    scene.ok("m9", -1)
    assert scene.seen.group_epoch > scene.seen.assignment_epoch
    answer = scene.joined(scene.join("", instance="i1", data=wants("a")))
    assert answer.error_code is ErrorCode.NONE
    assert scene.now_in is GroupState.STABLE


@BOTH
def test_a_lost_downgrade_leaves_the_consumer_group(profile: Profile) -> None:
    """F-RT-08, X-DOWN-30."""
    scene, first, _ = mixed(profile)
    before = scene.seen
    scene.log = "later"
    count = len(scene.records)
    assert scene.beat("m1", -1) is None
    assert scene.is_classic
    scene.fail(ErrorCode.NOT_ENOUGH_REPLICAS, len(scene.records) - count)
    assert scene.seen == before
    assert scene.timer(TimerKind.CONSUMER_SESSION, first) is not None
    assert (scene.timer(TimerKind.SESSION, first) is not None) is (profile is KAFKA_4_3)


@BOTH
def test_after_a_load_it_is_the_same_group(profile: Profile) -> None:
    """The tombstones leave nothing behind (F-LOAD-06, X-DOWN-02)."""
    scene, first, _ = mixed(profile)
    scene.ok("m1", -1)
    scene.load(scene.records)
    assert scene.is_classic
    assert {row.member_id for row in scene.group().members} >= {first}
    assert scene.now_in is GroupState.STABLE


def test_an_empty_group_is_not_downgraded() -> None:
    """At least one member stays (X-DOWN-01)."""
    scene = MixedScene(policy=MigrationPolicy.UPGRADE)
    scene.come("m1", "a")
    scene.rejoin("c1", "a")
    assert scene.removed("c1", "m1") == [ErrorCode.NONE] * 2
    assert scene.seen.members == ()
    scene = MixedScene()
    scene.come("m1", "a")
    assert scene.removed("m1") == [ErrorCode.NONE]
    assert not scene.is_classic


def assigned(scene: MixedScene) -> dict[str, tuple[int, ...]]:
    """Return the partitions of topic a by member, in the present classic group and in the log."""
    found = {row.member_id: got(row.assignment).get("a", ()) for row in scene.group().members}
    value = scene.records[-1].group_metadata
    assert value is not None
    assert {row.member_id: got(row.assignment).get("a", ()) for row in value.members} == found
    return found


@pytest.mark.parametrize("informed", [False, True], ids=["before it knows", "while it revokes"])
@BOTH
def test_with_the_fix_a_remaining_member_is_assigned_the_partitions_that_it_holds(
    profile: Profile, informed: bool
) -> None:
    """Two members must revoke a part for m1, which leaves; one of them knows it, and has not revoked yet
    (X-DOWN-04)."""
    scene, first, second = mixed(profile)
    held = {row.member_id: plain(row.assigned).get(A, ()) for row in scene.seen.members}
    target = {member: plain(share).get(A, ()) for member, share in scene.seen.target}
    member, instance = (first, "i1") if len(target[first]) == 1 else (second, "i2")
    assert held[member] != target[member]
    if informed:
        scene.rejoin(member, "a", instance=instance, owned={"a": held[member]}, generation=1)
        assert scene.who(member).state is MemberState.UNREVOKED_PARTITIONS
        assert plain(scene.who(member).assigned) == {A: target[member]}
    scene.ok("m1", -1)
    expected = held if profile is INTENDED else target
    assert assigned(scene) == {each: expected[each] for each in (first, second)}
    scene.load(scene.records)
    assert assigned(scene) == {each: expected[each] for each in (first, second)}


@BOTH
def test_with_the_fix_a_waiting_member_is_assigned_nothing_before_its_revocation(profile: Profile) -> None:
    """Kafka assigns c1 the half that m1 had to revoke (X-DOWN-04)."""
    scene = waiting(profile)
    scene.removed("m1")
    assert len(assigned(scene)["c1"]) == (0 if profile is INTENDED else 2)


@pytest.mark.parametrize("member_id", ["", "m1"])
@BOTH
def test_with_the_fix_a_replacement_is_assigned_the_partitions_of_its_predecessor(
    profile: Profile, member_id: str
) -> None:
    """The target of m1 is half of the topic, and it holds all of it (X-DOWN-04, X-DOWN-22)."""
    scene = waiting(profile)
    scene.join(member_id, instance="i1", data=wants("a"))
    found = assigned(scene)
    joiner = next(each for each in found if each != "c1")
    assert (len(found[joiner]), len(found["c1"])) == ((4, 0) if profile is INTENDED else (2, 2))


@pytest.mark.parametrize(("early", "shown"), [(True, 2), (False, 1)])
def test_a_change_that_failed_in_the_next_group_does_not_show_in_the_one_before(early: bool, shown: int) -> None:
    """The group is downgraded and upgraded again, and nothing is replicated; readers see the first group and its
    members (C-ADM-05)."""
    scene, first, second = mixed(KAFKA_4_3)
    scene.log = "later"

    def leave_in_vain() -> None:
        count = len(scene.records)
        scene.leave(first)
        scene.fail(ErrorCode.NOT_ENOUGH_REPLICAS, len(scene.records) - count)

    if early:
        leave_in_vain()
    scene.beat("m1", -1)
    went_down = scene.is_classic
    scene.beat("m2", 0, ("a",), {}, timeout=30_000)
    assert (went_down, scene.is_classic) == (True, False)
    if not early:
        leave_in_vain()
    names = [row.member_id for row in scene.described()[0].members]
    assert sorted(names) == sorted([first] * shown + [second, "m1"])


@pytest.mark.parametrize("profile", [KAFKA_4_2, KAFKA_4_3, INTENDED], ids=lambda profile: profile.name)
def test_a_loaded_member_may_have_no_target(profile: Profile) -> None:
    """The member's target is empty, or the partitions that it holds with the fix; before 4.3 the downgrade fails
    (X-DOWN-04, V-67)."""
    scene, first, second = mixed(profile)
    has = {row.member_id: row.assigned for row in scene.seen.members}
    scene.load(
        record
        for record in scene.records
        if not (isinstance(record.key, ConsumerGroupTargetAssignmentMemberKey) and record.key.member_id == first)
    )
    answer = scene.left(scene.leave("m1"))
    if profile is KAFKA_4_2:
        assert answer.error_code is ErrorCode.UNKNOWN_SERVER_ERROR
        assert not scene.is_classic
        return
    assert answer.error_code is ErrorCode.NONE
    value = scene.records[-1].group_metadata
    assert value is not None
    assert {row.member_id for row in value.members} == {first, second}
    (row,) = (row for row in value.members if row.member_id == first)
    assert got(row.assignment) == ({"a": has[first][0].partitions} if profile is INTENDED else {})
