"""The follower over traces of consumer groups: it accepts what the core does, and refuses what is impossible."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from random import Random

import pytest

from fencepost.functions import KafkaFunctions
from fencepost.protocol.consumer_messages import ConsumerGroupHeartbeatResponse
from fencepost.protocol.consumer_records import (
    ConsumerGroupMetadataValue,
    ConsumerGroupTargetAssignmentMemberValue,
)
from fencepost.protocol.events import TimerKind, Topic
from fencepost.protocol.profile import Profile
from fencepost.protocol.profiles import INTENDED, KAFKA_4_0, KAFKA_4_1, KAFKA_4_2, KAFKA_4_3, KAFKA_4_4
from fencepost.protocol.records import Record
from fencepost_conformance.generate.generator import Generated
from fencepost_conformance.generate.plan import GroupProtocol
from fencepost_conformance.traces.observation import Observation
from fencepost_model.consumer.observe import ObservedOracle, ObservedValues
from fencepost_model.trace import Follower

PROFILES = (INTENDED, KAFKA_4_0, KAFKA_4_1, KAFKA_4_2, KAFKA_4_3, KAFKA_4_4)
MATCHER = KafkaFunctions().matcher
Traces = Callable[[GroupProtocol, Profile, int], Iterator[Generated]]


@pytest.mark.parametrize("profile", PROFILES, ids=lambda profile: profile.name)
def test_core_is_followed(profile: Profile, traces: Traces) -> None:
    """The model allows every step of the core, under each profile."""
    for trace in traces(GroupProtocol.CONSUMER, profile, 12):
        follower = Follower(trace.settings, profile, MATCHER)
        for event, seen in zip(trace.events, trace.observations, strict=False):
            verdict = follower.feed(event, seen)
            assert verdict.ok, f"seed {trace.seed}: {verdict}"


def _epoch(seen: Observation, rng: Random) -> Observation | None:
    """Return an observation whose answer has another member epoch (M-HB-10)."""
    for at, reply in enumerate(seen.replies):
        body = reply.body
        if isinstance(body, ConsumerGroupHeartbeatResponse) and body.member_epoch > 0:
            false = replace(reply, body=replace(body, member_epoch=body.member_epoch + 1))
            return replace(seen, replies=(*seen.replies[:at], false, *seen.replies[at + 1 :]))
    return None


def _records(seen: Observation, change: Callable[[Record], Record | None]) -> Observation | None:
    for at, record in enumerate(seen.records):
        other = change(record)
        if other is not None:
            return replace(seen, records=(*seen.records[:at], other, *seen.records[at + 1 :]))
    return None


def _hash(seen: Observation, rng: Random) -> Observation | None:
    """Return an observation whose metadata hash is not the hash that these topics had before (M-META-07)."""
    return _records(
        seen,
        lambda record: (
            Record(record.key, replace(record.value, metadata_hash=record.value.metadata_hash ^ 1))
            if isinstance(record.value, ConsumerGroupMetadataValue) and not record.value.metadata_hash
            else None
        ),
    )


def _target(seen: Observation, rng: Random) -> Observation | None:
    """Return an observation whose target leaves partitions without a member (A-PROP-01)."""

    def change(record: Record) -> Record | None:
        value = record.value
        if not isinstance(value, ConsumerGroupTargetAssignmentMemberValue) or not value.topic_partitions:
            return None
        return Record(record.key, ConsumerGroupTargetAssignmentMemberValue(value.topic_partitions[1:]))

    return _records(seen, change)


def _no_record(seen: Observation, rng: Random) -> Observation | None:
    return replace(seen, records=seen.records[:-1]) if seen.records else None


def _no_view(seen: Observation, rng: Random) -> Observation | None:
    return replace(seen, consumer_groups={}) if seen.consumer_groups else None


def _no_task(seen: Observation, rng: Random) -> Observation | None:
    return replace(seen, tasks=()) if seen.tasks else None


def _later(seen: Observation, rng: Random) -> Observation | None:
    """Return an observation whose session timer runs one millisecond longer (M-TMR-01)."""
    for key, at in seen.timers.items():
        if key.kind is TimerKind.CONSUMER_SESSION and at is not None:
            return replace(seen, timers={**seen.timers, key: at + 1})
    return None


@pytest.mark.parametrize("lie", [_epoch, _hash, _target, _no_record, _no_view, _no_task, _later])
def test_a_false_observation_is_rejected_at_its_step(
    lie: Callable[[Observation, Random], Observation | None], traces: Traces
) -> None:
    """The follower refuses an observation at the step where one part is false, and names rules."""
    tried = 0
    for trace in traces(GroupProtocol.CONSUMER, INTENDED, 12):
        follower = Follower(trace.settings, INTENDED, MATCHER)
        for at, (event, seen) in enumerate(zip(trace.events, trace.observations, strict=False)):
            false = lie(seen, Random(at))
            if false is not None and false != seen:
                verdict, _ = follower.accepts(event, false)
                assert not verdict.ok, f"seed {trace.seed}, event {at}: {event}"
                tried += 1
            assert follower.feed(event, seen).ok
    assert tried


def test_a_hash_that_was_never_shown_is_not_learned() -> None:
    """A failed upgrade shows no hash after its GroupEpoch record (M-META-07, X-UP-09).

    The value that the model put in its place is then the hash of the converted group for the rest of that step.
    """
    topics = (Topic("t", b"\x01" * 16, 1),)
    oracle = ObservedOracle(ObservedValues(records=()), ())
    guessed = oracle.metadata_hash("g", 0, topics)
    assert (oracle.metadata_hash("g", guessed, topics), oracle.hashes) == (guessed, ())
    assert (oracle.metadata_hash("g", 7, topics), oracle.hashes) == (7, ((topics, 7),))
