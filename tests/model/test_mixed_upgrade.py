"""A classic group becomes a consumer group in the model, rule by rule (rule book, 9.2)."""

from __future__ import annotations

import pytest
from mixed_scene import KINDS, Scene, T, U, assignment, kinds, subscription

from fencepost.protocol import embedded
from fencepost.protocol.consumer_messages import ConsumerGroupHeartbeatResponse
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import Appended, TimerKind
from fencepost.protocol.messages import (
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    JoinGroupResponse,
    ListGroupsRequest,
    ListGroupsResponse,
    Protocol,
    SyncGroupResponse,
)
from fencepost.protocol.profile import Profile
from fencepost.protocol.profiles import INTENDED, KAFKA_4_0, KAFKA_4_2, KAFKA_4_3
from fencepost.protocol.settings import MigrationPolicy


def test_each_classic_member_becomes_a_member_as_it_is() -> None:
    """A converted member keeps its names, rack, timeouts and assignment (X-UP-04, 05)."""
    scene = Scene()
    given = assignment(("u", [2, 0]), ("gone", [1]))
    data = subscription("u", "t", rack="r1")
    scene.stable({"a": given, "b": b""}, instances={"a": "i1"}, data={"a": data})
    scene.now += 500
    assert scene.beats("c", names=("t",)).error_code is ErrorCode.NONE
    base = [record.value for record in scene.written[: kinds(scene.written).index("Member c")]]
    assert scene.group.timestamp == scene.now  # of the join's computation, which the zero of the upgrade did not delay
    assert base[6] is not None  # the target epoch of the upgrade
    assert (base[6].assignment_epoch, base[6].assignment_timestamp) == (1, 0)  # type: ignore[union-attr]
    a = scene.member("a")
    assert (a.instance, a.rack, a.client_id, a.client_host, a.rebalance_timeout) == ("i1", "r1", "c", "/h", 20_000)
    assert (a.names, a.regex, a.assignor) == (("t", "u"), "", None)
    assert (a.epoch, a.previous, a.state) == (1, 1, "STABLE")
    assert a.assigned == ((U, 0, 1), (U, 2, 1))  # without the deleted topic
    assert a.classic is not None
    assert (a.classic.session_timeout_ms, a.classic.supported_protocols) == (10_000, (Protocol("range", data),))
    assert scene.member("b").assigned == ()  # an empty assignment is accepted (X-UP-06)


def test_the_last_row_of_a_topic_counts() -> None:
    """If an assignment lists a topic twice, the last row counts (X-UP-05)."""
    scene = Scene()
    scene.stable({"a": assignment(("t", [0]), ("t", [1]))})
    scene.beats("c", names=("u",))
    assert scene.member("a").assigned == ((T, 1, 1),)


def test_before_4_3_partitions_had_no_epochs() -> None:
    """Before 4.3 the records contain no assignment epochs (X-UP-05)."""
    scene = Scene(KAFKA_4_2)
    scene.stable({"a": assignment(("t", [0]))})
    step = scene.send(scene.beat("c", names=("u",)))
    current = step.outcome.records[kinds(step.outcome.records).index("Current a")].value
    assert current is not None
    assert current.assigned_partitions[0].assignment_epochs is None  # type: ignore[union-attr]


TOO_SHORT, BACKWARDS = b"\x00\x01\x00", b"\xff\xff" + assignment(("t", [0]))[2:]
TOO_LONG = b"\x00\x01" + (1 << 20).to_bytes(4, "big")


@pytest.mark.parametrize(
    ("bad", "error"),
    [
        (TOO_SHORT, ErrorCode.GROUP_ID_NOT_FOUND),
        (BACKWARDS, ErrorCode.GROUP_ID_NOT_FOUND),
        (TOO_LONG, ErrorCode.UNKNOWN_SERVER_ERROR),
        (assignment(("t", [0])), ErrorCode.UNKNOWN_SERVER_ERROR),  # also assigned to b
        (embedded.encode_assignment(embedded.Assignment((), b"mine")), ErrorCode.GROUP_ID_NOT_FOUND),  # X-UP-02
    ],
)
def test_bytes_that_cannot_be_converted_leave_the_group_classic(bad: bytes, error: ErrorCode) -> None:
    """An assignment that cannot be converted leaves the group classic (X-UP-02, 06)."""
    scene = Scene()
    before = scene.stable({"a": bad, "b": assignment(("t", [0]))})
    answer = scene.beats("c")
    assert (answer.error_code, scene.written) == (error, ())
    assert scene.classic == before


