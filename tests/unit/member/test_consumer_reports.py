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

from .consumer_driver import CLUSTER, INTERVAL, T0, T1, U0, ConsumerDriver, T, TopicPartition, rows


class ModelDriver:
    """Drive the model of a member as ``ConsumerDriver`` drives the member; it knows only topic t."""

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
        assert self._state.in_flight is not None
        self.do(ci.HeartbeatAnswered(self._state.in_flight, body))

    def full_report(self) -> tuple[TopicPartitions, ...] | None:
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


def member(profile: Profile, **settings: Any) -> ConsumerDriver:
    """Return a member that has sent its join, and knows only topic t."""
    driver = ConsumerDriver(profile=profile, **settings)
    driver.start("t", "u")
    driver.do(ev.MetadataChanged(driver.now, CLUSTER[:1]))
    return driver


def full_report(driver: ConsumerDriver) -> tuple[TopicPartitions, ...] | None:
    driver.wait(INTERVAL)
    driver.refuse(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    driver.wait(1_000)
    return driver.beat.topic_partitions


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
    driver = member(profile)
    driver.answer(T0, U0)
    driver.poll()
    assert driver.calls() == [("assigned", (T0,))]
    assert driver.beat.topic_partitions == reported


@PART
def test_n_rec_02_so_does_the_model(profile, reported):
    driver = ModelDriver(profile)
    driver.answer(T0, U0)
    driver.do(Poll())
    driver.do(ci.ListenerReturned())
    assert driver.reported == reported


def test_n_rec_03_withdrawn_partitions_that_were_never_taken_are_released_immediately():
    """Otherwise a coordinator that got U0 in a report would wait for it until the rebalance timer fires."""
    driver = member(INTENDED)
    driver.answer(T0, U0)
    driver.poll()
    driver.answer(T0)
    assert (driver.beat.topic_partitions, driver.state) == (rows(T0), "STABLE")
    driver.do(ev.MetadataChanged(driver.now, CLUSTER))
    driver.poll()
    assert driver.member.assignment == {T0}


def test_n_rec_03_so_does_the_model():
    driver = ModelDriver(INTENDED)
    driver.answer(T0, U0)
    driver.do(Poll())
    driver.do(ci.ListenerReturned())
    driver.answer(T0)
    assert driver.reported == rows(T0)


@NONE_OF_IT
def test_n_hb_05_an_assignment_that_waits_for_a_poll_is_reported(profile, reported):
    """With auto-commit nothing begins earlier (N-REC-01)."""
    driver = member(profile, auto_commit=True)
    driver.answer(T0)
    assert full_report(driver) == reported
    assert driver.member.reconciliation is None


@NONE_OF_IT
def test_n_hb_05_so_does_the_model(profile, reported):
    driver = ModelDriver(profile, auto_commit=True)
    driver.answer(T0)
    assert driver.full_report() == reported


@OLDER
def test_n_rec_12_partitions_of_an_older_target_are_reported(profile, reported):
    """The member commits for {T0, T1}, and the target is {T0} meanwhile."""
    driver = member(profile, auto_commit=True)
    driver.answer(T0)
    driver.poll()
    driver.answer(T0, T1, epoch=2)
    driver.poll()
    (commit,) = driver.all(ev.Commit)
    driver.wait(INTERVAL)
    driver.answer(T0, epoch=3)
    assert full_report(driver) == reported
    driver.do(ev.CommitFinished(driver.now, commit_id=commit.commit_id, result=ev.CommitResult.DONE))
    driver.poll()
    assert driver.member.assignment == {T0, T1}


@OLDER
def test_n_rec_12_so_does_the_model(profile, reported):
    driver = ModelDriver(profile, auto_commit=True)
    driver.answer(T0)
    driver.do(Poll())
    driver.do(ci.ListenerReturned())
    driver.answer(T0, T1, epoch=2)
    driver.do(Poll())
    driver.do(HeartbeatDue())
    driver.answer(T0, epoch=3)
    assert driver.full_report() == reported


@OLDER
def test_n_rec_09_partitions_of_a_failed_callback_are_reported_until_revoked(profile, reported):
    driver = member(profile, auto_commit=True)
    driver.answer(T0)
    driver.poll()
    driver.answer(T0, T1, epoch=2)
    driver.poll()
    (commit,) = driver.all(ev.Commit)
    driver.do(ev.CommitFinished(driver.now, commit_id=commit.commit_id, result=ev.CommitResult.DONE))
    driver.poll(error="thrown")
    driver.wait(INTERVAL)
    driver.answer(T0, epoch=3)
    assert (driver.member.reconciliation, driver.member.assignment) == (None, {T0, T1})
    if profile is INTENDED:  # Kafka has just acknowledged T0 (N-REC-03)
        assert full_report(driver) == reported
    else:
        assert driver.beat.topic_partitions == reported


@OLDER
def test_n_rec_09_so_does_the_model(profile, reported):
    driver = ModelDriver(profile, auto_commit=True)
    driver.answer(T0)
    driver.do(Poll())
    driver.do(ci.ListenerReturned())
    driver.answer(T0, T1, epoch=2)
    driver.do(Poll())
    driver.committed()
    driver.do(Poll())
    driver.do(ci.ListenerReturned(threw=True))
    driver.do(HeartbeatDue())
    driver.answer(T0, epoch=3)
    if profile is INTENDED:
        assert driver.full_report() == reported
    else:
        assert driver.reported == reported


@pytest.mark.parametrize("profile", [INTENDED, KAFKA_4_3], ids=["intended", "kafka"])
def test_m_val_11_a_joining_member_reports_nothing_even_in_the_middle_of_a_commit(profile):
    driver = member(profile, auto_commit=True, listener=False)
    driver.answer(T0)
    driver.poll()
    driver.answer(T0, T1, epoch=2)
    driver.poll()
    driver.wait(INTERVAL)
    driver.refuse(ErrorCode.FENCED_MEMBER_EPOCH)
    assert driver.member.reconciliation is not None
    assert (driver.state, driver.beat.topic_partitions) == ("JOINING", ())


@pytest.mark.parametrize("profile", [INTENDED, KAFKA_4_3], ids=["intended", "kafka"])
def test_m_val_11_so_does_the_model(profile):
    driver = ModelDriver(profile, auto_commit=True, listens=False)
    driver.answer(T0)
    driver.do(Poll())
    driver.answer(T0, T1, epoch=2)
    driver.do(Poll())
    driver.do(HeartbeatDue())
    driver.answer(error=ErrorCode.FENCED_MEMBER_EPOCH)
    assert driver.reported == ()
