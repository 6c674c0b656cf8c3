"""Offsets that take effect when a transaction ends (6.3)."""

import pytest

from fencepost.protocol import offset_messages as o
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import LoadStarted, TimerKind, Unload
from fencepost.protocol.offset_records import ControlKey, Producer
from fencepost.protocol.profiles import INTENDED, KAFKA_4_2, KAFKA_4_3, KAFKA_4_4
from fencepost.protocol.view import GroupState

from .consumer_scene import A
from .offset_scene import NONE, PRODUCER, OffsetScene
from .scene import GROUP

ONE = {("a", 0): 5}
DONE = {("a", 0): NONE}


def at_everything(error: ErrorCode) -> dict[tuple[str, int], ErrorCode]:
    return {("a", 0): error}


class TestPending:
    def test_pending_offsets_are_invisible_before_the_end(self) -> None:
        """O-TXN-07, O-TXN-08, INV-TXN-01."""
        scene = OffsetScene()
        assert scene.transact(ONE) == DONE
        assert scene.records[-1].producer == Producer(PRODUCER, 0)
        assert scene.read() == {}
        assert scene.pending() == {("a", 0, PRODUCER): 5}
        assert scene.end() is NONE
        assert scene.records[-1].key == ControlKey(True)
        assert scene.records[-1].producer == Producer(PRODUCER, 0)
        assert scene.read() == ONE
        assert scene.read(stable=True) == ONE
        assert not scene.pending()

    def test_an_aborted_one_is_never_seen(self) -> None:
        """O-TXN-08, INV-TXN-01."""
        scene = OffsetScene()
        scene.transact(ONE)
        assert scene.end(committed=False) is NONE
        assert scene.read({"a": (0,)}, stable=True) == {("a", 0): -1}
        assert not scene.state.offsets.groups
        assert not scene.state.offsets.producers

    def test_a_later_plain_commit_stays(self) -> None:
        """The later record counts (O-TXN-08)."""
        scene = OffsetScene()
        scene.commit({("a", 0): 1, ("a", 1): 1})
        scene.transact({("a", 0): 2, ("a", 1): 2})
        scene.commit({("a", 0): 3})
        scene.end()
        assert scene.read() == {("a", 0): 3, ("a", 1): 2}

    def test_a_producer_replaces_its_pending_offset(self) -> None:
        """O-TXN-09."""
        scene = OffsetScene()
        scene.transact(ONE)
        scene.transact({("a", 0): 6})
        assert scene.pending() == {("a", 0, PRODUCER): 6}
        scene.end()
        assert scene.read(stable=True) == {("a", 0): 6}

    def test_of_two_producers_each_has_its_own(self) -> None:
        """The partition is unstable until both transactions end (O-TXN-08, G-DATA-41)."""
        scene = OffsetScene()
        scene.transact(ONE, producer=1)
        scene.transact({("a", 0): 6}, producer=2)
        scene.end(producer=2)
        assert scene.read({"a": (0,)}, stable=True) == {("a", 0): ErrorCode.UNSTABLE_OFFSET_COMMIT}
        assert scene.read() == {("a", 0): 6}
        scene.end(producer=1)
        assert scene.read(stable=True) == {("a", 0): 6}

    def test_a_transaction_ends_in_all_groups(self) -> None:
        """O-TXN-08."""
        scene = OffsetScene()
        scene.transact(ONE)
        scene.transact({("b", 1): 7}, group="other")
        scene.end()
        assert scene.read() == ONE
        assert scene.read(group="other") == {("b", 1): 7}

    def test_the_end_of_nothing_is_written(self) -> None:
        """O-TXN-08."""
        scene = OffsetScene()
        assert scene.end(producer=99) is NONE
        assert len(scene.records) == 1

    def test_too_long_metadata(self) -> None:
        """O-TXN-14."""
        scene = OffsetScene(offset_metadata_max_bytes=1)
        assert scene.transact(ONE, metadata="long") == at_everything(ErrorCode.OFFSET_METADATA_TOO_LARGE)
        assert not scene.records
        assert scene.read({"a": (0,)}, stable=True) == {("a", 0): -1}

    def test_a_new_transaction_of_a_producer_that_ended_one(self) -> None:
        """O-TXN-08."""
        scene = OffsetScene()
        scene.transact({("a", 0): 1, ("a", 1): 1})
        scene.end(committed=False)
        scene.transact({("a", 0): 2})
        assert scene.pending() == {("a", 0, PRODUCER): 2}


