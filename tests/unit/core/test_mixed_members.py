"""Classic members of a consumer group: JoinGroup, SyncGroup, Heartbeat, LeaveGroup, timers (9.3, 9.4)."""

from __future__ import annotations

import pytest

from fencepost.protocol import messages as m
from fencepost.protocol.consumer_view import MemberState
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import TimerKind
from fencepost.protocol.profile import Profile
from fencepost.protocol.profiles import INTENDED, KAFKA_4_2, KAFKA_4_3
from fencepost.protocol.settings import MigrationPolicy

from .consumer_scene import LATER, A, B, plain
from .mixed_scene import MixedScene, got, mixed, wants
from .scene import GROUP

BOTH = pytest.mark.parametrize("profile", [INTENDED, KAFKA_4_3], ids=lambda profile: profile.name)


@pytest.mark.parametrize(
    ("profile", "error"),
    [(KAFKA_4_3, ErrorCode.INCONSISTENT_GROUP_PROTOCOL), (KAFKA_4_2, ErrorCode.NONE)],
)
def test_a_policy_may_refuse_joins(profile: Profile, error: ErrorCode) -> None:
    """X-POL-04, V-60."""
    scene = MixedScene(profile, policy=MigrationPolicy.DISABLED)
    scene.come("m1", "a")
    answer = scene.joined(scene.join("", instance="i1", data=wants("a")))
    assert answer.error_code is error


def test_joins_are_checked_in_order() -> None:
    """X-JOIN-02…05, X-JOIN-08, X-JOIN-09."""
    scene, first, _ = mixed(group_consumer_max_size=4)
    assert scene.rejoin("x", "a", kind="connect").error_code is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    inconsistent = scene.joined(scene.join("x", "other", data=wants("a")))
    assert inconsistent.error_code is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert scene.joined(scene.join("x", data=b"\0")).error_code is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert scene.rejoin(first, "a", instance="i9").error_code is ErrorCode.UNKNOWN_MEMBER_ID
    assert scene.rejoin("x", "a", instance="i1").error_code is ErrorCode.FENCED_INSTANCE_ID
    given = scene.joined(scene.join("", data=wants("a")))
    assert given.error_code is ErrorCode.MEMBER_ID_REQUIRED
    assert given.member_id not in [row.member_id for row in scene.seen.members]
    assert scene.rejoin(given.member_id, "a").error_code is ErrorCode.NONE
    full = scene.joined(scene.join("", "other", data=wants("a")))
    assert (full.error_code, full.member_id) == (ErrorCode.GROUP_MAX_SIZE_REACHED, "")


@BOTH
def test_a_member_joins_fetches_and_heartbeats(profile: Profile) -> None:
    """X-JOIN-06, X-JOIN-10…12, X-JOIN-14, X-JOIN-15, X-JOIN-18, X-JOIN-20, X-SYNC-06, X-HB-05, X-TMR-01…03."""
    scene, first, second = mixed(profile)
    assert scene.heartbeat(first, 1, "i1") is ErrorCode.REBALANCE_IN_PROGRESS
    assert scene.timer(TimerKind.CONSUMER_JOIN, first) == 30_000
    count = len(scene.records)
    answer = scene.rejoin(first, "a", instance="i1", rebalance=7_000, session=12_000)
    assert (answer.error_code, answer.generation_id, answer.leader, answer.members) == (ErrorCode.NONE, 2, "", ())
    assert (answer.protocol_type, answer.protocol_name) == ("consumer", "range")
    assert len(scene.records) > count
    assert scene.timer(TimerKind.CONSUMER_JOIN, first) is None
    assert scene.timer(TimerKind.CONSUMER_SESSION, first) == 12_000
    assert scene.timer(TimerKind.CONSUMER_SYNC, first) == 7_000
    assert scene.heartbeat(first, 1, "i1") is ErrorCode.ILLEGAL_GENERATION
    scene.pass_time(5_000)
    share = scene.fetched(first, 2)
    assert (share.error_code, share.protocol_type, share.protocol_name) == (ErrorCode.NONE, "consumer", "range")
    assert got(share.assignment) == {"a": plain(scene.who(first).assigned)[A]}
    assert scene.timer(TimerKind.CONSUMER_SYNC, first) is None
    assert scene.timer(TimerKind.CONSUMER_SESSION, first) == 12_000
    assert scene.heartbeat(first, 2, "i1") is ErrorCode.NONE
    scene.pass_time(4_000)
    assert second in [row.member_id for row in scene.seen.members]


