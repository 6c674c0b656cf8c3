"""From a classic group to a consumer group (9.2), rule by rule."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fencepost.protocol import consumer_records as r
from fencepost.protocol import embedded
from fencepost.protocol import messages as m
from fencepost.protocol.consumer_view import ConsumerGroupState, MemberState
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import TimerKind, Unload
from fencepost.protocol.profile import Profile
from fencepost.protocol.profiles import INTENDED, KAFKA_4_0, KAFKA_4_3
from fencepost.protocol.settings import MigrationPolicy
from fencepost.protocol.view import GroupState

from .consumer_scene import A, B, Owned, kinds, plain
from .mixed_scene import MixedScene, Named, gets, mixed, wants
from .scene import GROUP

JOIN: tuple[str, int, tuple[str, ...], Owned] = ("m1", 0, ("a",), {})
BOTH = pytest.mark.parametrize("profile", [INTENDED, KAFKA_4_3], ids=lambda profile: profile.name)


@BOTH
def test_a_heartbeat_converts_a_group_with_members(profile: Profile) -> None:
    """X-UP-01, X-UP-04, X-UP-05, X-UP-08, X-UP-14, M-VAL-23, F-ORD-08."""
    scene = MixedScene(profile)
    first, second = scene.classic("i1", "i2", session=20_000)
    count = len(scene.records)
    answer = scene.come("m1", "a")
    written = scene.records[count:]
    assert written[0].value is None
    assert kinds(written[1:]) == [
        *["MemberMetadata"] * 2,
        "GroupEpoch",
        *["TargetMember"] * 2,
        "TargetEpoch",
        *["Current"] * 2,
        *["MemberMetadata", "GroupEpoch", "TargetMember", "TargetMember", "TargetEpoch", "Current"],
    ]
    member = scene.who(first)
    assert member.classic is not None
    assert member.classic.session_timeout_ms == 20_000
    assert (member.member_epoch, member.previous_member_epoch, member.state) == (1, 1, MemberState.STABLE)
    assert plain(member.assigned) == {A: (0, 2)}
    assert member.assigned[0].assignment_epochs == (1, 1)
    assert plain(scene.who(second).assigned) == {A: (1, 3)}
    assert answer.member_epoch == scene.seen.assignment_epoch == scene.seen.group_epoch == 2
    assert scene.timer(TimerKind.CONSUMER_SESSION, first) == 20_000
    target = dict(scene.seen.target)
    assert {0, 2} >= set(plain(target[first])[A])


@pytest.mark.parametrize("policy", [MigrationPolicy.DISABLED, MigrationPolicy.DOWNGRADE])
def test_the_policy_may_forbid_it(policy: MigrationPolicy) -> None:
    """X-UP-02, X-POL-03, X-POL-04, M-VAL-24."""
    scene = MixedScene(KAFKA_4_3, policy=policy)
    scene.classic("i1")
    assert scene.error(*JOIN, timeout=5) is ErrorCode.GROUP_ID_NOT_FOUND
    assert scene.now_in is GroupState.STABLE


def test_other_types_and_larger_groups_stay_classic() -> None:
    """X-UP-02."""
    scene = MixedScene(group_consumer_max_size=1)
    scene.classic("i1", "i2")
    assert scene.error(*JOIN, timeout=5) is ErrorCode.GROUP_ID_NOT_FOUND
    scene = MixedScene()
    scene.join("", instance="i1", kind="connect")
    assert scene.error(*JOIN, timeout=5) is ErrorCode.GROUP_ID_NOT_FOUND


@BOTH
@pytest.mark.parametrize(
    ("share", "error"),
    [
        (b"", ErrorCode.NONE),
        (gets({"a": [0], "gone": [1]}), ErrorCode.NONE),
        (gets({"a": [0]}, user_data=b"mine"), ErrorCode.GROUP_ID_NOT_FOUND),
        (b"\0", ErrorCode.GROUP_ID_NOT_FOUND),
        (b"\0\0\0\0\0\1\0\x7f", ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
)
def test_assignments_are_read(profile: Profile, share: bytes, error: ErrorCode) -> None:
    """An empty assignment is fine, topics that no longer exist are dropped, and the data of a custom assignor is kept
    (X-UP-05, X-UP-06)."""
    if error is ErrorCode.UNKNOWN_SERVER_ERROR and not profile.fault_bad_subscription_is_thrown:
        error = ErrorCode.GROUP_ID_NOT_FOUND  # V-124
    scene = MixedScene(profile)
    ask = scene.join("", instance="i1", data=wants("a"))
    scene.pass_time(10_000)
    member = scene.joined(ask).member_id
    scene.sync(member, 1, {member: share})
    assert scene.error(*JOIN, timeout=5) is error
    assert scene.is_classic is (error is not ErrorCode.NONE)
    if error is ErrorCode.NONE:
        assert plain(scene.who(member).assigned) == ({A: (0,)} if share else {})


def test_every_waiting_member_is_asked_to_rejoin() -> None:
    """X-UP-03, X-UP-12."""
    scene = MixedScene()
    first, second = scene.classic("i1", "i2")
    again = scene.join(first, data=wants("a", "b"), instance="i1")
    scene.come("m1", "a")
    assert scene.joined(again).error_code is ErrorCode.REBALANCE_IN_PROGRESS
    assert scene.who(first).subscribed_topic_names == ("a", "b")
    assert scene.heartbeat(second, 1, "i2") is ErrorCode.REBALANCE_IN_PROGRESS  # X-UP-11


@pytest.mark.parametrize(
    ("profile", "error"),
    [(KAFKA_4_3, ErrorCode.UNKNOWN_SERVER_ERROR), (INTENDED, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)],
)
def test_a_first_rebalance_cannot_be_converted(profile: Profile, error: ErrorCode) -> None:
    """With the fix of X-UP-07 no member is disturbed."""
    scene = MixedScene(profile)
    waiting = scene.join("", instance="i1", data=wants("a"))
    assert scene.error(*JOIN, timeout=5) is error
    assert scene.now_in is GroupState.PREPARING_REBALANCE
    assert (waiting in scene.answers) is (profile is KAFKA_4_3)
    scene.pass_time(10_000)
    if profile is INTENDED:
        assert scene.joined(waiting).error_code is ErrorCode.NONE


@BOTH
def test_a_full_group_is_not_left_converted(profile: Profile) -> None:
    """Kafka has already answered and set timers (X-UP-09)."""
    scene = MixedScene(profile, group_consumer_max_size=2)
    first, _ = scene.classic("i1", "i2")
    again = scene.join(first, data=wants("a", "b"), instance="i1")
    assert scene.error(*JOIN, timeout=5) is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert scene.now_in is GroupState.PREPARING_REBALANCE
    assert (again in scene.answers) is (profile is KAFKA_4_3)
    assert (scene.timer(TimerKind.CONSUMER_SESSION, first) is not None) is (profile is KAFKA_4_3)


@BOTH
def test_a_member_that_changes_its_protocol_bumps_only_with_the_fix(profile: Profile) -> None:
    """X-UP-13, X-UP-15, LIV-16, M-STATIC-03, M-HB-01."""
    scene = MixedScene(profile)
    first, second = scene.classic("i1", "i2")
    assert scene.removed(second) == [ErrorCode.NONE]
    answer = scene.come("s1", "a", instance="i1")
    assert scene.who("s1").classic is None
    assert [row.member_id for row in scene.seen.members] == ["s1"]
    assert scene.seen.state is ConsumerGroupState.STABLE
    whole = (0, 2) if profile is KAFKA_4_3 else (0, 1, 2, 3)
    assert plain(answer.assignment or ()) == {A: whole}
    assert answer.member_epoch == (1 if profile is KAFKA_4_3 else 2)
    assert first not in dict(scene.seen.target)


@pytest.mark.parametrize(("profile", "error"), [(KAFKA_4_3, ErrorCode.NONE), (INTENDED, ErrorCode.GROUP_ID_NOT_FOUND)])
def test_a_subscription_that_was_not_read_may_leave_a_sync_unanswered(profile: Profile, error: ErrorCode) -> None:
    """Kafka reads the selected protocol at the upgrade, and the first one at SyncGroup (X-SYNC-07)."""
    scene = MixedScene(profile)
    protocols = (m.Protocol("own", b"\0"), m.Protocol("range", wants("a")))
    one = scene.ask(
        m.JoinGroupRequest(
            GROUP,
            session_timeout_ms=10_000,
            rebalance_timeout_ms=30_000,
            member_id="",
            group_instance_id="i1",
            protocol_type="consumer",
            protocols=protocols,
        )
    )
    other = scene.join("", instance="i2", data=wants("a"))
    scene.pass_time(10_000)
    first, second = scene.joined(one).member_id, scene.joined(other).member_id
    scene.sync(second, 1)
    scene.sync(first, 1, {first: gets({"a": [0]}), second: gets({"a": [1]})})
    assert scene.error("m1", 0, (), {}, timeout=5) is error
    if error is ErrorCode.NONE:
        assert scene.sync(first, 1, protocol_name="own") not in scene.answers


def test_a_topic_of_which_nothing_is_assigned_stays() -> None:
    """The partition is in the target, in the assignment, and in the answer (X-UP-05, X-SYNC-06)."""
    scene = MixedScene(KAFKA_4_3)
    ask = scene.join("", instance="i1", data=wants("a"))
    scene.pass_time(10_000)
    member = scene.joined(ask).member_id
    share = embedded.encode_topics([("a", []), ("b", [0])], 3)
    scene.sync(member, 1, {member: share})
    scene.ok("m1", 0, (), {}, timeout=5)
    assert plain(scene.who(member).assigned) == {A: (), B: (0,)}
    assert scene.fetched(member, 1).assignment == share


def test_of_a_topic_that_is_listed_twice_the_last_row_counts() -> None:
    """X-UP-05."""
    scene = MixedScene(KAFKA_4_3)
    ask = scene.join("", instance="i1", data=wants("a"))
    scene.pass_time(10_000)
    member = scene.joined(ask).member_id
    scene.sync(member, 1, {member: embedded.encode_topics([("a", [0]), ("a", [1, 2])], 3)})
    scene.come("m1", "b")
    assert plain(scene.who(member).assigned) == {A: (1, 2)}


def test_an_upgrade_overtakes_the_leaders_assignment() -> None:
    """The operation of the SyncGroup still acts on the former group, and Kafka sets its join timer (X-UP-16)."""
    scene = MixedScene(KAFKA_4_3)
    ask = scene.join("", instance="i1", data=wants("a"))
    scene.pass_time(10_000)
    member = scene.joined(ask).member_id
    scene.log = "later"
    sync = scene.sync(member, 1, {member: gets({"a": [0]})})
    assert scene.beat("m1", 0, ("a",), {}, timeout=5) is None
    assert scene.synced(sync).error_code is ErrorCode.REBALANCE_IN_PROGRESS
    assert scene.timer(TimerKind.JOIN) is None
    scene.pass_time(scene.state.settings.offsets_commit_timeout_ms)
    assert scene.timer(TimerKind.JOIN) == 30_000
    assert not scene.is_classic
    answer = scene.answers[scene.ask(m.DescribeGroupsRequest((GROUP,)))]
    assert isinstance(answer, m.DescribeGroupsResponse)
    assert answer.groups[0].group_state == GroupState.PREPARING_REBALANCE.value


def test_the_timers_of_the_classic_group_run_on() -> None:
    """They have no effect until they fire or the partition is lost (C-ST-24, C-TMR-12)."""
    scene = MixedScene(KAFKA_4_3)
    first, _ = scene.classic("i1", "i2")
    scene.join(first, data=wants("a", "b"), instance="i1")
    scene.come("m1", "a")
    assert scene.timer(TimerKind.JOIN) == 30_000
    assert scene.timer(TimerKind.SESSION, first) is not None
    scene.feed(Unload(scene.now, leader_epoch=None))
    assert scene.timers == {}


@BOTH
def test_the_join_timer_of_a_group_before_the_last_ends_with_the_next(profile: Profile) -> None:
    """With the fix of C-TMR-12; without it the timer fires on an Empty group, which uses up a generation (C-ST-27)."""
    scene = MixedScene(profile)
    member = scene.join("", instance="i1", data=wants("a"))
    assert scene.removed(m.LeaveGroupMember("", group_instance_id="i1")) == [ErrorCode.NONE]
    assert scene.joined(member).error_code is ErrorCode.UNKNOWN_MEMBER_ID
    scene.come("m1", "a")
    scene.ok("m1", -1)
    assert scene.timer(TimerKind.JOIN) is not None
    again = scene.joined(scene.join("", data=wants("a")))
    assert again.error_code is ErrorCode.MEMBER_ID_REQUIRED
    assert (scene.timer(TimerKind.JOIN) is None) is (profile is INTENDED)
    begun = scene.group().generation_id
    scene.pass_time(3_000)
    assert scene.group().generation_id == begun + (profile is KAFKA_4_3)


def test_release_4_0_writes_topic_metadata() -> None:
    """4.0 writes an empty record too (X-UP-10, V-66)."""
    scene = MixedScene(KAFKA_4_0)
    scene.classic("i1", topic="gone")
    count = len(scene.records)
    scene.come("m1", "gone")
    assert kinds(scene.records[count + 1 :])[:3] == ["MemberMetadata", "PartitionMetadata", "GroupEpoch"]


@BOTH
def test_a_lost_upgrade_leaves_the_classic_group(profile: Profile) -> None:
    """The group is restored, the answers remain sent (F-RT-08, X-UP-03)."""
    scene = MixedScene(profile)
    first, _ = scene.classic("i1", "i2")
    again = scene.join(first, data=wants("a", "b"), instance="i1")
    scene.log = "later"
    count = len(scene.records)
    assert scene.beat(*JOIN, timeout=5) is None
    scene.fail(ErrorCode.NOT_ENOUGH_REPLICAS, len(scene.records) - count)
    assert scene.now_in is GroupState.PREPARING_REBALANCE
    assert scene.joined(again).error_code is ErrorCode.REBALANCE_IN_PROGRESS
    assert not scene.member(first).awaiting_join


def test_loaded_members_have_the_timeouts_of_the_group() -> None:
    """The session timeout is that of the group (F-LOAD-05)."""
    scene, first, _ = mixed(KAFKA_4_3)
    other = MixedScene(KAFKA_4_3)
    other.load(scene.records)
    assert other.seen == replace(scene.seen, refresh_deadline=None)
    assert other.timer(TimerKind.CONSUMER_SESSION, first) == other.state.settings.group_consumer_session_timeout_ms


def in_a_rebalance(
    profile: Profile, says: list[tuple[int, Named]], assigns: list[Named] | None
) -> tuple[MixedScene, list[str]]:
    """Create static members i0, i1 … with these generations and claims in their last JoinGroup, each assigned its part
    of ``assigns`` (None: the leader has not assigned yet). Return the scene and their ids."""
    scene = MixedScene(profile)
    asked = [
        scene.join("", instance=f"i{at}", data=wants("a", owned=owned, generation=generation))
        for at, (generation, owned) in enumerate(says)
    ]
    scene.pass_time(10_000)
    ids = [scene.joined(each).member_id for each in asked]
    if assigns is not None:
        scene.sync(ids[0], 1, {each: gets(share) for each, share in zip(ids, assigns, strict=True)})
    return scene, ids


def taken(scene: MixedScene, ids: list[str]) -> list[dict[bytes, tuple[int, ...]]]:
    """Upgrade the group, and return the partitions of each member. They are also its first target, written before that
    of the new member."""
    start = len(scene.records)
    scene.ok("m1", 0, (), {}, timeout=5)
    first: dict[str, dict[bytes, tuple[int, ...]]] = {}
    for record in scene.records[start:]:
        if isinstance(record.value, r.ConsumerGroupTargetAssignmentMemberValue):
            assert isinstance(record.key, r.ConsumerGroupTargetAssignmentMemberKey)
            first.setdefault(record.key.member_id, plain(record.value.topic_partitions))
    found = [plain(scene.who(each).assigned) for each in ids]
    assert [first[each] for each in ids] == found
    assert {row.assignment_epochs for each in ids for row in scene.who(each).assigned} <= {
        (1,) * n for n in range(1, 5)
    }
    return found


@pytest.mark.parametrize("assigns", [None, [{"a": [0, 1]}, {}]], ids=["blanked", "between two rounds"])
@BOTH
def test_with_the_fix_an_upgrade_takes_over_the_partitions_that_members_still_own(
    profile: Profile, assigns: list[Named] | None
) -> None:
    """i0 owned everything, and must revoke two partitions, or has no assignment yet (X-UP-05, C-JOIN-42)."""
    scene, ids = in_a_rebalance(profile, [(0, {"a": [0, 1, 2, 3]}), (-1, {})], assigns)
    said = {} if assigns is None else {A: (0, 1)}
    assert taken(scene, ids) == [{A: (0, 1, 2, 3)} if profile is INTENDED else said, {}]


@pytest.mark.parametrize(
    ("says", "assigns", "fixed"),
    [
        ([(0, {"a": [0, 1]}), (0, {})], [{"a": [0]}, {"a": [1]}], [{A: (0,)}, {A: (1,)}]),
        ([(3, {"a": [2]}), (4, {"a": [2, 3]})], [{}, {}], [{}, {A: (2, 3)}]),
        ([(4, {"a": [2]}), (-1, {"a": [2, 3]})], [{}, {}], [{A: (2,)}, {A: (3,)}]),
        ([(4, {"a": [2]}), (4, {"a": [2]})], [{}, {}], [{A: (2,)}, {}]),
        ([(-1, {"a": [2]}), (-1, {"a": [2]})], [{}, {}], [{A: (2,)}, {}]),
        ([(0, {"gone": [0], "b": [1]}), (0, {})], [{"a": [0]}, {}], [{A: (0,), B: (1,)}, {}]),
        ([(-1, {}), (-1, {})], [{"a": [0, 1]}, {}], [{A: (0, 1)}, {}]),
    ],
    ids=["assigned", "newer", "no generation", "equal", "neither tells", "topics that are gone", "eager"],
)
@BOTH
def test_each_claimed_partition_goes_to_one_member(
    profile: Profile, says: list[tuple[int, Named]], assigns: list[Named], fixed: list[Owned]
) -> None:
    """An assignment comes before a claim, a newer claim before an older one, then the smaller member id (X-UP-05)."""
    scene, ids = in_a_rebalance(profile, says, assigns)
    assert ids[0] < ids[1]
    plainly = [{A: tuple(share["a"])} if share else {} for share in assigns]
    assert taken(scene, ids) == (fixed if profile is INTENDED else plainly)


@BOTH
def test_only_the_selected_protocol_counts(profile: Profile) -> None:
    """The leader of this protocol did not get the claims in the subscription of another one (X-UP-05)."""
    scene = MixedScene(profile)
    protocols = (m.Protocol("range", wants("a")), m.Protocol("other", wants("a", owned={"a": [3]}, generation=1)))
    asked = scene.ask(
        m.JoinGroupRequest(
            GROUP,
            session_timeout_ms=10_000,
            rebalance_timeout_ms=30_000,
            member_id="",
            group_instance_id="i0",
            protocol_type="consumer",
            protocols=protocols,
        )
    )
    scene.pass_time(10_000)
    member = scene.joined(asked).member_id
    scene.sync(member, 1, {member: gets({"a": [0]})})
    assert taken(scene, [member]) == [{A: (0,)}]


def test_a_rejoin_shows_which_partitions_were_revoked() -> None:
    """The claim stays with i0 until it has rejoined, and then goes to m1 (X-UP-05, X-UP-15)."""
    scene, (first, _) = in_a_rebalance(INTENDED, [(0, {"a": [0, 1, 2, 3]}), (-1, {})], [{"a": [0, 1]}, {"a": []}])
    assert plain(scene.come("m1", "a").assignment or ()) == {}
    assert scene.heartbeat(first, 1, "i0") is ErrorCode.REBALANCE_IN_PROGRESS
    scene.rejoin(first, "a", instance="i0", owned={"a": [0, 1]}, generation=1)
    wanted = plain(dict(scene.seen.target)["m1"])[A]
    epoch = scene.seen.assignment_epoch
    scene.ok("m1", epoch, None, {})
    assert set(plain(scene.who("m1").assigned).get(A, ())) == set(wanted) - {0, 1}
