"""Traces of consumer groups are read back as written, and records name their types."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fencepost.protocol import consumer_messages as c
from fencepost.protocol import consumer_records as r
from fencepost.protocol import events as ev
from fencepost.protocol.consumer_view import (
    ConsumerGroupState,
    ConsumerGroupView,
    ConsumerMemberView,
    MemberState,
    ResolvedRegex,
    SubscriptionType,
)
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages import Protocol
from fencepost.protocol.offset_records import ControlKey, ControlValue, OffsetCommitKey, OffsetCommitValue, Producer
from fencepost.protocol.profiles import KAFKA_4_3
from fencepost.protocol.records import GroupMetadataKey, Record
from fencepost.protocol.settings import MigrationPolicy, Settings
from fencepost_conformance.traces import convert, itf
from fencepost_conformance.traces import lines as ln
from fencepost_conformance.traces.files import BrokenTrace, EventTrace, read_traces, write_traces
from fencepost_conformance.traces.observation import Observation
from fencepost_conformance.traces.record_form import KINDS

TOPIC = bytes(range(240, 256))
CLASSIC = r.ClassicMemberMetadata(10_000, (Protocol("range", b"\x00\xff"),))
ASSIGNED = (r.AssignedPartitions(TOPIC, (0, 2), assignment_epochs=(3, 4)), r.AssignedPartitions(b"\xff" * 16, (1,)))
VALUES = {
    "ConsumerGroupMetadata": r.ConsumerGroupMetadataValue(3, metadata_hash=-(2**63)),
    "ConsumerGroupPartitionMetadata": r.ConsumerGroupPartitionMetadataValue((r.TopicMetadata(TOPIC, "t", 2),)),
    "ConsumerGroupMemberMetadata": r.ConsumerGroupMemberMetadataValue(
        instance_id=None,
        rack_id="r",
        client_id="c",
        client_host="/h",
        subscribed_topic_names=("t",),
        subscribed_topic_regex="t.*",
        rebalance_timeout_ms=5,
        server_assignor=None,
        classic_member_metadata=CLASSIC,
    ),
    "ConsumerGroupTargetAssignmentMetadata": r.ConsumerGroupTargetAssignmentMetadataValue(
        3, assignment_timestamp=2**40
    ),
    "ConsumerGroupTargetAssignmentMember": r.ConsumerGroupTargetAssignmentMemberValue(
        (c.TopicPartitions(TOPIC, (0, 1)),)
    ),
    "ConsumerGroupCurrentMemberAssignment": r.ConsumerGroupCurrentMemberAssignmentValue(
        3, previous_member_epoch=-1, state=1, assigned_partitions=ASSIGNED, partitions_pending_revocation=()
    ),
    "ConsumerGroupRegularExpression": r.ConsumerGroupRegularExpressionValue(("t",), version=9, timestamp=11),
    "OffsetCommit": OffsetCommitValue(2**40, metadata="π", commit_timestamp=7, topic_id=TOPIC),
    "Control": ControlValue(3),
}


def keyed(name: str) -> object:
    key: type = KINDS[name][0]
    if key is OffsetCommitKey:
        return key("g", "t", 3)
    if key is ControlKey:
        return key(True)
    return key("g") if len(key.__slots__) == 1 else key("g", "m")  # type: ignore[attr-defined]


OFFSETS = (
    Record(OffsetCommitKey("g", "t", 3), OffsetCommitValue(5, commit_timestamp=7), Producer(2**40, 1)),
    Record(ControlKey(False), ControlValue(-1), Producer(2**40, 1)),
)
RECORDS = (
    *OFFSETS,
    *(Record(keyed(name), value) for name, value in VALUES.items()),  # type: ignore[arg-type]
    *(Record(keyed(name), None) for name in KINDS),  # type: ignore[arg-type]
)
MEMBER = ConsumerMemberView(
    "m",
    instance_id="i",
    rack_id=None,
    client_id="c",
    client_host="/h",
    rebalance_timeout_ms=5,
    subscribed_topic_names=("t",),
    subscribed_topic_regex="",
    server_assignor=None,
    member_epoch=3,
    previous_member_epoch=2,
    state=MemberState.UNREVOKED_PARTITIONS,
    assigned=ASSIGNED,
    pending_revocation=(),
    classic=CLASSIC,
)
VIEW = ConsumerGroupView(
    "g",
    state=ConsumerGroupState.RECONCILING,
    group_epoch=3,
    metadata_hash=-7,
    assignment_epoch=2,
    assignment_timestamp=50,
    subscription_type=SubscriptionType.HETEROGENEOUS,
    members=(MEMBER,),
    static_members=(("i", "m"),),
    target=(("m", (c.TopicPartitions(TOPIC, (0,)),)),),
    partition_epochs=((TOPIC, 0, 3),),
    regexes=(ResolvedRegex("t.*", ("t",), version=9, timestamp=11),),
    refresh_deadline=(99, 3),
    legacy_metadata=True,
)
HEARTBEAT = c.ConsumerGroupHeartbeatRequest(
    "g",
    member_id="m",
    member_epoch=0,
    rack_id="r",
    rebalance_timeout_ms=5,
    subscribed_topic_names=("t",),
    subscribed_topic_regex="t.*",
    server_assignor="uniform",
    topic_partitions=(c.TopicPartitions(TOPIC, (0,)),),
)
TASK = ev.TaskKey(ev.TaskKind.REGEX, "g")
EVENTS: tuple[ev.Event, ...] = (
    ev.TopicsChanged(0, (ev.Topic("t", TOPIC, 2, (frozenset({"b", "a", "c"}), frozenset())),), version=2**40),
    ev.Load(1, leader_epoch=1, records=RECORDS),
    ev.Request(
        2,
        id=1,
        version=1,
        client_id="c",
        client_host="/h",
        body=HEARTBEAT,
        denied=frozenset(),
        denied_topics=frozenset({"z", "y"}),
    ),
    ev.Request(2, id=2, version=1, client_id="c", client_host="/h", body=c.ConsumerGroupDescribeRequest(("g",))),
    ev.TaskDone(3, TASK, failed=True),
    ev.GroupConfigChanged(4, "g", ev.GroupConfig(consumer_session_timeout_ms=1, consumer_assignment_interval_ms=3)),
    ev.GroupConfigChanged(4, "g", None),
    ev.TimerFired(5, ev.TimerKey(ev.TimerKind.CONSUMER_REBALANCE, "g", "m")),
)
DESCRIBED = c.DescribedConsumerMember(
    "m",
    instance_id=None,
    rack_id=None,
    member_epoch=3,
    client_id="c",
    client_host="/h",
    subscribed_topic_names=("t",),
    subscribed_topic_regex=None,
    assignment=(c.NamedTopicPartitions(TOPIC, "t", (0,)),),
    target_assignment=(),
    member_type=1,
)
OBSERVATION = Observation(
    RECORDS,
    (
        ev.Reply(
            1,
            c.ConsumerGroupHeartbeatResponse(
                ErrorCode.NONE,
                member_id="m",
                member_epoch=3,
                heartbeat_interval_ms=5,
                assignment=(c.TopicPartitions(TOPIC, (0,)),),
            ),
        ),
        ev.Reply(
            2,
            c.ConsumerGroupDescribeResponse(
                (
                    c.DescribedConsumerGroup(
                        ErrorCode.NONE,
                        group_id="g",
                        group_state="Stable",
                        group_epoch=3,
                        assignment_epoch=3,
                        assignor_name="range",
                        members=(DESCRIBED,),
                    ),
                )
            ),
        ),
    ),
    {ev.TimerKey(ev.TimerKind.CONSUMER_SESSION, "g", "m"): 45_000},
    consumer_groups={"g": VIEW, "h": None},
    tasks=(TASK,),
)
TRACE = EventTrace(
    Settings(group_consumer_assignors=("range",), group_consumer_migration_policy=MigrationPolicy.DISABLED),
    KAFKA_4_3, EVENTS, (OBSERVATION, None, *(Observation() for _ in EVENTS[2:])),
)  # fmt: skip


def test_every_kind_of_record_has_a_value_to_try() -> None:
    assert set(VALUES) | {"GroupMetadata"} == set(KINDS)


def test_a_written_trace_is_read_back(tmp_path: Path) -> None:
    file = tmp_path / "t.jsonl"
    write_traces(file, [TRACE])
    assert list(read_traces(file)) == [TRACE]
    itf.write_itf(tmp_path / "t.itf.json", TRACE)
    assert itf.read_itf(tmp_path / "t.itf.json") == TRACE
    states = itf.to_itf(TRACE)["states"]
    held = [name for name, view in OBSERVATION.consumer_groups.items() if view is not None]
    assert [row[0] for row in states[-1]["consumer_groups"]["#map"]] == sorted(held) != []


def test_a_trace_has_one_text(tmp_path: Path) -> None:
    line_read = json.loads(convert.text_of(convert.line_of_event(EVENTS[0])))
    assert line_read["topics"][0]["racks"] == [["a", "b", "c"], []]
    assert json.loads(convert.text_of(convert.line_of_event(EVENTS[2])))["denied_topics"] == ["y", "z"]


def test_records_of_one_shape_are_distinguished() -> None:
    rows = json.loads(convert.text_of(convert.line_of_event(ev.Load(0, leader_epoch=1, records=RECORDS))))["records"]
    tombstones = [one for one in rows if one["value"] is None]
    assert [one.get("type", "GroupMetadata") for one in tombstones] == list(KINDS)
    assert convert.event_of_line(ln.parse_line(convert.text_of(convert.line_of_event(EVENTS[1])))) == EVENTS[1]


def test_a_record_without_a_type_is_group_metadata() -> None:
    line = ln.parse_line(
        '{"type": "load", "at_ms": 0, "leader_epoch": 1, "records": [{"key": {"group": "g"}, "value": null}]}'
    )
    assert convert.event_of_line(line) == ev.Load(0, leader_epoch=1, records=(Record(GroupMetadataKey("g"), None),))


@pytest.mark.parametrize(
    "record",
    [
        {"type": "Nonsense", "key": {"group": "g"}, "value": None},
        {"type": 3, "key": {"group": "g"}, "value": None},
        {"type": "ConsumerGroupMetadata", "key": {"group": "g", "member_id": "m"}, "value": None},
        {"type": "ConsumerGroupMemberMetadata", "key": {"group": "g"}, "value": None},
        {"type": "ConsumerGroupMetadata", "key": {"group": "g"}, "value": {"assignment_epoch": 1}},
        {"key": {"group": "g"}, "value": {"epoch": 1}},
    ],
)
def test_a_record_that_is_not_of_its_type_is_refused(record: object, tmp_path: Path) -> None:
    file = tmp_path / "t.jsonl"
    head = '{"type": "trace", "version": 1, "kind": "events"}\n'
    file.write_text(head + json.dumps({"type": "load", "at_ms": 0, "leader_epoch": 1, "records": [record]}) + "\n")
    (found,) = read_traces(file)
    assert isinstance(found, BrokenTrace)
    assert "records" in str(found)