def test_requests_of_others_are_refused() -> None:
    """X-SYNC-01…04, X-HB-01."""
    scene, first, _ = mixed()
    assert scene.fetched("x", 1).error_code is ErrorCode.UNKNOWN_MEMBER_ID
    assert scene.fetched("m1", 2).error_code is ErrorCode.UNKNOWN_MEMBER_ID
    assert scene.fetched(first, 1, group_instance_id="i2").error_code is ErrorCode.FENCED_INSTANCE_ID
    assert scene.fetched(first, 2).error_code is ErrorCode.ILLEGAL_GENERATION
    assert scene.fetched(first, 1, protocol_name="other").error_code is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert scene.timer(TimerKind.CONSUMER_JOIN, first) is None
    assert scene.fetched(first, 1).error_code is ErrorCode.REBALANCE_IN_PROGRESS  # X-SYNC-05
    assert scene.timer(TimerKind.CONSUMER_JOIN, first) == 30_000
    assert scene.heartbeat("m1", 2) is ErrorCode.UNKNOWN_MEMBER_ID
    assert scene.heartbeat("x", 2) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_cooperative_member_revokes_first() -> None:
    """X-JOIN-17, X-HB-07, X-SYNC-05, M-TMR-02."""
    scene, first, second = mixed()
    target = {member: plain(share) for member, share in scene.seen.target}
    member, instance = (first, "i1") if len(target[first][A]) == 1 else (second, "i2")
    owned = {"a": plain(scene.who(member).assigned)[A]}
    answer = scene.rejoin(member, "a", instance=instance, owned=owned)
    assert answer.generation_id == 1
    assert scene.who(member).state is MemberState.UNREVOKED_PARTITIONS
    assert scene.timer(TimerKind.CONSUMER_REBALANCE, member) is None
    kept = got(scene.fetched(member, 1).assignment)
    assert kept == {"a": target[member][A]}
    assert scene.heartbeat(member, 1, instance) is ErrorCode.REBALANCE_IN_PROGRESS
    assert scene.rejoin(member, "a", instance=instance, owned=kept).generation_id == 2
    scene.fetched(member, 2)
    assert scene.heartbeat(member, 2, instance) is ErrorCode.NONE


def test_a_member_that_waits_joins_again_when_its_part_is_free() -> None:
    """X-HB-03, X-JOIN-22, X-HB-06."""
    scene = MixedScene()
    scene.come("m1", "a")
    scene.pass_time(LATER)
    joined = scene.joined(scene.join("", instance="i1", data=wants("a")))
    member = joined.member_id
    assert scene.who(member).state is MemberState.UNRELEASED_PARTITIONS
    assert got(scene.fetched(member, joined.generation_id).assignment) == {}
    assert scene.heartbeat(member, joined.generation_id, "i1") is ErrorCode.NONE
    kept = plain(scene.ok("m1", scene.who("m1").member_epoch, None, {A: range(4)}).assignment or ())
    scene.ok("m1", scene.who("m1").member_epoch, None, kept)
    assert scene.heartbeat(member, joined.generation_id, "i1") is ErrorCode.REBALANCE_IN_PROGRESS
    assert scene.rejoin(member, "a", instance="i1").generation_id == joined.generation_id
    assert len(got(scene.fetched(member, joined.generation_id).assignment)["a"]) == 2


