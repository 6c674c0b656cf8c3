"""OffsetFetch: permission, the state that is read, and the content of the answer (6.4)."""

import pytest

from fencepost.protocol import offset_messages as o
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import LoadStarted, Topic, TopicsChanged, Unload
from fencepost.protocol.profiles import INTENDED, KAFKA_4_4

from .consumer_scene import A, B
from .offset_scene import NONE, OffsetScene
from .scene import GROUP

UNSTABLE = ErrorCode.UNSTABLE_OFFSET_COMMIT
ONE = {("a", 0): 5}


class TestWhatIsShown:
    def test_a_fetch_returns_all_fields_of_the_commit(self) -> None:
        """INV-COMMIT-02."""
        scene = OffsetScene()
        part = o.OffsetCommitRequestPartition(0, committed_offset=5, committed_leader_epoch=3, committed_metadata="m")
        topics = (o.OffsetCommitRequestTopic(name="a", partitions=(part,)),)
        scene.ask(o.OffsetCommitRequest(GROUP, topics=topics), 9)
        answer = scene.asks({"a": (0, 1)})
        assert answer is not None
        assert answer.topics[0].partitions == (
            o.OffsetFetchResponsePartition(0, committed_offset=5, committed_leader_epoch=3, metadata="m"),
            o.OffsetFetchResponsePartition(1, committed_offset=-1, committed_leader_epoch=-1, metadata=""),
        )

    def test_a_missing_group_has_no_offsets(self) -> None:
        """O-FETCH-03."""
        scene = OffsetScene()
        assert scene.read({"a": (0, 7), "nowhere": (0,)}) == {("a", 0): -1, ("a", 7): -1, ("nowhere", 0): -1}
        assert scene.read() == {}
        assert scene.read(stable=True, group="") == {}

    def test_all_of_a_group_sorted(self) -> None:
        """O-FETCH-01, O-FETCH-13."""
        scene = OffsetScene()
        scene.commit({("b", 1): 4, ("a", 3): 3, ("a", 0): 2})
        assert list(scene.read().items()) == [(("a", 0), 2), (("a", 3), 3), (("b", 1), 4)]
        assert scene.read(denied_topics=frozenset({"a"})) == {("b", 1): 4}
        answer = scene.asks(version=10)
        assert answer is not None
        assert [(topic.name, topic.topic_id) for topic in answer.topics] == [("", A), ("", B)]

    def test_a_fetch_by_id_leaves_out_offsets_without_id(self) -> None:
        """O-FETCH-13."""
        scene = OffsetScene(log="late")
        scene.commit({("a", 0): 5, ("b", 0): 6})
        scene.replicate()
        scene.topics(Topic("b", B, 2))  # the offsets of a are removed, but that is not replicated yet
        answer = scene.asks(version=10)
        assert answer is not None
        assert [topic.topic_id for topic in answer.topics] == [B]
        assert scene.read() == {("a", 0): 5, ("b", 0): 6}

    def test_an_offset_of_the_topic_that_was_there_before(self) -> None:
        """O-FETCH-06."""
        scene = OffsetScene(log="late")
        scene.commit(ONE)
        scene.replicate()
        again = bytes(15) + b"\x0a"
        scene.topics(Topic("a", again, 4))
        answer = scene.asks({"a": (0,)}, version=10, ids={"a": again})
        assert answer is not None
        assert answer.topics[0].partitions[0].committed_offset == -1
        assert scene.read({"a": (0,)}) == ONE  # a client that names no id sees it until it is deleted

    def test_rights_and_unknown_ids(self) -> None:
        """O-FETCH-01, O-FETCH-13, O-FETCH-14."""
        scene = OffsetScene()
        scene.commit(ONE)
        assert scene.fetch_error({"a": (0,)}, denied=frozenset({GROUP})) is ErrorCode.GROUP_AUTHORIZATION_FAILED
        assert list(scene.read({"b": (0,), "a": (0,)}, denied_topics=frozenset({"b"})).items()) == [
            (("a", 0), 5),
            (("b", 0), ErrorCode.TOPIC_AUTHORIZATION_FAILED),
        ]
        stranger = bytes(15) + b"\x09"
        answer = scene.asks({"x": (0,), "a": (0,)}, version=10, ids={"x": stranger, "a": A})
        assert answer is not None
        assert [(topic.topic_id, topic.partitions[0].error_code) for topic in answer.topics] == [
            (A, NONE),
            (stranger, ErrorCode.UNKNOWN_TOPIC_ID),
        ]

    def test_several_groups_each_with_its_own_error(self) -> None:
        """O-FETCH-11, O-FETCH-14."""
        scene = OffsetScene()
        scene.commit(ONE)
        scene.come("m1", "a", group="other")
        wanted = (o.OffsetFetchRequestTopic(name="a", partition_indexes=(0,)),)
        body = o.OffsetFetchRequest(
            tuple(
                o.OffsetFetchRequestGroup(name, member_id=member, topics=wanted)
                for name, member in ((GROUP, None), ("other", "stranger"), ("denied", None))
            )
        )
        answer = scene.answers[scene.ask(body, 9, denied=frozenset({"denied"}), denied_topics=frozenset({"b"}))]
        assert isinstance(answer, o.OffsetFetchResponse)
        assert [(each.group_id, each.error_code, len(each.topics)) for each in answer.groups] == [
            (GROUP, NONE, 1),
            ("other", ErrorCode.UNKNOWN_MEMBER_ID, 0),
            ("denied", ErrorCode.GROUP_AUTHORIZATION_FAILED, 0),
        ]


