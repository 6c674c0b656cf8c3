"""A field that the version of a request lacks must not be set: every request, every version, every field."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any, get_args, get_type_hints

import pytest

from fencepost import coordinator
from fencepost.protocol import consumer_messages as c
from fencepost.protocol import events as ev
from fencepost.protocol import messages as m
from fencepost.protocol import offset_messages as o
from fencepost.protocol.carried import ALONE, CARRIED, Row, uncarried
from fencepost.protocol.errors import IllegalEvent
from fencepost.protocol.profiles import INTENDED
from fencepost.protocol.settings import Settings
from fencepost.wire.convert import _NAMES
from fencepost.wire.frames import request_schema
from fencepost_conformance.generate.carried import as_carried

from .scene import FirstOf

LOADED, _ = coordinator.step(
    coordinator.initial_state(Settings(), INTENDED), ev.Load(0, leader_epoch=1, records=()), FirstOf()
)
TOPIC_ID = bytes(15) + b"\x01"
#: requests with every field that any version has
_COMMITS = (
    o.OffsetCommitRequestTopic(
        name="a",
        topic_id=TOPIC_ID,
        partitions=(o.OffsetCommitRequestPartition(0, committed_offset=5, committed_leader_epoch=3),),
    ),
)
FULL: tuple[m.RequestBody, ...] = (
    m.JoinGroupRequest(
        "g",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=20_000,
        member_id="m",
        group_instance_id="i",
        protocol_type="consumer",
        protocols=(m.Protocol("range", b""),),
        reason="why",
    ),
    m.SyncGroupRequest(
        "g", generation_id=1, member_id="m", group_instance_id="i", protocol_type="consumer", protocol_name="range"
    ),
    m.HeartbeatRequest("g", generation_id=1, member_id="m", group_instance_id="i"),
    m.LeaveGroupRequest("g", (m.LeaveGroupMember("m", group_instance_id="i", reason="why"),)),
    m.DescribeGroupsRequest(("g",)),
    m.ListGroupsRequest(states_filter=("Stable",), types_filter=("classic",)),
    m.DeleteGroupsRequest(("g",)),
    c.ConsumerGroupHeartbeatRequest("g", member_id="m", member_epoch=0, subscribed_topic_regex="a.*"),
    c.ConsumerGroupDescribeRequest(("g",)),
    o.OffsetCommitRequest("g", group_instance_id="i", retention_time_ms=5, topics=_COMMITS),
    o.OffsetFetchRequest(
        (
            o.OffsetFetchRequestGroup(
                "g",
                member_id="m",
                member_epoch=2,
                topics=(o.OffsetFetchRequestTopic(name="a", topic_id=TOPIC_ID, partition_indexes=(0,)),),
            ),
        ),
        require_stable=True,
    ),
    o.OffsetDeleteRequest("g", (o.OffsetDeleteRequestTopic(name="a", partition_indexes=(0,)),)),
    o.TxnOffsetCommitRequest(
        "g",
        transactional_id="t",
        producer_id=1,
        producer_epoch=0,
        generation_id=1,
        member_id="m",
        group_instance_id="i",
        topics=_COMMITS,
    ),
    o.WriteTxnMarkerRequest(
        producer_id=1, producer_epoch=0, coordinator_epoch=0, committed=True, transaction_version=2
    ),
)
VERSIONS = [
    (body, version) for body in FULL for version in range(m.VERSIONS[type(body)][0], m.VERSIONS[type(body)][1] + 1)
]


def _row_class(hint: Any) -> Any:
    return next((each for part in (hint, *get_args(hint)) for each in get_args(part) if is_dataclass(each)), None)


def _each_set(value: Any, full: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Return ``value`` with one of its fields, or one field of its rows, as in ``full``."""
    for field in fields(value):
        mine, theirs = getattr(value, field.name), getattr(full, field.name)
        if isinstance(theirs, tuple) and theirs and is_dataclass(theirs[0]):
            for name, row in _each_set(mine[0], theirs[0], f"{path}.{field.name}[0]"):
                yield name, replace(value, **{field.name: (row,)})
        elif mine != theirs:
            yield f"{path}.{field.name}", replace(value, **{field.name: theirs})


def _asked(version: int, body: m.RequestBody) -> ev.Request:
    return ev.Request(0, id=1, version=version, client_id="c", client_host="/h", body=body)


def test_every_request_is_here() -> None:
    assert [type(body) for body in FULL] == list(m.VERSIONS)


@pytest.mark.parametrize(("body", "version"), VERSIONS, ids=lambda x: x if isinstance(x, int) else type(x).__name__)
def test_one_field_too_many_is_refused(body: m.RequestBody, version: int) -> None:
    """Fields of the version are accepted; each other field is rejected by name."""
    allowed = as_carried(body, version)
    coordinator.step(LOADED, _asked(version, allowed), FirstOf())
    for path, wrong in _each_set(allowed, body):
        with pytest.raises(IllegalEvent) as refused:
            coordinator.step(LOADED, _asked(version, wrong), FirstOf())
        assert f"{type(body).__name__}{path} must be" in str(refused.value)
        assert f"in version {version}, which does not carry it (got " in str(refused.value)


def _carried(kind: Any, schema: Any, api: type, version: int) -> Iterator[tuple[str, bool, bool]]:
    """Return, for each field of a request, whether kio's class of that version has it, and whether the table says
    so."""
    there = {field.name: field for field in fields(schema)}
    hints = get_type_hints(schema)
    table = CARRIED.get(kind if kind is api else Row(api, kind), {})
    for field in fields(kind):
        name = field.name.removesuffix("_ms")
        row = table.get(field.name)
        yield field.name, name in there, row is None or row.first <= version <= row.last
        inner = _row_class(get_type_hints(kind)[field.name])
        if inner is not None and name in there:
            yield from _carried(inner, _row_class(hints[name]), api, version)


@pytest.mark.parametrize(("body", "version"), VERSIONS, ids=lambda x: x if isinstance(x, int) else type(x).__name__)
def test_the_versions_match_kafkas_messages(body: m.RequestBody, version: int) -> None:
    """The table agrees with kio's classes, which are generated from Kafka's message definitions. Markers, which the
    host splits, and requests about one group or member (G-WIRE-06, G-WIRE-23) have other shapes there."""
    kind = type(body)
    alone = ALONE.get(kind)
    if kind in (o.WriteTxnMarkerRequest, o.OffsetDeleteRequest) or (alone is not None and version <= alone.last):
        return
    for name, there, said in _carried(kind, request_schema(_NAMES[kind], version), kind, version):
        assert there == said, name


@pytest.mark.parametrize("count", [0, 2])
def test_before_there_were_several_there_was_one(count: int) -> None:
    """G-WIRE-06, G-WIRE-23."""
    leaves = m.LeaveGroupRequest("g", (m.LeaveGroupMember("m"),) * count)
    fetches = o.OffsetFetchRequest((o.OffsetFetchRequestGroup("g", topics=()),) * count)
    for body, last in ((leaves, 2), (fetches, 7)):
        with pytest.raises(IllegalEvent, match=rf"must be one row in version {last} \(got {count}\)"):
            coordinator.step(LOADED, _asked(last, body), FirstOf())
        coordinator.step(LOADED, _asked(last + 1, body), FirstOf())


def test_the_first_fetch_cannot_ask_for_all() -> None:
    """O-FETCH-08."""
    everything = o.OffsetFetchRequest((o.OffsetFetchRequestGroup("g"),))
    assert "topics must not be None before version 2" in (uncarried(everything, 1) or "")
    assert uncarried(everything, 2) is None
