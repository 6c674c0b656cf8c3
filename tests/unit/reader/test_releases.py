"""Differences between releases of Kafka: V-81, V-82, V-99…101, V-103, and the fault of K-OFF-18."""

from __future__ import annotations

import pytest

from fencepost.member.events import Close, CoordinatorLost, Subscribe
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.offset_messages import OffsetCommitRequest, OffsetFetchRequest
from fencepost.protocol.profiles import INTENDED, KAFKA_4_0, KAFKA_4_1, KAFKA_4_2, KAFKA_4_4, PROFILES
from fencepost_consumer import Client
from fencepost_consumer.events import CallReturned, CommitAsync, CommitSync, OffsetAndMetadata, ProblemKind
from fencepost_consumer.membership import Phase

from .desk import T0, T1, U0, Desk

FIVE = ((T0, OffsetAndMetadata(5)),)
TELLING = [profile for name, profile in PROFILES.items() if name != INTENDED.name]


@pytest.mark.parametrize(("profile", "read"), [(KAFKA_4_0, True), (KAFKA_4_1, False), (INTENDED, False)])
def test_a_dropped_topic(profile, read):
    """V-81."""
    desk = Desk(profile=profile).reading(T0, U0)
    desk.do(Subscribe(desk.now, frozenset({"u"})))
    assert desk.reader.fetchable(T0) is read


@pytest.mark.parametrize(("profile", "initialised"), [(KAFKA_4_1, True), (KAFKA_4_2, False), (INTENDED, False)])
def test_a_partition_that_is_about_to_be_revoked(profile, initialised):
    """V-82."""
    desk = Desk(profile=profile).reading(T0)
    desk.member(T0, T1, pending_revocation=frozenset({T1}))
    assert desk.reader.initializing == ((T1,) if initialised else ())


@pytest.mark.parametrize(("profile", "name"), [(KAFKA_4_1, "t"), (KAFKA_4_2, "")])
def test_names_and_ids(profile, name):
    """V-99."""
    desk = Desk(Client.CONSUMER, profile=profile).leaders().coordinator().member(T0)
    desk.poll()
    _, body = desk.asked(OffsetFetchRequest)
    assert body.groups[0].topics[0].name == name
    desk.do(CommitAsync(desk.now, FIVE))
    _, commit = desk.asked(OffsetCommitRequest)
    assert commit.topics[0].name == name


@pytest.mark.parametrize(("profile", "fatal"), [(KAFKA_4_1, True), (KAFKA_4_2, False)])
def test_an_unknown_topic_in_a_lookup(profile, fatal):
    """V-100."""
    desk = Desk(Client.CONSUMER, profile=profile).leaders().coordinator().member(T0)
    desk.poll()
    desk.committed({}, partition=ErrorCode.UNKNOWN_TOPIC_ID)
    problem = desk.poll().problem
    assert (problem is not None and problem.kind is ProblemKind.KAFKA) is fatal


@pytest.mark.parametrize(("profile", "final"), [(KAFKA_4_1, True), (KAFKA_4_2, False)])
def test_an_unknown_topic_id_in_a_commit(profile, final):
    """V-101."""
    desk = Desk(Client.CONSUMER, profile=profile).reading(T0)
    desk.do(CommitSync(desk.now, FIVE))
    desk.commit_answer(ErrorCode.UNKNOWN_TOPIC_ID)
    assert (CallReturned in map(type, desk.commands)) is final


@pytest.mark.parametrize(("profile", "waits"), [(KAFKA_4_1, True), (KAFKA_4_2, False), (INTENDED, False)])
def test_a_close_without_a_coordinator(profile, waits):
    """V-103, N-CLOSE-01."""
    desk = Desk(Client.CONSUMER, profile=profile).reading(T0)
    desk.do(CoordinatorLost(desk.now))
    desk.do(CommitAsync(desk.now, FIVE, 1))
    desk.do(Close(desk.now))
    assert (CallReturned not in map(type, desk.commands)) is waits
    if not waits:
        (callback,) = desk.callbacks
        assert callback.problem.kind is ProblemKind.COMMIT_FAILED


@pytest.mark.parametrize("profile", [INTENDED, *TELLING], ids=lambda profile: profile.name)
def test_a_commit_that_fails_unsent_overtakes_in_kafka(profile):
    """A classic member that is joining commits nothing (K-OFF-18, K-OFF-02)."""
    desk = Desk(profile=profile).reading(T0)
    desk.do(CommitAsync(desk.now, FIVE, 1))
    desk.member(T0, phase=Phase.PREPARING)
    desk.do(CommitAsync(desk.now, FIVE, 2))
    desk.poll()
    overtaken = profile is not INTENDED
    assert [each.callback for each in desk.callbacks] == ([2] if overtaken else [])
    desk.commit_answer()
    desk.poll()
    assert [each.callback for each in desk.callbacks] == ([2, 1] if overtaken else [1, 2])
    assert KAFKA_4_4.fault_callbacks_overtake