def test_a_consumer_member_may_become_a_classic_one_and_back() -> None:
    """X-JOIN-13, X-JOIN-24, X-JOIN-11, M-HB-01."""
    scene = MixedScene()
    scene.come("m1", "a")
    scene.come("m2", regex="[ab]", timeout=9_000)
    assert scene.rejoin("m2", "a").error_code is ErrorCode.NONE
    member = scene.who("m2")
    assert member.classic is not None
    assert member.subscribed_topic_regex == ""
    scene.ok("m2", member.member_epoch, ("a",), {}, timeout=9_000)
    assert scene.who("m2").classic is None


@pytest.mark.parametrize(
    ("profile", "error"),
    [(INTENDED, ErrorCode.REBALANCE_IN_PROGRESS), (KAFKA_4_3, ErrorCode.NONE)],
)
def test_classic_members_alone_may_starve(profile: Profile, error: ErrorCode) -> None:
    """X-HB-03, X-SYNC-05, LIV-14, X-DOWN-08."""
    scene, first, second = mixed(profile, policy=MigrationPolicy.UPGRADE)
    scene.rejoin(first, "a", instance="i1")
    scene.fetched(first, 2)
    scene.rejoin(second, "a", instance="i2")
    scene.fetched(second, 2)
    scene.pass_time(LATER)
    assert scene.removed("m1") == [ErrorCode.NONE]
    assert scene.seen.group_epoch == 3
    assert scene.heartbeat(first, 2, "i1") is error
    assert scene.fetched(first, 2).error_code is error


def test_before_4_3_the_group_epoch_counts() -> None:
    """Members are asked to rejoin (V-61, V-62)."""
    scene, first, _ = mixed(KAFKA_4_2, policy=MigrationPolicy.UPGRADE)
    scene.rejoin(first, "a", instance="i1")
    scene.fetched(first, 2)
    scene.removed("m1")
    assert scene.heartbeat(first, 2, "i1") is ErrorCode.REBALANCE_IN_PROGRESS


def test_leave_removes_members_of_both_protocols_in_one_change() -> None:
    """X-LEAVE-01…04, X-LEAVE-06, F-ORD-14."""
    scene, first, second = mixed()
    scene.come("m2", "a")
    count, epoch = len(scene.records), scene.seen.group_epoch
    gone = m.LeaveGroupMember("", group_instance_id="i1")
    fenced = m.LeaveGroupMember("x", group_instance_id="i2")
    rows = scene.removed("nobody", fenced, m.LeaveGroupMember("", group_instance_id="i9"))
    assert rows == [ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID, ErrorCode.UNKNOWN_MEMBER_ID]
    assert len(scene.records) == count
    answer = scene.left(scene.leave("m1", "m1", gone))
    assert [row.error_code for row in answer.members] == [ErrorCode.NONE] * 3
    assert [row.member_id for row in answer.members] == ["m1", "m1", ""]
    assert scene.written(count) == [*["Current†", "TargetMember†", "MemberMetadata†"] * 2, "GroupEpoch"]
    assert scene.seen.group_epoch == epoch + 1
    assert {row.member_id for row in scene.seen.members} == {"m2", second}
    assert scene.timer(TimerKind.CONSUMER_SESSION, first) is None


@pytest.mark.parametrize("kind", [TimerKind.CONSUMER_SESSION, TimerKind.CONSUMER_JOIN, TimerKind.CONSUMER_SYNC])
def test_the_timers_fence(kind: TimerKind) -> None:
    """X-TMR-01…03, M-TMR-03, M-LEAVE-07."""
    scene, first, _ = mixed()
    if kind is TimerKind.CONSUMER_SYNC:
        scene.rejoin(first, "a", instance="i1", session=60_000, rebalance=3_000)
    else:
        scene.heartbeat(first, 1, "i1")
    left = scene.timer(kind, first)
    assert left is not None
    while left > 1:
        part = min(left - 1, 4_000)
        scene.pass_time(part)
        left -= part
        if kind is TimerKind.CONSUMER_JOIN:
            scene.heartbeat(first, 1, "i1")
    assert first in [row.member_id for row in scene.seen.members]
    scene.pass_time(1)
    assert first not in [row.member_id for row in scene.seen.members]


