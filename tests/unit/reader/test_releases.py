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

from .driver import T0, T1, U0, Driver

FIVE = ((T0, OffsetAndMetadata(5)),)
RELEASES = [profile for name, profile in PROFILES.items() if name != INTENDED.name]


@pytest.mark.parametrize(("profile", "read"), [(KAFKA_4_0, True), (KAFKA_4_1, False), (INTENDED, False)])
def test_a_dropped_topic(profile, read):
    """V-81."""
    driver = Driver(profile=profile).reading(T0, U0)
    driver.do(Subscribe(driver.now, frozenset({"u"})))
    assert driver.reader.fetchable(T0) is read


@pytest.mark.parametrize(("profile", "initialised"), [(KAFKA_4_1, True), (KAFKA_4_2, False), (INTENDED, False)])
def test_a_partition_that_is_about_to_be_revoked(profile, initialised):
    """V-82."""
    driver = Driver(profile=profile).reading(T0)
    driver.member(T0, T1, pending_revocation=frozenset({T1}))
    assert driver.reader.initializing == ((T1,) if initialised else ())


@pytest.mark.parametrize(("profile", "name"), [(KAFKA_4_1, "t"), (KAFKA_4_2, "")])
def test_names_and_ids(profile, name):
    """V-99."""
    driver = Driver(Client.CONSUMER, profile=profile).leaders().coordinator().member(T0)
    driver.poll()
    _, body = driver.asked(OffsetFetchRequest)
    assert body.groups[0].topics[0].name == name
    driver.do(CommitAsync(driver.now, FIVE))
    _, commit = driver.asked(OffsetCommitRequest)
    assert commit.topics[0].name == name


@pytest.mark.parametrize(("profile", "fatal"), [(KAFKA_4_1, True), (KAFKA_4_2, False)])
def test_an_unknown_topic_in_a_lookup(profile, fatal):
    """V-100."""
    driver = Driver(Client.CONSUMER, profile=profile).leaders().coordinator().member(T0)
    driver.poll()
    driver.committed({}, partition=ErrorCode.UNKNOWN_TOPIC_ID)
    problem = driver.poll().problem
    assert (problem is not None and problem.kind is ProblemKind.KAFKA) is fatal


@pytest.mark.parametrize(("profile", "final"), [(KAFKA_4_1, True), (KAFKA_4_2, False)])
def test_an_unknown_topic_id_in_a_commit(profile, final):
    """V-101."""
    driver = Driver(Client.CONSUMER, profile=profile).reading(T0)
    driver.do(CommitSync(driver.now, FIVE))
    driver.commit_answer(ErrorCode.UNKNOWN_TOPIC_ID)
    assert (CallReturned in map(type, driver.commands)) is final


@pytest.mark.parametrize(("profile", "waits"), [(KAFKA_4_1, True), (KAFKA_4_2, False), (INTENDED, False)])
def test_a_close_without_a_coordinator(profile, waits):
    """V-103, N-CLOSE-01."""
    driver = Driver(Client.CONSUMER, profile=profile).reading(T0)
    driver.do(CoordinatorLost(driver.now))
    driver.do(CommitAsync(driver.now, FIVE, 1))
    driver.do(Close(driver.now))
    assert (CallReturned not in map(type, driver.commands)) is waits
    if not waits:
        (callback,) = driver.callbacks
        assert callback.problem.kind is ProblemKind.COMMIT_FAILED


@pytest.mark.parametrize("profile", [INTENDED, *RELEASES], ids=lambda profile: profile.name)
def test_a_commit_that_fails_unsent_overtakes_in_kafka(profile):
    """A classic member that is joining commits nothing (K-OFF-18, K-OFF-02)."""
    driver = Driver(profile=profile).reading(T0)
    driver.do(CommitAsync(driver.now, FIVE, 1))
    driver.member(T0, phase=Phase.PREPARING)
    driver.do(CommitAsync(driver.now, FIVE, 2))
    driver.poll()
    overtaken = profile is not INTENDED
    assert [each.callback for each in driver.callbacks] == ([2] if overtaken else [])
    driver.commit_answer()
    driver.poll()
    assert [each.callback for each in driver.callbacks] == ([2, 1] if overtaken else [1, 2])
    assert KAFKA_4_4.fault_callbacks_overtake
