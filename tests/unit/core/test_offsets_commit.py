"""OffsetCommit: permission, stored values, and answers (6.1, 6.2)."""

import pytest

from fencepost.protocol import offset_messages as o
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import TimerKind, Topic, Unload
from fencepost.protocol.profile import Profile
from fencepost.protocol.profiles import INTENDED, KAFKA_4_0, KAFKA_4_2, KAFKA_4_4
from fencepost.protocol.view import GroupState

from .consumer_scene import LATER, A, B, settled
from .offset_scene import NONE, OffsetScene, gone
from .scene import GROUP

ONE = {("a", 0): 5}
DONE = {("a", 0): NONE}


def at_everything(error: ErrorCode) -> dict[tuple[str, int], ErrorCode]:
    return {("a", 0): error}


class TestBeforeTheGroup:
    def test_a_client_without_read_on_the_group_gets_the_error_at_each_partition(self) -> None:
        """O-COMMIT-01."""
        scene = OffsetScene()
        answer = scene.commit({("a", 0): 1, ("nowhere", 0): 1}, denied=frozenset({GROUP}))
        assert set(answer.values()) == {ErrorCode.GROUP_AUTHORIZATION_FAILED}
        assert not scene.records

    def test_topics_are_checked_in_this_order(self) -> None:
        """O-COMMIT-02, O-COMMIT-03, O-TXN-16."""
        scene = OffsetScene()
        stranger = bytes(15) + b"\x09"
        answer = scene.commit(
            {("a", 0): 1, ("a", 4): 1, ("a", -1): 1, ("b", 0): 1, ("x", 0): 1},
            version=10,
            ids={"a": A, "b": B, "x": stranger},
            denied_topics=frozenset({"b"}),
        )
        assert answer == {
            (A, 4): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            (A, -1): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            (B, 0): ErrorCode.TOPIC_AUTHORIZATION_FAILED,
            (stranger, 0): ErrorCode.UNKNOWN_TOPIC_ID,
            (A, 0): NONE,
        }
        assert next(iter(answer)) == (A, 4)  # rejected topics come first, each topic once
        assert scene.commit({("x", 0): 1}, denied_topics=frozenset({"x"})) == {
            ("x", 0): ErrorCode.TOPIC_AUTHORIZATION_FAILED
        }
        assert scene.commit({("x", 0): 1}) == {("x", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
        assert scene.commit({("a", 0): 1}, version=10, ids={"a": o.ZERO_ID}) == {
            (o.ZERO_ID, 0): ErrorCode.UNKNOWN_TOPIC_ID
        }

    def test_without_valid_partitions_the_group_is_not_checked(self) -> None:
        """O-COMMIT-04."""
        scene = OffsetScene(log="late")
        scene.commit(ONE)
        assert scene.commit({("x", 0): 1}, 7, "nobody") == {("x", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
        scene.feed(Unload(0, leader_epoch=None))
        assert scene.commit({("x", 0): 1}) == {("x", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
        assert scene.commit({}) == {}

    def test_an_unavailable_coordinator_answers_the_other_partitions(self) -> None:
        """A group that rejects the commit answers them in the same way (O-COMMIT-05, O-COMMIT-06, O-COMMIT-07)."""
        scene = OffsetScene()
        scene.feed(Unload(0, leader_epoch=None))
        assert scene.commit({**ONE, ("x", 0): 1}) == {
            ("x", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            ("a", 0): ErrorCode.NOT_COORDINATOR,
        }


class TestWhatIsStored:
    def test_a_commit_keeps_its_metadata_and_time(self) -> None:
        """O-COMMIT-09, O-COMMIT-13, O-COMMIT-14."""
        scene = OffsetScene()
        scene.now = 70
        assert scene.commit({("a", 0): -3, ("a", 1): 9}) == {("a", 0): NONE, ("a", 1): NONE}
        first, second = scene.views()
        assert (first.offset, first.commit_timestamp, first.expire_timestamp, first.topic_id) == (-3, 70, -1, A)
        assert (first.metadata, first.leader_epoch, first.record_offset, second.record_offset) == ("", -1, 0, 1)
        scene.commit({("a", 0): -4}, metadata="m")
        assert scene.stored() == {("a", 0): -4, ("a", 1): 9}
        assert scene.views()[0].metadata == "m"

    @pytest.mark.parametrize("version", [2, 4])
    def test_a_time_to_expire(self, version: int) -> None:
        """There is no field for the topic's id beside it (O-COMMIT-14, F-REC-20)."""
        scene = OffsetScene()
        scene.now = 70
        scene.commit(ONE, version=version, retention=30)
        view = scene.views()[0]
        assert (view.expire_timestamp, view.topic_id) == (100, o.ZERO_ID)

    def test_kafka_keeps_the_id_that_its_record_lacks(self) -> None:
        """A Kafka fault (O-COMMIT-14)."""
        scene = OffsetScene(KAFKA_4_4)
        scene.commit(ONE, version=4, retention=30)
        assert scene.views()[0].topic_id == A

    def test_each_switch_of_topic_ids_changes_only_its_own_commits(self) -> None:
        """Transactions without topic ids leave an offset that expires as it is (V-129, O-COMMIT-14)."""
        scene = OffsetScene(Profile(name="one", old_transactions_without_topic_ids=True))
        scene.commit(ONE)
        assert scene.views()[0].topic_id == A
        scene.commit(ONE, version=4, retention=30)
        assert scene.views()[0].topic_id == o.ZERO_ID

    def test_4_0_knows_no_ids(self) -> None:
        """V-02."""
        scene = OffsetScene(KAFKA_4_0)
        scene.commit(ONE)
        assert scene.views()[0].topic_id == o.ZERO_ID

    @pytest.mark.parametrize(
        ("text", "limit", "fits"), [("abc", 3, True), ("abcd", 3, False), ("𝒳𝒳", 3, False), ("", -1, False)]
    )
    def test_metadata_has_a_longest_length_in_utf_16_units(self, text: str, limit: int, fits: bool) -> None:
        """O-COMMIT-08, G-CFG-20."""
        scene = OffsetScene(offset_metadata_max_bytes=limit)
        expected = NONE if fits else ErrorCode.OFFSET_METADATA_TOO_LARGE
        assert scene.commit(ONE, metadata=text) == {("a", 0): expected}
        assert scene.stored() == (ONE if fits else {})

    def test_no_metadata_is_never_too_long(self) -> None:
        """O-COMMIT-08."""
        scene = OffsetScene(offset_metadata_max_bytes=-1)
        assert scene.commit(ONE) == DONE


class TestSimpleGroups:
    def test_a_commit_without_a_member_creates_a_group(self) -> None:
        """O-COMMIT-20, O-COMMIT-24, O-COMMIT-37."""
        scene = OffsetScene()
        assert scene.commit(ONE, member="whoever", instance="i") == DONE
        assert scene.group().state is GroupState.EMPTY
        assert scene.group().protocol_type is None
        assert scene.commit(ONE, -5, "whoever") == DONE

    @pytest.mark.parametrize(
        ("version", "error"), [(9, ErrorCode.GROUP_ID_NOT_FOUND), (8, ErrorCode.ILLEGAL_GENERATION)]
    )
    def test_a_generation_of_no_group(self, version: int, error: ErrorCode) -> None:
        """O-COMMIT-21, O-COMMIT-22."""
        scene = OffsetScene()
        assert scene.commit(ONE, 0, "m", version=version) == at_everything(error)
        assert not scene.state.groups

    @pytest.mark.parametrize("profile", [INTENDED, KAFKA_4_4], ids=lambda profile: profile.name)
    def test_a_commit_of_which_nothing_is_accepted(self, profile) -> None:
        """Kafka leaves a group, which its next check for expired offsets removes (O-COMMIT-39)."""
        scene = OffsetScene(profile, offset_metadata_max_bytes=1)
        scene.commit(ONE, metadata="too long")
        kafka = profile is KAFKA_4_4
        assert not scene.records
        assert (GROUP in scene.state.groups) is kafka
        error = ErrorCode.UNKNOWN_MEMBER_ID if kafka else ErrorCode.GROUP_ID_NOT_FOUND
        assert scene.commit(ONE, 0, "m") == at_everything(error)
        scene.expire(0)
        assert GROUP not in scene.state.groups

    def test_groups_that_kafka_left_are_removed_when_the_next_append_fails(self) -> None:
        """O-COMMIT-39, O-COMMIT-40, F-RT-08."""
        scene = OffsetScene(KAFKA_4_4, log="late", offset_metadata_max_bytes=1)
        scene.commit(ONE, metadata="too long")
        scene.commit(ONE, group="other")
        assert set(scene.state.groups) == {GROUP, "other"}
        scene.fail(ErrorCode.NOT_ENOUGH_REPLICAS)
        assert not scene.state.groups


class TestClassicGroups:
    def test_members_of_the_generation(self) -> None:
        """O-COMMIT-25, O-COMMIT-26, O-COMMIT-28."""
        scene = OffsetScene()
        first, _ = scene.stable(2)
        scene.now += 3_000
        assert scene.commit(ONE, 1, first) == DONE
        at = scene.timers
        assert max(at.values()) >= scene.now
        assert scene.commit(ONE, 1, "stranger") == at_everything(ErrorCode.UNKNOWN_MEMBER_ID)
        assert scene.commit(ONE, 2, first) == at_everything(ErrorCode.ILLEGAL_GENERATION)
        assert scene.commit(ONE, -1, first) == at_everything(ErrorCode.ILLEGAL_GENERATION)  # O-COMMIT-38
        assert scene.commit(ONE) == at_everything(ErrorCode.UNKNOWN_MEMBER_ID)
        assert scene.commit(ONE, -1, "", instance="i") == at_everything(ErrorCode.UNKNOWN_MEMBER_ID)

    def test_a_commit_is_heard_as_a_heartbeat(self) -> None:
        """An accepted commit counts as a heartbeat; a rejected one does not (O-COMMIT-28)."""
        scene = OffsetScene()
        first, second = scene.stable(2)
        scene.now += 3_000
        scene.commit(ONE, 1, first)
        scene.commit(ONE, 9, second)
        assert scene.timer(TimerKind.SESSION, first) == 10_000
        assert scene.timer(TimerKind.SESSION, second) < 10_000

    def test_another_instance(self) -> None:
        """O-COMMIT-25."""
        scene = OffsetScene()
        first, second = scene.classic("i1", "i2")
        assert scene.commit(ONE, 1, first, instance="i1") == DONE
        assert scene.commit(ONE, 1, first, instance="i2") == at_everything(ErrorCode.FENCED_INSTANCE_ID)
        assert scene.commit(ONE, 1, second, instance="i3") == at_everything(ErrorCode.UNKNOWN_MEMBER_ID)

    def test_within_a_rebalance(self) -> None:
        """The completed generation may commit until the next one begins (O-COMMIT-27, O-COMMIT-35)."""
        scene = OffsetScene()
        first, second = scene.stable(2)
        scene.join(first, data=b"x")
        assert scene.now_in is GroupState.PREPARING_REBALANCE
        assert scene.commit(ONE, 1, second) == DONE
        scene.join(second)
        assert scene.now_in is GroupState.COMPLETING_REBALANCE
        assert scene.commit(ONE, 1, second) == at_everything(ErrorCode.ILLEGAL_GENERATION)
        assert scene.commit(ONE, 2, second) == at_everything(ErrorCode.REBALANCE_IN_PROGRESS)


def consumers(profile=INTENDED) -> OffsetScene:
    """Return a scene in which m1 and m2 share topic a, both at one epoch."""
    scene = OffsetScene(profile)
    scene.come("m1", "a")
    scene.pass_time(LATER)
    scene.come("m2", "a")
    scene.pass_time(LATER)
    scene.ok("m1", scene.who("m1").member_epoch, None, {A: range(4)})
    scene.ok("m1", scene.who("m1").member_epoch, None, {A: (0, 1)})
    scene.ok("m2", scene.who("m2").member_epoch, None, {})
    assert scene.who("m1").member_epoch == scene.who("m2").member_epoch == scene.seen.group_epoch
    return scene


class TestConsumerGroups:
    def test_an_empty_group_takes_commits_without_a_member(self) -> None:
        """O-COMMIT-29, O-COMMIT-30."""
        scene = consumers()
        assert scene.commit(ONE) == at_everything(ErrorCode.UNKNOWN_MEMBER_ID)
        for member in ("m1", "m2"):
            scene.ok(member, -1)
        assert scene.commit(ONE) == DONE
        assert scene.commit(ONE, 3, "m1") == at_everything(ErrorCode.UNKNOWN_MEMBER_ID)

    def test_members_need_a_version_that_knows_them(self) -> None:
        """O-COMMIT-31."""
        scene = consumers()
        epoch = scene.seen.group_epoch
        assert scene.commit(ONE, epoch, "m1", version=8) == at_everything(ErrorCode.UNSUPPORTED_VERSION)
        assert scene.commit(ONE, epoch, "m1") == DONE

    def test_the_current_epoch_may_commit_any_partition(self) -> None:
        """Ownership is not checked (O-COMMIT-13, O-COMMIT-33)."""
        scene = consumers()
        epoch = scene.seen.group_epoch
        assert scene.commit({("b", 1): 3}, epoch, "m1") == {("b", 1): NONE}
        assert scene.commit(ONE, epoch + 1, "m1") == at_everything(ErrorCode.STALE_MEMBER_EPOCH)

    def test_an_older_epoch_passes_for_partitions_that_the_member_kept(self) -> None:
        """O-COMMIT-32, O-COMMIT-36, O-COMMIT-41."""
        scene = consumers()
        old = scene.seen.group_epoch - 1
        kept = scene.who("m1").assigned[0].partitions
        lost = next(number for number in range(4) if number not in kept)
        assert scene.commit({("a", number): 1 for number in kept}, old, "m1") == dict.fromkeys(
            [("a", number) for number in kept], NONE
        )
        before = scene.stored()
        answer = scene.commit({("a", kept[0]): 2, ("a", lost): 2}, old, "m1")
        assert set(answer.values()) == {ErrorCode.STALE_MEMBER_EPOCH}
        assert scene.stored() == before
        assert set(scene.commit({("b", 0): 1}, old, "m1").values()) == {ErrorCode.STALE_MEMBER_EPOCH}

    def test_a_partition_to_revoke_may_be_committed(self) -> None:
        """O-COMMIT-42."""
        scene = OffsetScene()
        scene.come("m1", "a")
        scene.pass_time(LATER)
        scene.come("m2", "a")
        scene.pass_time(LATER)
        scene.ok("m1", scene.who("m1").member_epoch, None, {A: range(4)})
        member = scene.who("m1")
        (going,) = member.pending_revocation
        number, epoch = going.partitions[0], member.member_epoch
        since = (going.assignment_epochs or (0,))[0]
        assert since <= epoch
        for tried, error in ((epoch, NONE), (since, NONE), (since - 1, ErrorCode.STALE_MEMBER_EPOCH)):
            assert scene.commit({("a", number): 1}, tried, "m1") == {("a", number): error}
        assert scene.commit({("a", number): 1}, epoch + 1, "m1") == {("a", number): ErrorCode.STALE_MEMBER_EPOCH}

    def test_a_partition_to_revoke_may_be_committed_with_an_older_epoch(self) -> None:
        """The member got the partition before its present epoch (O-COMMIT-41, O-COMMIT-42)."""
        scene = OffsetScene()
        scene.come("m1", "a")
        for name, topic in (("m0", "b"), ("m2", "a")):
            scene.pass_time(LATER)
            scene.come(name, topic)
            scene.pass_time(LATER)
            scene.ok("m1", scene.who("m1").member_epoch, None, {A: range(4)})
        member = scene.who("m1")
        (going,) = member.pending_revocation
        number, since = going.partitions[0], (going.assignment_epochs or (0,))[0]
        assert since < member.member_epoch
        for tried, error in ((since, NONE), (since - 1, ErrorCode.STALE_MEMBER_EPOCH)):
            assert scene.commit({("a", number): 1}, tried, "m1") == {("a", number): error}

    def test_before_4_3_an_older_epoch_may_not_commit(self) -> None:
        """In 4.0 to 4.2 (O-COMMIT-36)."""
        scene = consumers(KAFKA_4_2)
        old, kept = scene.seen.group_epoch - 1, scene.who("m1").assigned[0].partitions
        assert set(scene.commit({("a", kept[0]): 1}, old, "m1").values()) == {ErrorCode.STALE_MEMBER_EPOCH}

    def test_a_row_with_too_long_metadata_is_not_checked_for_its_epoch(self) -> None:
        """Such a partition alone cannot fail the request (O-COMMIT-32)."""
        scene = OffsetScene(offset_metadata_max_bytes=1)
        scene.come("m1", "a")
        epoch = scene.who("m1").member_epoch
        assert scene.commit({("b", 0): 1}, epoch - 1, "m1", metadata="long") == {
            ("b", 0): ErrorCode.OFFSET_METADATA_TOO_LARGE
        }

    def test_a_member_that_left_for_a_while(self) -> None:
        """Its epoch is −2 (O-COMMIT-33)."""
        scene = OffsetScene()
        scene.come("m1", "a", instance="i")
        epoch = scene.who("m1").member_epoch
        scene.ok("m1", -2, instance="i")
        assert scene.commit(ONE, -2, "m1") == DONE
        for other in (epoch, -1):
            assert scene.commit(ONE, other, "m1") == at_everything(ErrorCode.STALE_MEMBER_EPOCH)

    def test_classic_members_get_errors_of_the_classic_protocol(self) -> None:
        """O-COMMIT-31, O-COMMIT-32."""
        scene = OffsetScene()
        first, _ = scene.classic("i1", "i2")
        scene.come("m1", "a")
        assert not scene.is_classic
        epoch = scene.who(first).member_epoch
        assert scene.commit(ONE, epoch, first, version=2) == DONE
        assert scene.commit(ONE, epoch + 9, first) == at_everything(ErrorCode.ILLEGAL_GENERATION)
        assert set(scene.commit({("b", 0): 1}, epoch - 1, first).values()) == {ErrorCode.ILLEGAL_GENERATION}


class TestTheLog:
    def test_an_answer_waits_for_its_records(self) -> None:
        """O-COMMIT-10, O-COMMIT-11."""
        scene = OffsetScene(log="late")
        assert scene.commit(ONE) is None
        assert scene.commit({("a", 1): 7}) is None
        scene.replicate()
        assert scene.errors_of(1) == DONE
        assert scene.errors_of(2) == {("a", 1): NONE}

    def test_a_failed_append_takes_everything_back(self) -> None:
        """Rows that were rejected before keep their errors (O-COMMIT-11, O-COMMIT-40, F-RT-08, F-RT-10)."""
        scene = OffsetScene(log="late")
        scene.commit(ONE, group="other")
        scene.commit({**ONE, ("x", 0): 1})
        scene.fail(ErrorCode.NOT_ENOUGH_REPLICAS)
        assert scene.errors_of(2) == {
            ("x", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            ("a", 0): ErrorCode.COORDINATOR_NOT_AVAILABLE,
        }
        assert set(scene.state.groups) == {"other"}
        assert scene.stored("other") == ONE
        assert not scene.stored()
        scene.replicate()
        assert scene.errors_of(1) == DONE

    def test_a_timeout_is_reported_and_undoes_nothing(self) -> None:
        """O-COMMIT-11, O-COMMIT-12, F-RT-09."""
        for profile in (INTENDED, KAFKA_4_4):
            scene = OffsetScene(profile, log="late")
            scene.commit(ONE)
            scene.pass_time(5_000)
            assert scene.errors_of(1) == at_everything(ErrorCode.COORDINATOR_NOT_AVAILABLE)
            assert scene.stored() == ONE
            scene.replicate()
            assert scene.read({"a": (0,)}) == ONE

    def test_a_coordinator_that_loses_the_partition_answers_not_coordinator(self) -> None:
        """F-UNLOAD-01."""
        scene = OffsetScene(log="late")
        scene.commit(ONE)
        scene.feed(Unload(0, leader_epoch=None))
        assert scene.errors_of(1) == at_everything(ErrorCode.NOT_COORDINATOR)
        assert not scene.views()

    def test_a_commit_without_records_waits_for_those_before_it(self) -> None:
        """F-RT-16, F-RT-26."""
        scene = OffsetScene(log="late", offset_metadata_max_bytes=1)
        scene.commit(ONE)
        assert scene.commit(ONE, metadata="long") is None
        scene.replicate()
        assert scene.errors_of(2) == at_everything(ErrorCode.OFFSET_METADATA_TOO_LARGE)


def test_a_manual_assignment_and_a_group_do_not_mix() -> None:
    """O-COMMIT-38."""
    scene = settled()
    assert isinstance(scene.state.groups[GROUP], object)
    body = o.OffsetCommitRequest(
        GROUP,
        generation_id_or_member_epoch=-1,
        member_id="m1",
        topics=(
            o.OffsetCommitRequestTopic(name="a", partitions=(o.OffsetCommitRequestPartition(0, committed_offset=1),)),
        ),
    )
    answer = scene.answers[scene.ask(body, 9)]
    assert isinstance(answer, o.OffsetCommitResponse)
    assert answer.topics[0].partitions[0].error_code is ErrorCode.STALE_MEMBER_EPOCH


def test_a_topic_that_came_again() -> None:
    """Offsets of the previous topic are deleted with it (O-EXP-23, O-FETCH-06)."""
    scene = OffsetScene()
    scene.commit({("a", 0): 5, ("b", 0): 6})
    since = len(scene.records)
    again = bytes(15) + b"\x0a"
    scene.topics(Topic("a", again, 4), Topic("b", B, 2))
    assert gone(scene.records[since:]) == [(GROUP, "a", 0)]
    assert scene.stored() == {("b", 0): 6}
