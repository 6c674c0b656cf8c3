"""The flat readers and writers of frequent messages equal kio's classes, byte for byte, and reject every frame that
those reject."""

from __future__ import annotations

import random
import types
from dataclasses import fields, is_dataclass, replace
from typing import Any, get_args, get_origin, get_type_hints

import pytest
from kio.static.constants import EntityType

from fencepost.protocol import messages as m
from fencepost.protocol.errors import ErrorCode
from fencepost.wire import frames
from fencepost.wire.convert import GROUP_APIS, OFFSET_APIS, to_request
from fencepost.wire.fill import fill
from fencepost.wire.flat import GIVES_UP, body_reader, body_writer
from fencepost.wire.frames import MalformedFrame, RequestHeader
from fencepost.wire.shape import shape
from fencepost_server.apis.table import TABLE

from .test_wire import schema_of, some_value

CLASSES = {**GROUP_APIS, **OFFSET_APIS}
VERSIONS = [
    (api.name, version)
    for api in TABLE.values()
    if api.name in CLASSES
    for version in range(max(api.low, api.least), api.high + 1)
]


def request(api: str, version: int, draw: random.Random) -> tuple[RequestHeader, bytes, int]:
    """Return a random request, with the place behind its header."""
    schema = schema_of(api, version, EntityType.request)
    entity = fill(schema, {field.name: some_value(field, draw) for field in shape(schema)})
    header = RequestHeader(frames.API_KEYS[api], version, 5, "c")
    return header, frames.write_request(header, entity), 11 + schema.__flexible__


def the_other_way(header: RequestHeader, frame: bytes) -> Any:
    try:
        return to_request(header.api, frames.read_request(header, frame))
    except MalformedFrame:
        return MalformedFrame


def drawn(hint: Any, draw: random.Random, name: str = "") -> Any:
    """Return a value of that type."""
    if get_origin(hint) in {types.UnionType, None} and types.NoneType in get_args(hint):
        hint = get_args(hint)[0] if draw.random() < 0.7 else None
    if hint is None:
        return None
    if get_origin(hint) is tuple:
        item = get_args(hint)[0]
        return tuple(drawn(item, draw) for _ in range(draw.randrange(3) if is_dataclass(item) else 200))
    if is_dataclass(hint):
        hints = get_type_hints(hint)
        return hint(**{field.name: drawn(hints[field.name], draw, field.name) for field in fields(hint)})  # type: ignore[operator]
    if hint is ErrorCode:
        return draw.choice(list(ErrorCode))
    if hint is str:
        return "aä€"[draw.randrange(3)] * draw.choice((0, 3, 130, 2_500))
    if hint is bytes:
        return draw.randbytes(16) if name == "topic_id" else bytes(draw.choice((0, 5, 200)))
    return draw.random() < 0.5 if hint is bool else draw.randrange(-1, 1_000)


def test_frequent_requests_have_a_flat_reader_and_writer() -> None:
    for api, version in VERSIONS:
        if api in {"join_group", "sync_group", "heartbeat", "consumer_group_heartbeat", "offset_commit"}:
            assert body_reader(api, version) is not None, (api, version)
            assert body_writer(api, version, CLASSES[api][1]) is not None, (api, version)


def test_flat_reading_gives_the_same() -> None:
    draw = random.Random(21)
    for api, version in VERSIONS:
        read = body_reader(api, version)
        if read is None:
            continue
        for _ in range(8):
            header, frame, at = request(api, version, draw)
            assert read(frame, at) == the_other_way(header, frame), (api, version)


def test_flat_reading_takes_nothing_that_the_other_way_refuses() -> None:
    draw = random.Random(22)
    taken = refused = 0
    for api, version in VERSIONS * 3:
        read = body_reader(api, version)
        if read is None:
            continue
        for _ in range(12):
            header, frame, at = request(api, version, draw)
            place = draw.randrange(at, len(frame)) if len(frame) > at else at
            match draw.randrange(3):
                case 0:
                    frame = frame[:place]
                case 1:
                    frame = frame[:place] + draw.randbytes(1) + frame[place + 1 :]
                case _:
                    frame = frame[:place] + draw.choice((b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff")) + frame[place:]
            try:
                found = read(frame, at)
            except GIVES_UP:
                refused += 1
                continue
            taken += 1
            assert found == the_other_way(header, frame), (api, version, frame)
    assert taken > 100
    assert refused > 100


@pytest.mark.parametrize(("api", "version"), VERSIONS)
def test_flat_writing_gives_the_same_bytes(api: str, version: int) -> None:
    draw = random.Random(version)
    schema = schema_of(api, version, EntityType.response)
    kind = CLASSES[api][1]
    write = body_writer(api, version, kind)
    for _ in range(4):
        values = drawn(kind, draw)
        if write is None:
            continue
        try:
            expected = frames.write_response(7, fill(schema, values))
        except Exception:  # null where this version lacks the field
            with pytest.raises(GIVES_UP):
                write(values, 7)
            continue
        assert write(values, 7) == expected


def test_a_group_that_is_answered_alone_is_written_flat() -> None:
    """OffsetFetch before v8 is answered with the only group."""
    answer = m.OffsetFetchResponse(())
    group = drawn(get_args(get_type_hints(type(answer))["groups"])[0], random.Random(3))
    schema = schema_of("offset_fetch", 5, EntityType.response)
    write = body_writer("offset_fetch", 5, type(group))
    assert write is not None
    assert write(group, 1) == frames.write_response(1, fill(schema, group))


def test_text_that_is_not_utf_8_is_left_to_the_general_reader() -> None:
    header = RequestHeader(12, 4, 1, "c")
    schema = schema_of("heartbeat", 4, EntityType.request)
    frame = frames.write_request(header, fill(schema, {"group_id": "ggg", "member_id": "m"}))
    read = body_reader("heartbeat", 4)
    assert read is not None
    odd = frame.replace(b"ggg", b"g\xffg")
    with pytest.raises(GIVES_UP):
        read(odd, 12)
    assert replace(the_other_way(header, odd), group_id="ggg") == read(frame, 12)


def test_an_error_that_kafka_does_not_have_is_an_unknown_one() -> None:
    answer: Any = m.HeartbeatResponse(9_999)  # type: ignore[arg-type]
    write = body_writer("heartbeat", 4, m.HeartbeatResponse)
    assert write is not None
    schema = schema_of("heartbeat", 4, EntityType.response)
    assert write(answer, 1) == frames.write_response(1, fill(schema, answer))
