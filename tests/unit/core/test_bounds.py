"""Numbers at the ends of their ranges: the core handles those that fit, and rejects others with the value and the
bound."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from fencepost import coordinator
from fencepost.codec import Codec
from fencepost.protocol import consumer_records as r
from fencepost.protocol import events as ev
from fencepost.protocol import offset_records as q
from fencepost.protocol.consumer_messages import TopicPartitions
from fencepost.protocol.errors import ErrorCode, IllegalEvent
from fencepost.protocol.profiles import INTENDED, KAFKA_4_4
from fencepost.protocol.records import GroupMetadataKey, GroupMetadataMember, GroupMetadataValue, Record
from fencepost.protocol.settings import Settings
from fencepost.protocol.shapes import bounds, fault
from fencepost_conformance.generate.edges import SETTINGS, Edge, Stage, edges, expiries, last_epochs
from fencepost_conformance.generate.extremes import extremes
from fencepost_conformance.judge.compare.model import follow

from .scene import FirstOf

CODEC = Codec()
FRESH = coordinator.initial_state(Settings(), INTENDED)
SERVES, _ = coordinator.step(FRESH, ev.Load(0, leader_epoch=1, records=()), FirstOf())
_PARTS = (r.AssignedPartitions(bytes(16), (0,), assignment_epochs=(1,)),)
_MEMBER = GroupMetadataMember(
    "m",
    group_instance_id=None,
    client_id="c",
    client_host="/h",
    rebalance_timeout=1,
    session_timeout=1,
    subscription=b"",
    assignment=b"",
)
#: one of each record that has a number
RECORDS = (
    Record(
        GroupMetadataKey("g"),
        GroupMetadataValue(
            "consumer", generation=1, protocol="range", leader="m", current_state_timestamp=1, members=(_MEMBER,)
        ),
    ),
    Record(r.ConsumerGroupMetadataKey("g"), r.ConsumerGroupMetadataValue(1, metadata_hash=1)),
    Record(
        r.ConsumerGroupTargetAssignmentMetadataKey("g"),
        r.ConsumerGroupTargetAssignmentMetadataValue(1, assignment_timestamp=1),
    ),
    Record(
        r.ConsumerGroupTargetAssignmentMemberKey("g", "m"),
        r.ConsumerGroupTargetAssignmentMemberValue((TopicPartitions(bytes(16), (0,)),)),
    ),
    Record(
        r.ConsumerGroupCurrentMemberAssignmentKey("g", "m"),
        r.ConsumerGroupCurrentMemberAssignmentValue(
            1,
            previous_member_epoch=1,
            state=0,
            assigned_partitions=_PARTS,
            partitions_pending_revocation=_PARTS,
        ),
    ),
    Record(
        q.OffsetCommitKey("g", "t", 1),
        q.OffsetCommitValue(1, leader_epoch=1, commit_timestamp=1, expire_timestamp=1),
        q.Producer(1, 1),
    ),
    Record(q.ControlKey(True), q.ControlValue(1), q.Producer(1, 1)),
)
EVENTS: tuple[ev.Event, ...] = (
    *(ev.Load(0, leader_epoch=1, records=(record,)) for record in RECORDS),
    ev.Load(0, leader_epoch=1, records=RECORDS[:1], committed=1),
    ev.LoadStarted(0, leader_epoch=1),
    ev.LoadFailed(0, leader_epoch=1),
    ev.Unload(0, leader_epoch=1),
    ev.Appended(0, offset=0),
    ev.AppendFailed(0, ErrorCode.NOT_ENOUGH_REPLICAS),
    ev.TimerFired(0, ev.TimerKey(ev.TimerKind.OPERATION, operation=1)),
    ev.TaskDone(0, ev.TaskKey(ev.TaskKind.REGEX, "g")),
    ev.TopicsChanged(0, (ev.Topic("t", bytes(16), 1),), version=1),
    ev.GroupConfigChanged(
        0,
        "g",
        ev.GroupConfig(
            consumer_session_timeout_ms=1, consumer_heartbeat_interval_ms=1, consumer_assignment_interval_ms=1
        ),
    ),
)


def _stage() -> Stage:
    stage = Stage(INTENDED)
    stage.set()
    return stage


def _requests() -> Iterator[ev.Request]:
    stage = _stage()
    for version, body in stage.requests():
        yield ev.Request(stage.now, id=stage.number + 1, version=version, client_id="c", client_host="/h", body=body)


@pytest.mark.parametrize(
    "event", [*EVENTS, *_requests()], ids=lambda event: type(getattr(event, "body", event)).__name__
)
def test_a_number_too_wide_is_refused_with_its_bound(event: ev.Event) -> None:
    """Return each integer of each event and request, one below its minimum and one above its maximum."""
    tried = 0
    for extreme in extremes(event):
        if extreme.fits:
            continue
        least, most = bounds(extreme.path.rsplit(".")[-1].partition("[")[0])
        with pytest.raises(IllegalEvent) as refused:
            coordinator.step(SERVES, extreme.value, FirstOf())
        assert f" bits, from {least} to {most} (got {extreme.number})" in str(refused.value), extreme.path
        tried += 1
    assert tried >= 2


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: type(event).__name__)
def test_an_event_with_a_number_that_fits_is_handled_or_refused(event: ev.Event) -> None:
    """Only ``IllegalEvent`` is raised, and the state remains usable. A topic of 2^31 partitions is left out, because
    the memory of a host limits that."""
    for extreme in extremes(event):
        if not extreme.fits or (extreme.path.endswith(".partitions") and extreme.number > 0):
            continue
        for before in (FRESH, SERVES):
            try:
                state, outcome = coordinator.step(before, extreme.value, FirstOf())
            except IllegalEvent:
                continue
            assert all(fault(record) is None and CODEC.encode(record) for record in outcome.records)
            assert state.committed <= state.end
            if extreme.value.at_ms == 0:
                coordinator.step(state, ev.Unload(0, leader_epoch=None), FirstOf())


def _fits(edge: Edge) -> None:
    """Check that the answers and records of the core fit their fields."""
    for seen in edge.observations:
        assert all(fault(record) is None and CODEC.encode(record) for record in seen.records), edge.name
        assert all(fault(reply.body) is None for reply in seen.replies), edge.name


@pytest.mark.parametrize("profile", [INTENDED, KAFKA_4_4], ids=lambda each: each.name)
def test_consequences_of_a_request_with_an_extreme_number_fit(profile) -> None:
    """All numbers of all requests; the model follows one in eight."""
    count = 0
    for count, edge in enumerate(edges(profile), 1):
        _fits(edge)
        if count % 8 == 0:
            assert follow(SETTINGS, profile, edge.events, edge.observations).refused is None, edge.name
    assert count > 200


@pytest.mark.all
@pytest.mark.parametrize("profile", [INTENDED, KAFKA_4_4], ids=lambda each: each.name)
def test_the_model_does_the_same_with_every_number(profile) -> None:
    for edge in edges(profile):
        assert follow(SETTINGS, profile, edge.events, edge.observations).refused is None, edge.name


@pytest.mark.parametrize("profile", [INTENDED, KAFKA_4_4], ids=lambda each: each.name)
def test_a_group_after_its_last_epoch(profile) -> None:
    """Kafka agrees with the model here (G-VOC-04, G-VOC-07; ``tests/wire/test_jvm_edges.py``)."""
    for edge in last_epochs(profile):
        _fits(edge)
        assert follow(SETTINGS, profile, edge.events, edge.observations).refused is None, edge.name


@pytest.mark.parametrize("profile", [INTENDED, KAFKA_4_4], ids=lambda each: each.name)
def test_a_commit_that_expires_around_minus_one(profile) -> None:
    """Kafka agrees (O-COMMIT-14, F-REC-20; ``tests/wire/test_jvm_edges.py``)."""
    for edge in expiries(profile):
        _fits(edge)
        assert follow(SETTINGS, profile, edge.events, edge.observations).refused is None, edge.name


@pytest.mark.parametrize(("name", "number"), [("producer_id", -1), ("producer_id", -(2**63)), ("producer_epoch", -1)])
def test_no_producer_has_a_negative_number(name: str, number: int) -> None:
    """O-TXN-01."""
    stage = _stage()
    for version, body in stage.requests():
        if hasattr(body, name):
            wrong = replace(body, **{name: number})
            with pytest.raises(IllegalEvent, match=rf"{name} must be >= 0 \(got {number}\)"):
                stage.ask(version, wrong)