def test_a_subscription_that_ends_too_early_leaves_the_group_classic() -> None:
    """A subscription that ends too early, or has a negative version, leaves the group classic (X-UP-06)."""
    for bad in (TOO_SHORT, b"\xff\xff" + subscription("t")[2:]):
        scene = Scene()
        scene.stable({"a": b""}, data={"a": bad})
        assert scene.beats("c").error_code is ErrorCode.GROUP_ID_NOT_FOUND
        assert scene.classic.state == "Stable"


@pytest.mark.parametrize(
    ("profile", "error", "released"),
    [
        (KAFKA_4_3, ErrorCode.UNKNOWN_SERVER_ERROR, True),
        (INTENDED, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, False),
    ],
)
def test_a_group_in_its_first_rebalance_cannot_be_converted(profile: Profile, error: ErrorCode, released: bool) -> None:
    """A group in its first rebalance stays classic; only Kafka answers its parked members (X-UP-03, 07)."""
    scene = Scene(profile)
    scene.forming(("a",))
    for _ in range(2):
        step = scene.send(scene.beat("c"))
        answers = {reply.request_id: reply.body for reply in step.outcome.replies}
        beat = answers.pop(scene.asked)
        assert isinstance(beat, ConsumerGroupHeartbeatResponse)
        assert beat.error_code is error
        joins = [body.error_code for body in answers.values() if isinstance(body, JoinGroupResponse)]
        assert joins == [ErrorCode.REBALANCE_IN_PROGRESS] * released
        assert (scene.classic.state, scene.classic.generation) == ("PreparingRebalance", 0)
        released = False  # no parked member remains


def test_a_member_without_the_selected_protocol_cannot_be_converted() -> None:
    """The upgrade fails if a member does not offer the selected protocol (X-UP-07)."""
    scene = Scene()
    scene.stable({"a": b"", "b": b""})
    for member in ("a", "b"):  # both offer a second protocol; the first one rejoins without the selected protocol
        scene.send(scene.join(member, protocols=(Protocol("range", subscription("t")), Protocol("sticky", b""))))
    scene.lead(scene.classic.leader or "", {})
    scene.replicate()
    scene.send(scene.join("b", protocols=(Protocol("sticky", subscription("t")),)))
    assert scene.classic.protocol_name == "range"
    assert scene.beats("c").error_code is ErrorCode.UNKNOWN_SERVER_ERROR
    assert scene.classic.generation == 2


def test_session_timers_of_the_converted_are_their_own() -> None:
    """Converted members keep their own session timeouts (X-UP-08)."""
    scene = Scene(group_consumer_session_timeout_ms=45_000)
    scene.stable({"a": b""})
    scene.now += 500
    scene.beats("c")
    assert scene.due(TimerKind.CONSUMER_SESSION, "a") == 10_000
    assert scene.due(TimerKind.CONSUMER_SESSION, "c") == 45_000


@pytest.mark.parametrize(("names", "epoch"), [(("t",), 2), ((), 1)])
def test_the_joiner_bumps_if_it_names_topics(names: tuple[str, ...], epoch: int) -> None:
    """The joiner bumps the epoch if it names topics (X-UP-09, M-HB-03)."""
    scene = Scene()
    scene.stable({"a": assignment(("t", [0, 1, 2]))})
    assert scene.beats("c", names=names).member_epoch == epoch
    assert (scene.group.epoch, scene.member("a").epoch) == (epoch, 1)


@pytest.mark.parametrize(("profile", "answered", "due"), [(KAFKA_4_3, 1, 10_000), (INTENDED, 0, None)])
def test_a_full_group_is_converted_in_memory_only(profile: Profile, answered: int, due: int | None) -> None:
    """A group at the maximum size may be converted, but has no room for the joiner (X-UP-02, 09)."""
    scene = Scene(profile, group_consumer_max_size=2)
    scene.stable({"a": b"", "b": b""})
    scene.send(scene.join(scene.classic.leader or ""))  # parked: the other member has not rejoined
    assert scene.classic.state == "PreparingRebalance"
    step = scene.send(scene.beat("c"))
    errors = [reply.body for reply in step.outcome.replies]
    assert len([body for body in errors if isinstance(body, JoinGroupResponse)]) == answered
    beats = [body.error_code for body in errors if isinstance(body, ConsumerGroupHeartbeatResponse)]
    assert beats == [ErrorCode.GROUP_MAX_SIZE_REACHED]
    assert step.outcome.records == ()
    assert scene.classic.state == "PreparingRebalance"
    assert scene.due(TimerKind.CONSUMER_SESSION, "a") == due
    if due is not None:
        assert scene.fire(TimerKind.CONSUMER_SESSION, "a").outcome.records == ()  # it has no effect