class TestWhoMayRead:
    def test_any_client_reads_a_classic_group(self) -> None:
        """O-FETCH-04, O-FETCH-12."""
        scene = OffsetScene()
        first, _ = scene.stable(2)
        scene.commit(ONE, 1, first)
        before = dict(scene.timers)
        assert scene.read({"a": (0,)}, member="whoever", epoch=99) == ONE
        assert scene.timers == before

    @pytest.mark.parametrize("stable", [False, True])
    def test_members_of_a_consumer_group_at_their_epoch(self, stable: bool) -> None:
        """O-FETCH-05."""
        scene = OffsetScene()
        scene.come("m1", "a")
        epoch = scene.who("m1").member_epoch
        assert scene.fetch_error({"a": (0,)}, member="m1", epoch=epoch, stable=stable) is NONE
        assert scene.fetch_error({"a": (0,)}, stable=stable) is NONE
        for member, other, error in (
            ("m1", epoch - 1, ErrorCode.STALE_MEMBER_EPOCH),
            ("m1", -1, ErrorCode.STALE_MEMBER_EPOCH),
            ("", -1, ErrorCode.UNKNOWN_MEMBER_ID),
            ("stranger", epoch, ErrorCode.UNKNOWN_MEMBER_ID),
        ):
            assert scene.fetch_error({"a": (0,)}, member=member, epoch=other, stable=stable) is error

    @pytest.mark.parametrize(
        ("profile", "error"),
        [(INTENDED, ErrorCode.UNKNOWN_MEMBER_ID), (KAFKA_4_4, ErrorCode.UNKNOWN_SERVER_ERROR)],
        ids=lambda value: value.name,
    )
    def test_an_epoch_without_a_member_id(self, profile, error: ErrorCode) -> None:
        """A Kafka fault (O-FETCH-05)."""
        scene = OffsetScene(profile)
        scene.come("m1", "a")
        assert scene.fetch_error({"a": (0,)}, epoch=0) is error

    def test_a_classic_member_of_a_consumer_group(self) -> None:
        """O-FETCH-05."""
        scene = OffsetScene()
        first, _ = scene.classic("i1", "i2")
        scene.come("m1", "a")
        epoch = scene.who(first).member_epoch
        assert scene.fetch_error(member=first, epoch=epoch) is NONE
        assert scene.fetch_error(member=first, epoch=epoch + 1) is ErrorCode.ILLEGAL_GENERATION