@BOTH
def test_a_join_that_is_not_in_the_log_is_not_answered(profile: Profile) -> None:
    """X-JOIN-14, X-JOIN-20, F-RT-08, F-RT-10."""
    scene, first, _ = mixed(profile)
    scene.log = "later"
    count = len(scene.records)
    ask = scene.join(first, data=wants("a"), instance="i1")
    assert ask not in scene.answers
    assert scene.timer(TimerKind.CONSUMER_SYNC, first) is None
    scene.fail(ErrorCode.NOT_ENOUGH_REPLICAS, len(scene.records) - count)
    answer = scene.joined(ask)
    assert (answer.error_code, answer.member_id) == (ErrorCode.COORDINATOR_NOT_AVAILABLE, "")
    assert scene.who(first).member_epoch == 1
    ask = scene.join(first, data=wants("a"), instance="i1")
    scene.pass_time(scene.state.settings.offsets_commit_timeout_ms)
    assert scene.joined(ask).error_code is ErrorCode.COORDINATOR_NOT_AVAILABLE
    scene.replicate()
    assert (scene.timer(TimerKind.CONSUMER_SYNC, first) is None) is (profile is KAFKA_4_3)  # with the fix it is watched


def test_a_sync_waits_for_the_log_and_returns_the_assignment() -> None:
    """X-SYNC-06, F-RT-07."""
    scene, first, _ = mixed()
    scene.rejoin(first, "a", instance="i1")
    scene.log = "later"
    assert scene.beat("m9", 0, ("b",), {}, timeout=9_000) is None
    ask = scene.sync(first, 2)
    assert ask not in scene.answers
    scene.replicate()
    assert set(got(scene.synced(ask).assignment)) == {"a"}


def test_a_static_member_is_replaced_by_a_classic_one() -> None:
    """X-JOIN-07, X-JOIN-23, M-STATIC-03, M-STATIC-10."""
    scene = MixedScene()
    scene.come("m1", "a", instance="i1")
    scene.come("m2", "a")
    scene.pass_time(LATER)
    scene.ok("m2", scene.who("m2").member_epoch, None, {})
    answer = scene.joined(scene.join("", instance="i1", data=wants("a", owned={"a": range(4)})))
    assert (answer.error_code, answer.generation_id) == (ErrorCode.NONE, 0)
    member = scene.who(answer.member_id)
    assert member.state is MemberState.UNREVOKED_PARTITIONS
    assert got(scene.fetched(answer.member_id, 0).assignment)
    assert scene.heartbeat(answer.member_id, 0, "i1") is ErrorCode.REBALANCE_IN_PROGRESS
    assert "m1" not in [row.member_id for row in scene.seen.members]
    assert B not in plain(member.assigned)
    assert scene.described()[0].members[-1].member_type in (0, 1)
    assert scene.described()[0].group_id == GROUP


def numbers(scene: MixedScene, member: str) -> tuple[int, ...]:
    """Return the partitions of topic a that are assigned to the member."""
    return plain(scene.who(member).assigned).get(A, ())


def ahead(profile: Profile) -> tuple[MixedScene, str, tuple[int, ...]]:
    """Bring the classic member i1 from epoch 1 to 2, whose target leaves it a part of its partitions. Return its id and
    that part. Its previous epoch is 1."""
    scene, first, second = mixed(profile)
    target = {member: plain(share) for member, share in scene.seen.target}
    member, instance = (first, "i1") if len(target[first][A]) == 1 else (second, "i2")
    kept = target[member][A]
    owned = {"a": numbers(scene, member)}
    scene.rejoin(member, "a", instance=instance, owned=owned, generation=1)
    assert scene.rejoin(member, "a", instance=instance, owned={"a": kept}, generation=1).generation_id == 2
    assert (scene.who(member).member_epoch, scene.who(member).previous_member_epoch) == (2, 1)
    assert numbers(scene, member) == kept
    return scene, member, kept