@pytest.mark.parametrize("policy", [MigrationPolicy.DISABLED, MigrationPolicy.DOWNGRADE])
def test_only_a_policy_that_says_so_upgrades(policy: MigrationPolicy) -> None:
    """A policy without upgrades refuses before parked members are answered (X-UP-02, X-UP-03, X-POL-03, 04)."""
    scene = Scene(group_consumer_migration_policy=policy)
    scene.stable({"a": b""})
    assert scene.beats("c").error_code is ErrorCode.GROUP_ID_NOT_FOUND
    assert scene.classic.state == "Stable"


def test_the_records_of_an_upgrade_come_in_order() -> None:
    """The records of an upgrade have a fixed order, followed by those of the join (X-UP-10)."""
    scene = Scene()
    scene.stable({"a": assignment(("t", [0])), "b": assignment(("t", [1]))})
    scene.beats("c")
    base = ["-Group", "Member a", "Member b", "Epoch", "Target a", "Target b", "TargetEpoch", "Current a", "Current b"]
    assert kinds(scene.written) == [*base, "Member c", "Epoch", "Target c", "TargetEpoch", "Current c"]
    epochs = [record.value.epoch for record in scene.written if KINDS[type(record.key)] == "Epoch"]  # type: ignore[union-attr]
    assert epochs == [1, 2]
    assert scene.group.refresh is None


def test_4_0_writes_the_metadata_too_even_if_there_are_none() -> None:
    """4.0 writes the PartitionMetadata record even if no subscribed topic exists (X-UP-10)."""
    scene = Scene(KAFKA_4_0)
    scene.stable({"a": b""}, data={"a": subscription("nowhere")})
    scene.beats("c", names=("nowhere",))
    assert kinds(scene.written)[:4] == ["-Group", "Member a", "Partitions", "Epoch"]


@pytest.mark.parametrize("profile", [KAFKA_4_3, KAFKA_4_2])
def test_classic_members_hear_of_a_new_target_at_their_next_heartbeat(profile: Profile) -> None:
    """Classic members learn of a new target by Heartbeat; without a bump they get NONE (X-UP-11, X-HB-03)."""
    errors = []
    for instance in (None, "i1"):  # a new member; a member that continues a with the same topics (X-UP-15)
        scene = Scene(profile)
        rows = {"a": assignment(("t", [0])), "b": assignment(("t", [1, 2]))}
        scene.stable(rows, instances={"a": "i1"})
        scene.beats("c", instance=instance)
        errors.append(scene.heartbeat("b", 1))
        assert scene.syncs("b", 1).assignment == (rows["b"] if instance else b"")
    assert errors == [ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.NONE]


def test_pending_member_ids_are_forgotten() -> None:
    """A pending member id is forgotten, and then joins like any unknown id (X-UP-12)."""
    scene = Scene()
    scene.stable({"a": b""})
    asked = scene.joins("", new_id="p")
    assert asked.error_code is ErrorCode.MEMBER_ID_REQUIRED
    assert scene.classic.pending_join == {"p"}
    scene.beats("c")
    joined = scene.joins("p")
    assert (joined.error_code, joined.member_id) == (ErrorCode.NONE, "p")
    assert scene.member("p").classic is not None


def test_a_consumer_replaces_a_static_classic_member() -> None:
    """A consumer heartbeat with the same instance id replaces a static classic member (X-UP-13, M-STATIC-03)."""
    scene = Scene()
    scene.stable({"a": assignment(("t", [1])), "b": b""}, instances={"a": "i1"})
    answer = scene.beats("n", instance="i1")
    assert (answer.error_code, answer.member_epoch) == (ErrorCode.NONE, 1)
    assert scene.group.member("a") is None
    assert (scene.member("n").instance, scene.member("n").classic) == ("i1", None)
    assert scene.member("n").assigned == ((T, 1, 1),)


def test_a_target_starts_from_the_partitions_of_the_members() -> None:
    """Each member keeps its partitions, and the joiner gets the free ones (X-UP-14, A-UHOM-04)."""
    scene = Scene()
    scene.stable({"a": assignment(("t", [2])), "b": assignment(("t", [0]))})
    scene.beats("c")
    assert scene.group.target == (("a", ((T, 2),)), ("b", ((T, 0),)), ("c", ((T, 1),)))


@pytest.mark.parametrize(("profile", "epoch"), [(KAFKA_4_3, 2), (INTENDED, 3)])
def test_a_consumer_that_continues_a_classic_member_bumps_only_with_the_fix(profile: Profile, epoch: int) -> None:
    """In Kafka the partitions of the member that left stay without an owner (X-UP-15, LIV-16)."""
    scene = Scene(profile)
    scene.stable({"a": b"", "b": b""}, instances={"a": "i1", "b": "i2"})
    scene.send(scene.join("a", "i1", data=subscription("t", "t")))
    scene.send(scene.join("b", "i2", data=subscription("t", "t")))
    scene.lead(scene.classic.leader or "", {"a": assignment(("t", [0])), "b": assignment(("t", [1, 2]))})
    scene.replicate()
    assert (scene.classic.state, scene.classic.generation) == ("Stable", 2)
    scene.leave("b")
    assert scene.classic.state == "PreparingRebalance"
    answer = scene.beats("s", instance="i1")
    assert (answer.member_epoch, scene.group.epoch, scene.group.assignment_epoch) == (epoch, epoch, epoch)
    held = [(topic, number) for topic, number, _ in scene.member("s").assigned]
    assert held == ([(T, 0)] if profile is KAFKA_4_3 else [(T, 0), (T, 1), (T, 2)])


