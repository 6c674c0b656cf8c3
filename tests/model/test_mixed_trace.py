"""The follower over traces of mixed groups: it accepts what the core does, in any order of topics."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from shortest import FINDINGS

from fencepost.functions import KafkaFunctions
from fencepost.protocol import embedded
from fencepost.protocol.consumer_messages import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse
from fencepost.protocol.consumer_records import (
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupTargetAssignmentMemberValue,
)
from fencepost.protocol.events import Request
from fencepost.protocol.messages import SyncGroupResponse
from fencepost.protocol.profile import Profile
from fencepost.protocol.profiles import INTENDED, KAFKA_4_0, KAFKA_4_3, KAFKA_4_4
from fencepost.protocol.records import GroupMetadataValue, Record
from fencepost_conformance.generate.generator import Generated, core_session
from fencepost_conformance.generate.plan import GroupProtocol
from fencepost_conformance.traces.files import EventTrace, read_traces
from fencepost_conformance.traces.observation import Observation
from fencepost_model.trace import Follower

MATCHER = KafkaFunctions().matcher
Traces = Callable[[GroupProtocol, Profile, int], Iterator[Generated]]


@pytest.mark.parametrize("profile", [INTENDED, KAFKA_4_0, KAFKA_4_3, KAFKA_4_4], ids=lambda profile: profile.name)
def test_core_is_followed(profile: Profile, traces: Traces) -> None:
    """The model allows every step of the core."""
    for trace in traces(GroupProtocol.MIXED, profile, 12):
        follower = Follower(trace.settings, profile, MATCHER)
        for event, seen in zip(trace.events, trace.observations, strict=False):
            verdict = follower.feed(event, seen)
            assert verdict.ok, f"seed {trace.seed}: {verdict}"


class Turning:
    """Change the observation: reverse the topics of every assignment; with ``lie``, also remove one of them."""

    def __init__(self, *, lie: bool) -> None:
        self.lie = lie
        self.turned = 0

    def rows(self, rows: Any) -> Any:
        if len(rows) < 2:
            return rows
        self.turned += 1
        return type(rows)(reversed(rows))[self.lie :]

    def data(self, data: bytes) -> bytes:
        try:
            rows, user_data = embedded.decode_topics(data)
            version = embedded.version_of(data)
            if user_data is not None or embedded.encode_topics(rows, version) != data:
                return data
        except embedded.SchemaError:
            return data
        return embedded.encode_topics(self.rows(rows), version)

    def body(self, body: Any) -> Any:
        if isinstance(body, SyncGroupResponse):
            return replace(body, assignment=self.data(body.assignment))
        if isinstance(body, ConsumerGroupHeartbeatResponse) and body.assignment is not None:
            return replace(body, assignment=self.rows(body.assignment))
        return body

    def record(self, record: Record) -> Record:
        value = record.value
        if isinstance(value, ConsumerGroupTargetAssignmentMemberValue):
            return Record(record.key, replace(value, topic_partitions=self.rows(value.topic_partitions)))
        if isinstance(value, ConsumerGroupCurrentMemberAssignmentValue):
            return Record(record.key, replace(value, assigned_partitions=self.rows(value.assigned_partitions)))
        if isinstance(value, GroupMetadataValue):
            members = tuple(replace(row, assignment=self.data(row.assignment)) for row in value.members)
            return Record(record.key, replace(value, members=members))
        return record

    def seen(self, seen: Observation) -> Observation:
        replies = tuple(replace(reply, body=self.body(reply.body)) for reply in seen.replies)
        return replace(seen, replies=replies, records=tuple(self.record(record) for record in seen.records))


def test_the_order_of_topics_does_not_count(traces: Traces) -> None:
    """The order of topics does not matter, since a target takes them from hash maps (X-SYNC-06, X-DOWN-04)."""
    turning = Turning(lie=False)
    for trace in traces(GroupProtocol.MIXED, KAFKA_4_3, 25):
        follower = Follower(trace.settings, KAFKA_4_3, MATCHER)
        for event, seen in zip(trace.events, trace.observations, strict=False):
            verdict = follower.feed(event, turning.seen(seen))
            assert verdict.ok, f"seed {trace.seed}: {verdict}"
    assert turning.turned


def test_a_topic_that_is_missing_does(traces: Traces) -> None:
    """The follower refuses the event if one topic is missing."""
    refused = 0
    for trace in traces(GroupProtocol.MIXED, KAFKA_4_3, 25):
        follower = Follower(trace.settings, KAFKA_4_3, MATCHER)
        for event, seen in zip(trace.events, trace.observations, strict=False):
            turning = Turning(lie=True)
            false = turning.seen(seen)
            if turning.turned:
                assert not follower.accepts(event, false)[0].ok, f"seed {trace.seed}: {event}"
                refused += 1
            assert follower.feed(event, seen).ok
    assert refused


def test_an_upgrade_that_fails_has_asked_for_its_regexes() -> None:
    """A failed upgrade has already requested the resolution of its regular expressions (M-HB-13, A-UHET-06).

    A second heartbeat requests nothing more.
    """
    (found,) = read_traces(FINDINGS / "nonexistent-partition.jsonl")
    assert isinstance(found, EventTrace)
    *begun, last = found.events
    assert isinstance(last, Request)
    assert isinstance(last.body, ConsumerGroupHeartbeatRequest)
    asks = replace(last, body=replace(last.body, subscribed_topic_regex="u.*"))
    core = core_session(found.settings, KAFKA_4_3)
    follower = Follower(found.settings, KAFKA_4_3, MATCHER)
    for event in (*begun, asks, replace(asks, id=asks.id + 1)):
        seen = core.feed(event)
        verdict = follower.feed(event, seen)
        assert verdict.ok, f"{event}: {verdict}"
        if isinstance(event, Request) and event.body is asks.body:
            assert [each.body for each in seen.replies if isinstance(each.body, ConsumerGroupHeartbeatResponse)]
            assert bool(seen.tasks) is (event is asks)