class TestWhoMayCommit:
    def test_rights(self) -> None:
        """O-TXN-01, G-WIRE-27."""
        scene = OffsetScene()
        both = {"denied": frozenset({GROUP}), "denied_transactional_ids": frozenset({"tx"})}
        assert scene.transact(ONE, **both) == at_everything(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
        assert scene.transact(ONE, denied=frozenset({GROUP})) == at_everything(ErrorCode.GROUP_AUTHORIZATION_FAILED)
        assert scene.transact({**ONE, ("b", 0): 1, ("x", 0): 1}, denied_topics=frozenset({"b"})) == {
            ("b", 0): ErrorCode.TOPIC_AUTHORIZATION_FAILED,
            ("x", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            ("a", 0): NONE,
        }
        assert scene.transact(ONE, group="") == at_everything(ErrorCode.INVALID_GROUP_ID)
        assert scene.commit(ONE, group="") == DONE

    def test_old_producers_do_not_get_coordinator_load_in_progress(self) -> None:
        """O-TXN-02."""
        scene = OffsetScene()
        scene.feed(Unload(0, leader_epoch=None))
        assert scene.transact(ONE, version=1) == at_everything(ErrorCode.NOT_COORDINATOR)
        scene.feed(LoadStarted(0, leader_epoch=2))
        assert scene.transact(ONE, version=1) == at_everything(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        assert scene.transact(ONE, version=2) == at_everything(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)

    @pytest.mark.parametrize(
        ("version", "error"), [(5, ErrorCode.ILLEGAL_GENERATION), (6, ErrorCode.GROUP_ID_NOT_FOUND)]
    )
    def test_no_group(self, version: int, error: ErrorCode) -> None:
        """O-TXN-03, O-TXN-16, V-129."""
        scene = OffsetScene()
        ids = {"a": A} if version == 6 else None
        expected = {(A if ids else "a", 0): error}
        assert scene.transact(ONE, 0, "m", version=version, ids=ids) == expected
        assert not scene.state.groups
        assert scene.transact(ONE, version=version, ids=ids) == {(A if ids else "a", 0): NONE}
        assert scene.group().protocol_type is None

    def test_a_classic_group_in_any_state(self) -> None:
        """O-TXN-04, O-TXN-06."""
        scene = OffsetScene()
        first, second = scene.stable(2)
        before = dict(scene.timers)
        assert scene.transact(ONE) == DONE
        assert scene.transact(ONE, 1, first) == DONE
        assert scene.transact(ONE, -1, first) == at_everything(ErrorCode.ILLEGAL_GENERATION)
        assert scene.transact(ONE, instance="i") == at_everything(ErrorCode.UNKNOWN_MEMBER_ID)
        assert scene.transact(ONE, 1, "stranger") == at_everything(ErrorCode.UNKNOWN_MEMBER_ID)
        assert scene.transact(ONE, 2, first) == at_everything(ErrorCode.ILLEGAL_GENERATION)
        assert scene.timers == before
        scene.join(first, data=b"x")
        scene.join(second)
        assert scene.now_in is GroupState.COMPLETING_REBALANCE
        assert scene.transact(ONE, 2, first) == DONE
        assert scene.timer(TimerKind.SESSION, first) is not None

    def test_a_consumer_group(self) -> None:
        """In every version of the request (O-TXN-05, O-TXN-16)."""
        scene = OffsetScene()
        scene.come("m1", "a")
        epoch = scene.who("m1").member_epoch
        assert scene.transact(ONE) == DONE
        assert scene.transact(ONE, epoch, "m1", version=3) == DONE
        assert scene.transact(ONE, instance="i") == at_everything(ErrorCode.UNKNOWN_MEMBER_ID)
        assert scene.transact(ONE, -2) == at_everything(ErrorCode.UNKNOWN_MEMBER_ID)
        assert scene.transact(ONE, epoch + 1, "m1") == at_everything(ErrorCode.ILLEGAL_GENERATION)
        assert scene.transact(ONE, epoch + 1, "m1", version=6, ids={"a": A}) == {(A, 0): ErrorCode.STALE_MEMBER_EPOCH}

    @pytest.mark.parametrize("profile", [INTENDED, KAFKA_4_2], ids=lambda profile: profile.name)
    def test_an_older_epoch(self, profile) -> None:
        """O-TXN-05, O-COMMIT-36."""
        scene = OffsetScene(profile)
        scene.come("m1", "a")
        scene.pass_time(1_000)
        scene.come("m2", "b")
        scene.pass_time(1_000)
        scene.ok("m1", scene.who("m1").member_epoch, None, {A: range(4)})
        epoch = scene.who("m1").member_epoch
        old = scene.transact(ONE, epoch - 1, "m1")
        assert old == at_everything(NONE if profile is INTENDED else ErrorCode.ILLEGAL_GENERATION)
        assert scene.transact({("b", 0): 1}, epoch - 1, "m1") == {("b", 0): ErrorCode.ILLEGAL_GENERATION}


class TestTopicIds:
    @pytest.mark.parametrize(
        ("profile", "stored"),
        [(INTENDED, A), (KAFKA_4_4, A), (KAFKA_4_3, o.ZERO_ID)],
        ids=lambda value: getattr(value, "name", None),
    )
    def test_an_id_is_stored_from_4_4_on(self, profile, stored: bytes) -> None:
        """V-129, O-TXN-12."""
        scene = OffsetScene(profile)
        scene.transact(ONE)
        scene.end()
        assert scene.views()[0].topic_id == stored

    def test_by_id(self) -> None:
        """O-TXN-16."""
        scene = OffsetScene()
        stranger = bytes(15) + b"\x09"
        assert scene.transact({**ONE, ("x", 0): 1}, version=6, ids={"a": A, "x": stranger}) == {
            (stranger, 0): ErrorCode.UNKNOWN_TOPIC_ID,
            (A, 0): NONE,
        }
        assert scene.pending() == {("a", 0, PRODUCER): 5}


class TestTheLog:
    def test_a_marker_that_was_not_appended(self) -> None:
        """O-TXN-11, O-TXN-15."""
        scene = OffsetScene(log="late")
        scene.transact(ONE)
        scene.replicate()
        assert scene.end() is None
        assert scene.stored() == ONE
        scene.fail(ErrorCode.NOT_ENOUGH_REPLICAS)
        assert not scene.stored()
        assert scene.pending() == {("a", 0, PRODUCER): 5}
        answer = scene.answers[2]
        assert isinstance(answer, o.WriteTxnMarkerResponse)
        assert answer.error_code is ErrorCode.NOT_ENOUGH_REPLICAS
        scene.end()
        scene.replicate()
        assert scene.read() == ONE

    def test_a_marker_that_is_late_or_has_no_coordinator(self) -> None:
        """O-TXN-15, F-RT-09."""
        scene = OffsetScene(log="late")
        scene.end()
        scene.pass_time(5_000)
        answer = scene.answers[1]
        assert isinstance(answer, o.WriteTxnMarkerResponse)
        assert answer.error_code is ErrorCode.REQUEST_TIMED_OUT
        scene.end()
        scene.feed(Unload(scene.now, leader_epoch=None))
        answer = scene.answers[2]
        assert isinstance(answer, o.WriteTxnMarkerResponse)
        assert answer.error_code is ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert scene.end() is ErrorCode.NOT_LEADER_OR_FOLLOWER
        scene.feed(LoadStarted(scene.now, leader_epoch=2))
        assert scene.end() is ErrorCode.NOT_LEADER_OR_FOLLOWER
        scene.state = scene.state._replace(running=False)
        assert scene.end() is ErrorCode.NOT_LEADER_OR_FOLLOWER

    def test_a_commit_that_was_not_appended(self) -> None:
        """F-RT-08, O-TXN-02."""
        scene = OffsetScene(log="late")
        scene.transact(ONE, version=1)
        scene.fail(ErrorCode.NETWORK_EXCEPTION)
        assert scene.errors_of(1) == at_everything(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        assert not scene.pending()
        assert not scene.state.groups
        scene.transact(ONE)
        scene.pass_time(5_000)
        assert scene.errors_of(2) == at_everything(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        assert scene.pending()