def _leader_syncs_then_upgrade(profile: Profile = KAFKA_4_3) -> tuple[Scene, int]:
    """Return a group whose leader's assignment and upgrade are both unreplicated, and the id of that SyncGroup."""
    scene = Scene(profile)
    scene.forming(("a", "b"))
    scene.formed()
    scene.lead(scene.classic.leader or "", {"a": assignment(("t", [0]))})
    sync = scene.asked
    step = scene.send(scene.beat("c"))
    released = [reply.body.error_code for reply in step.outcome.replies if isinstance(reply.body, SyncGroupResponse)]
    assert released == [ErrorCode.REBALANCE_IN_PROGRESS]  # X-UP-03
    return scene, sync


def _listed(scene: Scene) -> list[tuple[str, str]]:
    (reply,) = scene.send(ListGroupsRequest(), version=5).outcome.replies
    assert isinstance(reply.body, ListGroupsResponse)
    return [(row.group_type, row.group_state) for row in reply.body.groups]


def test_a_sync_that_is_stored_after_the_upgrade_shows_in_the_old_group() -> None:
    """Readers see the classic group until the upgrade is replicated, Stable once its assignment is (X-UP-16)."""
    scene, _ = _leader_syncs_then_upgrade()
    assert _listed(scene) == [("classic", "CompletingRebalance")]
    scene.step(Appended(scene.now, offset=scene.state.durable + 1))
    assert _listed(scene) == [("classic", "Stable")]
    (reply,) = scene.send(DescribeGroupsRequest(("g",)), version=5).outcome.replies
    assert isinstance(reply.body, DescribeGroupsResponse)
    given = [row.member_assignment for row in reply.body.groups[0].members]
    assert given == [assignment(("t", [0])), b""]
    scene.replicate()
    assert _listed(scene)[0][0] == "consumer"
    assert scene.state.superseded_groups == ()


def test_a_sync_that_times_out_after_the_upgrade_arms_a_timer_by_name() -> None:
    """The timeout arms the join timer of a group that no longer exists; it has no effect (X-UP-16, F-RT-09)."""
    scene, sync = _leader_syncs_then_upgrade()
    before = scene.group
    scene.fire(TimerKind.OPERATION, operation=sync)
    assert scene.due(TimerKind.JOIN) == 20_000
    assert scene.group == before
    scene.replicate()
    assert scene.fire(TimerKind.JOIN).outcome.records == ()
    assert scene.group == before


def test_with_the_fix_a_sync_timeout_arms_no_join_timer() -> None:
    """With the fix the timeout arms no join timer (X-UP-16, C-SYNC-33)."""
    scene, sync = _leader_syncs_then_upgrade(INTENDED)
    scene.fire(TimerKind.OPERATION, operation=sync)
    assert scene.due(TimerKind.JOIN) is None


def test_an_upgrade_that_is_not_appended_gives_the_old_group_back() -> None:
    """The restored classic group gets its open operation back, which makes it Stable (F-RT-08, X-UP-16)."""
    scene, _ = _leader_syncs_then_upgrade()
    scene.fail()
    assert scene.classic.state == "CompletingRebalance"
    scene.replicate()
    assert scene.classic.state == "Stable"
    assert scene.state.superseded_groups == ()


@pytest.mark.parametrize("names", [("t",), ("t", "u")])
@pytest.mark.parametrize(
    ("profile", "error"), [(KAFKA_4_3, ErrorCode.UNKNOWN_SERVER_ERROR), (INTENDED, ErrorCode.NONE)]
)
def test_a_partition_that_is_not_there_is_in_the_assignor_s_way(
    profile: Profile, error: ErrorCode, names: tuple[str, ...]
) -> None:
    """An assigned partition that does not exist makes the assignor fail (A-UHOM-06, A-UHET-06, X-UP-05).

    The subscriptions are alike, or differ.
    """
    scene = Scene(profile)
    scene.stable({"a": assignment(("t", [0, 5]))})
    assert scene.beats("c", names=names).error_code is error
    assert (scene.state.group("g") is None) is (error is ErrorCode.NONE)