class TestWhichStateIsRead:
    def test_offsets_are_read_when_replicated(self) -> None:
        """O-FETCH-07, F-RT-11."""
        scene = OffsetScene(log="late")
        scene.commit(ONE)
        scene.replicate()
        scene.commit({("a", 0): 6, ("a", 1): 7})
        scene.commit({("a", 0): 8})
        assert scene.read({"a": (0, 1)}) == {("a", 0): 5, ("a", 1): -1}
        assert scene.stored() == {("a", 0): 8, ("a", 1): 7}
        scene.replicate()
        assert scene.read({"a": (0, 1)}) == {("a", 0): 8, ("a", 1): 7}

    def test_the_newest_when_it_is_replicated(self) -> None:
        """O-FETCH-08."""
        scene = OffsetScene(log="late")
        scene.commit(ONE)
        assert scene.asks({"a": (0,)}, stable=True) is None
        scene.replicate()
        answer = scene.answers[2]
        assert isinstance(answer, o.OffsetFetchResponse)
        assert answer.groups[0].topics[0].partitions[0].committed_offset == 5

    def test_pending_offsets(self) -> None:
        """A partition that has only pending offsets is left out of a list of all (O-FETCH-07, O-FETCH-08,
        INV-TXN-01)."""
        scene = OffsetScene()
        scene.commit(ONE)
        scene.transact({("a", 0): 9, ("a", 1): 9})
        wanted = {"a": (0, 1, 2)}
        assert scene.read(wanted) == {("a", 0): 5, ("a", 1): -1, ("a", 2): -1}
        assert scene.read(wanted, stable=True) == {("a", 0): UNSTABLE, ("a", 1): UNSTABLE, ("a", 2): -1}
        assert scene.read() == {("a", 0): 5}
        assert scene.read(stable=True) == {("a", 0): UNSTABLE}

    def test_pending_offsets_of_no_group(self) -> None:
        """A client that asks for stable offsets still waits for the transaction (O-FETCH-03)."""
        scene = OffsetScene()
        scene.transact({("a", 0): 9})
        del scene.state.groups[GROUP]
        assert scene.read({"a": (0, 1)}, stable=True) == {("a", 0): UNSTABLE, ("a", 1): -1}
        assert scene.read({"a": (0,)}) == {("a", 0): -1}
        assert scene.read(stable=True) == {}

    def test_a_stable_fetch_fails_when_the_pending_commit_times_out(self) -> None:
        """O-FETCH-09, F-RT-10."""
        scene = OffsetScene(log="late")
        scene.commit(ONE)
        scene.asks({"a": (0,)}, stable=True)
        scene.pass_time(5_000)
        answer = scene.answers[2]
        assert isinstance(answer, o.OffsetFetchResponse)
        assert answer.groups == (o.OffsetFetchResponseGroup(GROUP, error_code=ErrorCode.NOT_COORDINATOR),)
        assert scene.errors_of(1) == {("a", 0): ErrorCode.COORDINATOR_NOT_AVAILABLE}

    def test_the_partition_is_lost(self) -> None:
        """A group that was rejected before keeps its error (O-FETCH-08, F-UNLOAD-01)."""
        scene = OffsetScene(log="late")
        scene.commit(ONE)
        groups = (o.OffsetFetchRequestGroup(GROUP), o.OffsetFetchRequestGroup("denied"))
        scene.ask(o.OffsetFetchRequest(groups, require_stable=True), 9, denied=frozenset({"denied"}))
        scene.feed(Unload(0, leader_epoch=None))
        answer = scene.answers[2]
        assert isinstance(answer, o.OffsetFetchResponse)
        assert [each.error_code for each in answer.groups] == [
            ErrorCode.NOT_COORDINATOR,
            ErrorCode.GROUP_AUTHORIZATION_FAILED,
        ]


class TestNotServing:
    def test_the_place_of_the_error_in_the_answer(self) -> None:
        """O-FETCH-02, O-FETCH-10, O-FETCH-11."""
        scene = OffsetScene()
        scene.feed(Unload(0, leader_epoch=None))
        assert scene.fetch_error({"a": (0,)}) is ErrorCode.NOT_COORDINATOR
        assert scene.read({"a": (0,), "b": (1,)}, version=1, denied_topics=frozenset({"b"})) == {
            ("a", 0): ErrorCode.NOT_COORDINATOR,
            ("b", 1): ErrorCode.NOT_COORDINATOR,
        }
        scene.feed(LoadStarted(0, leader_epoch=2))
        assert scene.fetch_error() is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        assert scene.fetch_error(stable=True) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS

    def test_a_coordinator_that_is_down(self) -> None:
        """In version 1 the rows that have an error already keep it (O-FETCH-02, O-FETCH-14)."""
        scene = OffsetScene()
        scene.state = scene.state._replace(running=False)
        assert scene.fetch_error({"a": (0,)}) is ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert scene.read({"b": (0,), "a": (0,)}, version=1, denied_topics=frozenset({"b"})) == {
            ("a", 0): ErrorCode.COORDINATOR_NOT_AVAILABLE,
            ("b", 0): ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        }


def test_a_group_out_of_sight_takes_its_offsets_along() -> None:
    """They are there again when the group is (G-DATA-42, C-JOIN-15, O-FETCH-03)."""
    scene = OffsetScene(KAFKA_4_4)
    scene.come("m1", "a")
    scene.commit(ONE, scene.who("m1").member_epoch, "m1")
    scene.ok("m1", -1)
    scene.join("stranger")
    assert GROUP not in scene.state.groups
    scene.commit({("b", 0): 1}, group="other")  # the change counts as that of this record
    assert scene.read({"a": (0,)}) == {("a", 0): -1}
    assert scene.stored() == ONE
    scene.commit({("a", 1): 6})
    assert scene.read() == {("a", 0): 5, ("a", 1): 6}


def test_images_need_not_know_a_topic_that_was_committed() -> None:
    """A change of topics while no coordinator is active deletes nothing (O-EXP-23)."""
    scene = OffsetScene()
    scene.commit(ONE)
    records = list(scene.records)
    scene.feed(Unload(0, leader_epoch=None))
    scene.feed(TopicsChanged(0, (), version=9))
    scene.load(records)
    assert scene.read() == ONE
