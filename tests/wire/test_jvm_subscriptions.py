"""Kafka's treatment of a consumer's unreadable metadata (G-DATA-10); core and model agree."""

from __future__ import annotations

import pytest
from jvm_traces import LOADED, RELEASE, KafkaOf, join, leave, run, sync

from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import Appended, Event, TimerFired, TimerKey, TimerKind
from fencepost.protocol.messages import Protocol
from fencepost.protocol.profiles import KAFKA_4_3
from fencepost.protocol.settings import Settings
from fencepost.protocol.view import GroupState
from fencepost_conformance.judge.compare.lockstep import first_difference
from fencepost_conformance.judge.compare.model import follow
from fencepost_conformance.targets.core import Core
from fencepost_conformance.targets.ids import member_id
from fencepost_conformance.targets.kafka_jvm import KafkaJvm

pytestmark = pytest.mark.jvm

M0 = member_id("client", 0)
NO_TOPICS = b"\x00\x00" + b"\x00\x00\x00\x00"
TOPIC = b"\x00\x00" + b"\x00\x00\x00\x01"
TOO_SHORT = {
    "nothing": b"",
    "half a count": b"\x00\x00" + b"\x00\x00",
    "half a length": TOPIC + b"\x00",
    "no user data": NO_TOPICS,
}
READABLE = {"null": NO_TOPICS + b"\xff\xff\xff\xff", "negative user data": NO_TOPICS + b"\xff\xff\xff\xfe"}
THROWN = {
    "count beyond the end": TOPIC,
    "count negative": b"\x00\x00" + b"\xff\xff\xff\xff",
    "name beyond the end": TOPIC + b"\x00\x09a",
    "name negative": TOPIC + b"\xff\xff",
    "user data beyond the end": NO_TOPICS + b"\x00\x00\x00\x01",
}


@pytest.fixture
def kafka(kafka_of: KafkaOf) -> KafkaJvm:
    return kafka_of(RELEASE)


def until_completed(metadata: bytes) -> list[Event]:
    """A member that is alone rejoins with this metadata; its JoinGroup ends the join phase."""
    joined = [LOADED, join(10, 1, version=3), Appended(11, offset=1), TimerFired(3_010, TimerKey(TimerKind.JOIN, "g"))]
    synced = [sync(3_011, 2, M0, given=b"x"), Appended(3_012, offset=2)]
    return [*joined, *synced, join(3_020, 3, M0, version=3, protocols=(Protocol("range", metadata),))]


@pytest.mark.parametrize("metadata", [*TOO_SHORT.values(), *READABLE.values()], ids=[*TOO_SHORT, *READABLE])
def test_metadata_that_ends_too_early_counts_as_unknown(kafka: KafkaJvm, metadata: bytes) -> None:
    last = in_step(kafka, until_completed(metadata))
    assert last == ({3: ErrorCode.NONE}, GroupState.COMPLETING_REBALANCE, 2)


@pytest.mark.parametrize("metadata", THROWN.values(), ids=THROWN)
def test_an_impossible_length_fails_the_request_that_ended_the_phase(kafka: KafkaJvm, metadata: bytes) -> None:
    """The generation is used up, and the group stays (C-ST-27)."""
    last = in_step(kafka, until_completed(metadata))
    assert last == ({3: ErrorCode.UNKNOWN_SERVER_ERROR}, GroupState.PREPARING_REBALANCE, 2)


def test_no_member_is_answered_when_a_timer_ends_the_phase(kafka: KafkaJvm) -> None:
    wrong = (Protocol("range", THROWN["count negative"]),)
    events = [LOADED, join(10, 1, version=3, protocols=wrong), Appended(11, offset=1)]
    last = in_step(kafka, [*events, TimerFired(3_010, TimerKey(TimerKind.JOIN, "g"))])
    assert last == ({}, GroupState.PREPARING_REBALANCE, 1)


def test_a_leave_that_ends_the_phase_fails_and_the_parked_are_not_answered(kafka: KafkaJvm) -> None:
    wrong = (Protocol("range", THROWN["count negative"]),)
    events = [*until_completed(READABLE["null"])[:-1], join(3_020, 3, version=3, protocols=wrong)]
    last = in_step(kafka, [*events, leave(3_030, 4, M0)])
    assert last == ({4: ErrorCode.UNKNOWN_SERVER_ERROR}, GroupState.PREPARING_REBALANCE, 2)


def in_step(kafka: KafkaJvm, events: list[Event]) -> tuple[dict[int, ErrorCode], GroupState, int]:
    """Return Kafka's errors in the last step, and the state and generation after it; check that core and model
    agree."""
    seen = run(kafka, *events)
    assert first_difference(Core().run(Settings(), KAFKA_4_3, events), seen) is None
    assert follow(Settings(), KAFKA_4_3, events, seen).refused is None
    group = seen[-1].groups["g"]
    assert group is not None
    errors = {reply.request_id: getattr(reply.body, "error_code", ErrorCode.NONE) for reply in seen[-1].replies}
    return errors, group.state, group.generation_id