#: the generation in the subscription (of the present epoch 2, the previous 1, or others), the claims to topic a
#: (``kept``: the member's partitions; ``more``: these and all others), and whether the member passes
CLAIMS = [
    (2, "kept", True),
    (2, "nothing", True),
    (2, "more", True),
    (1, "kept", True),
    (1, "nothing", True),
    (1, "more", False),
    (0, "nothing", False),
    (3, "nothing", False),
    (-1, "kept", True),
    (-1, "nothing", True),
    (-1, "more", False),
]


@pytest.mark.parametrize(("generation", "claim", "in_step"), CLAIMS)
@BOTH
def test_a_member_joins_at_its_epoch_or_is_unknown(
    profile: Profile, generation: int, claim: str, in_step: bool
) -> None:
    """Kafka ignores the generation (X-JOIN-10, X-JOIN-12, X-JOIN-26)."""
    scene, member, kept = ahead(profile)
    claims = {"kept": {"a": kept}, "nothing": {}, "more": {"a": range(4)}}[claim]
    before, count = scene.seen, len(scene.records)
    answer = scene.rejoin(
        member, "a", instance=scene.who(member).instance_id, owned=claims, generation=generation, rebalance=7_000
    )
    if in_step or profile is KAFKA_4_3:
        assert (answer.error_code, answer.generation_id, answer.member_id) == (ErrorCode.NONE, 2, member)
        assert scene.who(member).rebalance_timeout_ms == 7_000
    else:
        assert (answer.error_code, answer.member_id) == (ErrorCode.UNKNOWN_MEMBER_ID, "")
        assert (scene.seen, len(scene.records)) == (before, count)
    assert numbers(scene, member) == kept


@pytest.mark.parametrize(("version", "claims"), [(0, None), (1, None), (1, range(4))])
@BOTH
def test_old_subscriptions_contain_no_generation(profile: Profile, version: int, claims: range | None) -> None:
    """Only the claims count, if the version has any (X-JOIN-12, A-EMB-02, A-EMB-07)."""
    scene, member, kept = ahead(profile)
    answer = scene.rejoin(
        member,
        "a",
        instance=scene.who(member).instance_id,
        owned={"a": kept if claims is None else claims},
        generation=9,
        bytes_version=version,
    )
    refused = claims is not None and profile is INTENDED
    assert answer.error_code is (ErrorCode.UNKNOWN_MEMBER_ID if refused else ErrorCode.NONE)


@BOTH
def test_partitions_to_revoke_may_be_claimed_without_a_generation(profile: Profile) -> None:
    """O ⊆ A ∪ R is accepted; and it is a claim, so the partitions must still be revoked (X-JOIN-12, X-JOIN-17)."""
    scene, first, second = mixed(profile)
    target = {member: plain(share) for member, share in scene.seen.target}
    member, instance = (first, "i1") if len(target[first][A]) == 1 else (second, "i2")
    owned = {"a": numbers(scene, member)}
    for _ in range(2):
        assert scene.rejoin(member, "a", instance=instance, owned=owned).generation_id == 1
        assert scene.who(member).state is MemberState.UNREVOKED_PARTITIONS
    assert scene.rejoin(member, "a", instance=instance).generation_id == 2


@BOTH
def test_an_answer_that_was_lost_is_asked_for_again_and_frees_nothing(profile: Profile) -> None:
    """A member that sends the previous generation does not know the present one (X-JOIN-12, M-REC-18).

    An eager member claims nothing, and here it changes its subscription. Kafka treats the empty claim as a revocation.
    """
    scene, member, kept = ahead(profile)
    scene.pass_time(LATER)
    answer = scene.rejoin(member, "b", instance=scene.who(member).instance_id, generation=1)
    assert answer.error_code is ErrorCode.NONE
    seen = scene.who(member)
    if profile is KAFKA_4_3:
        assert (answer.generation_id, seen.state, numbers(scene, member)) == (3, MemberState.STABLE, ())
        return
    assert (answer.generation_id, seen.state) == (2, MemberState.UNREVOKED_PARTITIONS)
    assert plain(seen.pending_revocation) == {A: kept}
    assert scene.rejoin(member, "b", instance=seen.instance_id, generation=2).generation_id == 3


