"""Messages in bytes: every served version can be written and read, also by kio's own reader; wrong lengths are found
before memory is allocated for them."""

from __future__ import annotations

import random
from typing import Any

import pytest
from kio.index import load_entity_schema
from kio.serial import entity_reader
from kio.static.constants import EntityType

from fencepost.protocol import messages as m
from fencepost.protocol import offset_messages as o
from fencepost.protocol.errors import ErrorCode
from fencepost.wire import frames
from fencepost.wire.convert import to_request, to_response
from fencepost.wire.fill import fill
from fencepost.wire.frames import MalformedFrame, RequestHeader
from fencepost.wire.later import LATER
from fencepost.wire.read import BadBytes, reader
from fencepost.wire.shape import Field, shape
from fencepost_server.apis.table import TABLE

VERSIONS = [
    (api.name, version, kind)
    for api in TABLE.values()
    for version in range(max(api.low, api.least), api.high + 1)
    for kind in (EntityType.request, EntityType.response)
]


def schema_of(api: str, version: int, kind: EntityType) -> Any:
    return LATER.get((api, version, kind)) or load_entity_schema(api, version, kind)


def some_value(field: Field, draw: random.Random) -> Any:
    if field.array:
        return [_one(field, draw) for _ in range(draw.randrange(3))]
    return None if field.optional and draw.random() < 0.3 else _one(field, draw)


def _one(field: Field, draw: random.Random) -> Any:
    if field.entity is not None:
        return {each.name: some_value(each, draw) for each in shape(field.entity)}
    match field.kafka_type:
        case "string":
            return "ä" * draw.randrange(5)
        case "bytes" | "records":
            return bytes(draw.randrange(5))
        case "uuid":
            return bytes([7]) * 16
        case "bool":
            return draw.random() < 0.5
        case "datetime_i64":
            return 1_700_000_000_000
        case _:
            return draw.randrange(100)


def test_every_message_that_is_served_is_read_as_kio_reads_it() -> None:
    draw = random.Random(13)
    for api, version, kind in VERSIONS:
        schema = schema_of(api, version, kind)
        for _ in range(3):
            entity = fill(schema, {field.name: some_value(field, draw) for field in shape(schema)})
            if kind is EntityType.request:
                header = RequestHeader(frames.API_KEYS[api], version, 5, "c")
                frame = frames.write_request(header, entity)
                assert frames.read_request(header, frame) == entity, (api, version)
            else:
                frame = frames.write_response(5, entity)
                assert frames.read_response(api, version, frame) == entity, (api, version)
            _, at = reader(schema.__header_schema__)(frame, 0, len(frame))
            mine, end = reader(schema)(frame, at, len(frame))
            theirs, size = entity_reader(schema)(frame, at)
            assert (mine, end - at) == (theirs, size), (api, version)
            assert end == len(frame)


def test_omitted_fields_have_kafkas_defaults() -> None:
    for api, version, kind in VERSIONS:
        entity = fill(schema_of(api, version, kind), {})
        if kind is EntityType.response:
            assert frames.read_response(api, version, frames.write_response(1, entity)) == entity


@pytest.mark.parametrize(
    ("api", "version", "frame"),
    [
        ("metadata", 1, b"\x7f\xff\xff\xff"),
        ("metadata", 9, b"\xff\xff\xff\xff\x0f"),
        ("delete_groups", 0, b"\x7f\xff\xff\xff"),
        ("offset_delete", 0, b"\x00\x01a\x7f\xff\xff\xff" + bytes(1000)),
        ("list_groups", 5, b"\x01\x01\xff\xff\xff\xff\x0f" + bytes(100)),
        ("join_group", 0, b"\x00\x01g" + bytes(4) + b"\x00\x00\x00\x00\x7f\xff\xff\xff"),
    ],
)
def test_an_array_that_does_not_fit_its_frame_is_refused_before_it_is_allocated(
    api: str, version: int, frame: bytes
) -> None:
    with pytest.raises(BadBytes, match=r"bytes are left|does not end"):
        reader(load_entity_schema(api, version, EntityType.request))(frame, 0, len(frame))


def test_no_message_that_is_cut_short_is_read() -> None:
    draw = random.Random(14)
    for api, version, kind in VERSIONS:
        if kind is EntityType.request:
            schema = schema_of(api, version, kind)
            entity = fill(schema, {field.name: some_value(field, draw) for field in shape(schema)})
            header = RequestHeader(frames.API_KEYS[api], version, 5, "c")
            frame = frames.write_request(header, entity)
            for size in range(11, len(frame)):
                with pytest.raises(MalformedFrame):
                    frames.read_request(header, frame[:size])


def test_an_unknown_tagged_field_is_passed_over() -> None:
    header = RequestHeader(frames.API_KEYS["heartbeat"], 4, 5, "c")
    entity = fill(load_entity_schema("heartbeat", 4, EntityType.request), {"group_id": "g", "member_id": "m"})
    frame = frames.write_request(header, entity)
    assert frame.endswith(b"\x00")
    tagged = frame[:-1] + b"\x01\x63\x03abc"
    assert frames.read_request(header, tagged) == entity


def test_a_fetch_of_one_group_is_one_of_several() -> None:
    schema = load_entity_schema("offset_fetch", 7, EntityType.request)
    entity = fill(
        schema, {"group_id": "g", "topics": [{"name": "t", "partition_indexes": (0, 2)}], "require_stable": True}
    )
    assert to_request("offset_fetch", entity) == o.OffsetFetchRequest(
        (o.OffsetFetchRequestGroup("g", topics=(o.OffsetFetchRequestTopic(name="t", partition_indexes=(0, 2)),)),),
        require_stable=True,
    )


def test_answers_of_the_core_survive_the_wire() -> None:
    answer = m.JoinGroupResponse(
        ErrorCode.NONE,
        generation_id=3,
        protocol_type="consumer",
        protocol_name="range",
        leader="a",
        member_id="a",
        members=(m.JoinGroupMember("a", group_instance_id=None, metadata=b"x"),),
    )
    entity = fill(load_entity_schema("join_group", 9, EntityType.response), answer)
    assert to_response("join_group", entity) == answer
    commit = o.OffsetCommitResponse(
        (
            o.OffsetCommitResponseTopic(
                topic_id=bytes([3]) * 16, partitions=(o.OffsetCommitResponsePartition(1, ErrorCode.UNKNOWN_TOPIC_ID),)
            ),
        )
    )
    assert to_response("offset_commit", fill(load_entity_schema("offset_commit", 10, EntityType.response), commit)) == (
        commit
    )
