"""The owned partitions that a KIP-848 member reports (N-HB-05). A coordinator that wants a partition back takes its
absence from the list for the revocation, so the list must contain every partition that the member may still take.
Member and model, case by case."""

from __future__ import annotations

from typing import Any

import pytest

from fencepost.member import events as ev
from fencepost.protocol.consumer_messages import ConsumerGroupHeartbeatResponse, TopicPartitions
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.profile import Profile
from fencepost.protocol.profiles import INTENDED, KAFKA_4_3
from fencepost_model.member.consumer import ClientConfig, ClientModel
from fencepost_model.member.consumer import inputs as ci
from fencepost_model.member.inputs import CoordinatorFound, HeartbeatDue, Poll, Subscribe
from fencepost_model.member.outputs import Commit, Send

from .consumer_desk import CLUSTER, INTERVAL, T0, T1, U0, ConsumerDesk, T, TopicPartition, rows


class ModelDesk:
    """Drive the model of a member as ``ConsumerDesk`` drives the member; it knows only topic t."""

    def __init__(self, profile: Profile, *, auto_commit: bool = False, listens: bool = True) -> None:
        self._model = ClientModel(ClientConfig(auto_commit=auto_commit, listens=listens, profile=profile))
        self._state = self._model.initial()
        self.outputs: tuple[Any, ...] = ()
        for step in (ci.TopicsKnown(frozenset({(T, "t")})), CoordinatorFound(), Subscribe(frozenset({"t", "u"}))):
            self.do(step)
        self.do(Poll())

    def do(self, step: Any) -> None:
        (successor,) = self._model.successors(self._state, step)
        self._state, self.outputs = successor.state, successor.outputs

    def answer(self, *partitions: TopicPartition, epoch: int = 1, error: ErrorCode = ErrorCode.NONE) -> None:
        body = ConsumerGroupHeartbeatResponse(
            error,
            member_id="m",
            member_epoch=epoch,
            heartbeat_interval_ms=INTERVAL,
            assignment=None if error is not ErrorCode.NONE else rows(*partitions),
        )
        assert self._state.flying is not None
        self.do(ci.Heard(self._state.flying, body))

    def tell_everything(self) -> tuple[TopicPartitions, ...] | None:
        """Reject the periodic heartbeat, and return the list of the next one."""
        self.do(HeartbeatDue())
        self.answer(error=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        self.do(HeartbeatDue())
        return self.reported

    @property
    def reported(self) -> tuple[TopicPartitions, ...] | None:
        (sent,) = (each for each in self.outputs if isinstance(each, Send))
        return sent.body.topic_partitions

    def committed(self) -> None:
        (commit,) = (each for each in self.outputs if isinstance(each, Commit))
        self.do(ci.CommitEnded(commit.request))


def member(profile: Profile, **settings: Any) -> ConsumerDesk:
    """Return a member that has sent its join, and knows only topic t."""
    desk = ConsumerDesk(profile=profile, **settings)
    desk.start("t", "u")
    desk.do(ev.MetadataChanged(desk.now, CLUSTER[:1]))
    return desk


def tell_everything(desk: ConsumerDesk) -> tuple[TopicPartitions, ...] | None:
    desk.wait(INTERVAL)
    desk.refuse(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    desk.wait(1_000)
    return desk.beat.topic_partitions


PART = pytest.mark.parametrize(
    ("profile", "reported"), [(INTENDED, rows(T0, U0)), (KAFKA_4_3, rows(T0))], ids=["intended", "kafka"]
)
NONE_OF_IT = pytest.mark.parametrize(
    ("profile", "reported"), [(INTENDED, rows(T0)), (KAFKA_4_3, ())], ids=["intended", "kafka"]
)
OLDER = pytest.mark.parametrize(
    ("profile", "reported"), [(INTENDED, rows(T0, T1)), (KAFKA_4_3, rows(T0))], ids=["intended", "kafka"]
)


@PART
def test_n_rec_02_a_member_with_a_part_of_its_target_reports_the_rest_too(profile, reported):
    desk = member(profile)
    desk.answer(T0, U0)
    desk.poll()
    assert desk.calls() == [("assigned", (T0,))]
    assert desk.beat.topic_partitions == reported


@PART
def test_n_rec_02_so_does_the_model(profile, reported):
    desk = ModelDesk(profile)
    desk.answer(T0, U0)
    desk.do(Poll())
    desk.do(ci.ListenerReturned())
    assert desk.reported == reported


def test_n_rec_03_withdrawn_partitions_that_were_never_taken_are_released_immediately():
    """Otherwise a coordinator that got U0 in a report would wait for it until the rebalance timer fires."""
    desk = member(INTENDED)
    desk.answer(T0, U0)
    desk.poll()
    desk.answer(T0)
    assert (desk.beat.topic_partitions, desk.state) == (rows(T0), "STABLE")
    desk.do(ev.MetadataChanged(desk.now, CLUSTER))
    desk.poll()
    assert desk.member.assignment == {T0}


def test_n_rec_03_so_does_the_model():
    desk = ModelDesk(INTENDED)
    desk.answer(T0, U0)
    desk.do(Poll())
    desk.do(ci.ListenerReturned())
    desk.answer(T0)
    assert desk.reported == rows(T0)


@NONE_OF_IT
def test_n_hb_05_an_assignment_that_waits_for_a_poll_is_reported(profile, reported):
    """With auto-commit nothing begins earlier (N-REC-01)."""
    desk = member(profile, auto_commit=True)
    desk.answer(T0)
    assert tell_everything(desk) == reported
    assert desk.member.reconciliation is None


@NONE_OF_IT
def test_n_hb_05_so_does_the_model(profile, reported):
    desk = ModelDesk(profile, auto_commit=True)
    desk.answer(T0)
    assert desk.tell_everything() == reported


@OLDER
def test_n_rec_12_partitions_of_an_older_target_are_reported(profile, reported):
    """The member commits for {T0, T1}, and the target is {T0} meanwhile."""
    desk = member(profile, auto_commit=True)
    desk.answer(T0)
    desk.poll()
    desk.answer(T0, T1, epoch=2)
    desk.poll()
    (commit,) = desk.all(ev.Commit)
    desk.wait(INTERVAL)
    desk.answer(T0, epoch=3)
    assert tell_everything(desk) == reported
    desk.do(ev.CommitFinished(desk.now, commit_id=commit.commit_id, result=ev.CommitResult.DONE))
    desk.poll()
    assert desk.member.assignment == {T0, T1}


@OLDER
def test_n_rec_12_so_does_the_model(profile, reported):
    desk = ModelDesk(profile, auto_commit=True)
    desk.answer(T0)
    desk.do(Poll())
    desk.do(ci.ListenerReturned())
    desk.answer(T0, T1, epoch=2)
    desk.do(Poll())
    desk.do(HeartbeatDue())
    desk.answer(T0, epoch=3)
    assert desk.tell_everything() == reported


@OLDER
def test_n_rec_09_partitions_of_a_failed_callback_are_reported_until_revoked(profile, reported):
    desk = member(profile, auto_commit=True)
    desk.answer(T0)
    desk.poll()
    desk.answer(T0, T1, epoch=2)
    desk.poll()
    (commit,) = desk.all(ev.Commit)
    desk.do(ev.CommitFinished(desk.now, commit_id=commit.commit_id, result=ev.CommitResult.DONE))
    desk.poll(error="thrown")
    desk.wait(INTERVAL)
    desk.answer(T0, epoch=3)
    assert (desk.member.reconciliation, desk.member.assignment) == (None, {T0, T1})
    if profile is INTENDED:  # Kafka has just acknowledged T0 (N-REC-03)
        assert tell_everything(desk) == reported
    else:
        assert desk.beat.topic_partitions == reported


@OLDER
def test_n_rec_09_so_does_the_model(profile, reported):
    desk = ModelDesk(profile, auto_commit=True)
    desk.answer(T0)
    desk.do(Poll())
    desk.do(ci.ListenerReturned())
    desk.answer(T0, T1, epoch=2)
    desk.do(Poll())
    desk.committed()
    desk.do(Poll())
    desk.do(ci.ListenerReturned(threw=True))
    desk.do(HeartbeatDue())
    desk.answer(T0, epoch=3)
    if profile is INTENDED:
        assert desk.tell_everything() == reported
    else:
        assert desk.reported == reported


@pytest.mark.parametrize("profile", [INTENDED, KAFKA_4_3], ids=["intended", "kafka"])
def test_m_val_11_a_joining_member_reports_nothing_even_in_the_middle_of_a_commit(profile):
    desk = member(profile, auto_commit=True, listener=False)
    desk.answer(T0)
    desk.poll()
    desk.answer(T0, T1, epoch=2)
    desk.poll()
    desk.wait(INTERVAL)
    desk.refuse(ErrorCode.FENCED_MEMBER_EPOCH)
    assert desk.member.reconciliation is not None
    assert (desk.state, desk.beat.topic_partitions) == ("JOINING", ())


@pytest.mark.parametrize("profile", [INTENDED, KAFKA_4_3], ids=["intended", "kafka"])
def test_m_val_11_so_does_the_model(profile):
    desk = ModelDesk(profile, auto_commit=True, listens=False)
    desk.answer(T0)
    desk.do(Poll())
    desk.answer(T0, T1, epoch=2)
    desk.do(Poll())
    desk.do(HeartbeatDue())
    desk.answer(error=ErrorCode.FENCED_MEMBER_EPOCH)
    assert desk.reported == ()