@pytest.mark.parametrize(
    ("owned", "generation", "in_step"),
    [({}, -1, True), ({}, 1, False), ({}, 0, False), ({"a": [0]}, -1, False), ({"gone": [0]}, -1, True)],
    ids=["newcomer", "fenced", "of no epoch", "claims", "claims what is gone"],
)
@BOTH
def test_an_unknown_member_id_owns_nothing(
    profile: Profile, owned: dict[str, list[int]], generation: int, in_step: bool
) -> None:
    """Kafka adds the unknown sender as a member (X-JOIN-06, X-UP-12)."""
    scene, _, _ = mixed(profile)
    before, count = scene.seen, len(scene.records)
    answer = scene.rejoin("x", "a", owned=owned, generation=generation)
    if in_step or profile is KAFKA_4_3:
        assert answer.error_code is ErrorCode.NONE
        assert scene.who("x").classic is not None
    else:
        assert (answer.error_code, answer.member_id) == (ErrorCode.UNKNOWN_MEMBER_ID, "")
        assert (scene.seen, len(scene.records)) == (before, count)


@pytest.mark.parametrize("generation", [1, 9])
@BOTH
def test_a_join_without_a_member_id_needs_no_generation(profile: Profile, generation: int) -> None:
    """A static member is fenced by its instance id, a dynamic one is new (X-JOIN-05, X-JOIN-07)."""
    scene, first, _ = mixed(profile)
    answer = scene.rejoin("", "a", instance="i1", owned={"a": range(4)}, generation=generation)
    assert answer.error_code is ErrorCode.NONE
    assert first not in [row.member_id for row in scene.seen.members]
    assert scene.rejoin(first, "a", instance="i1", generation=1).error_code is ErrorCode.FENCED_INSTANCE_ID
    assert scene.rejoin("", "a", generation=generation, version=3).error_code is ErrorCode.NONE


def test_the_checks_before_come_first() -> None:
    """A member at a wrong epoch that is also unreadable, or fenced by its instance id, gets that error (X-JOIN-08,
    X-JOIN-09)."""
    scene, member, _ = ahead(INTENDED)
    protocols = (m.Protocol("range", wants("a", generation=9)), m.Protocol("two", b""))
    scene.come("m9", "a")
    asked = scene.ask(
        m.JoinGroupRequest(
            GROUP,
            session_timeout_ms=9_000,
            rebalance_timeout_ms=9_000,
            member_id=member,
            protocol_type="consumer",
            protocols=protocols,
        )
    )
    assert scene.joined(asked).error_code is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    fenced = scene.rejoin("x", "a", instance="i1", generation=9)
    assert fenced.error_code is ErrorCode.FENCED_INSTANCE_ID


@BOTH
def test_a_fenced_member_that_rejoins_drops_partitions_of_others(profile: Profile) -> None:
    """In Kafka its join is accepted, and it keeps using partitions that another member owns now (X-JOIN-06,
    INV-KIP-09)."""
    scene, first, _ = mixed(profile)
    owned = {"a": numbers(scene, first)}
    scene.pass_time(scene.timer(TimerKind.CONSUMER_SESSION, first) or 0)
    assert first not in [row.member_id for row in scene.seen.members]
    answer = scene.rejoin(first, "a", owned=owned, generation=1)
    assert answer.error_code is (ErrorCode.UNKNOWN_MEMBER_ID if profile is INTENDED else ErrorCode.NONE)
    assert scene.rejoin(first, "a").error_code is ErrorCode.NONE
