"""Frames for a server that no client would send: random bytes; real frames that are cut, mutated, mislabelled or of
wrong length; arrays that announce more elements than they have; decompression bombs in batches."""

from __future__ import annotations

import random
import struct
import zlib
from collections.abc import Iterator
from functools import cache
from typing import Any

from kio.index import load_entity_schema
from kio.static.constants import EntityType

from fencepost.wire import frames
from fencepost.wire.fill import fill
from fencepost.wire.frames import RequestHeader
from fencepost.wire.later import LATER
from fencepost.wire.shape import Field, shape
from fencepost_server.apis.table import TABLE
from fencepost_server.data.batches import marker

#: values of a fuzzer in place of a client's own
GROUPS = ("g0", "g1", "g2", "", "x" * 300)
TOPICS = ("orders", "other", "", "..", "a/b")
MEMBERS = ("", "m0", "m1")
NUMBERS = (0, 1, 2, 3, -1, -2, 5, 100, 6_000, 45_000, 2**15 - 1)
PLAIN = "orders"


@cache
def requests() -> tuple[tuple[str, int, Any], ...]:
    """Return every API in every version that is served, with kio's class of its request."""
    return tuple(
        (api.name, version, LATER.get((api.name, version, EntityType.request)))
        for api in TABLE.values()
        for version in range(max(api.low, api.least), api.high + 1)
    )


def batch(draw: random.Random) -> bytes:
    """Return the bytes of a batch: right, wrong, or a decompression bomb."""
    kind = draw.randrange(6)
    if kind == 0:
        return draw.randbytes(draw.randrange(200))
    if kind == 1:
        bomb = bytearray(marker(1, 0, committed=True, coordinator_epoch=0, at_ms=1).data[:61])
        bomb += zlib.compress(bytes(1 << 20))
        struct.pack_into(">i", bomb, 8, len(bomb) - 12)
        struct.pack_into(">h", bomb, 21, 1)
        return _checked(bomb)
    good = bytearray(marker(1, 0, committed=True, coordinator_epoch=0, at_ms=1).data)
    struct.pack_into(">h", good, 21, 0 if kind < 4 else draw.randrange(64))
    if kind == 5:
        good[draw.randrange(len(good))] ^= 1 << draw.randrange(8)
        return bytes(good)
    struct.pack_into(">qhi", good, 43, draw.choice((-1, 0, 7)), 0, draw.choice((-1, 0, 1)))
    return _checked(good)


def _checked(data: bytearray) -> bytes:
    import crc32c  # noqa: PLC0415  # with the extra

    struct.pack_into(">I", data, 17, crc32c.crc32c(bytes(data[21:])))
    return bytes(data)


def value(field: Field, draw: random.Random, depth: int = 0) -> Any:
    """Return a value for a field, close to a client's value."""
    if field.array:
        if field.optional and draw.random() < 0.2:
            return None
        return [one(field, draw, depth) for _ in range(draw.choice((0, 1, 1, 2)) if depth < 4 else 0)]
    return None if field.optional and draw.random() < 0.3 else one(field, draw, depth)


def one(field: Field, draw: random.Random, depth: int) -> Any:
    if field.entity is not None:
        return {each.name: value(each, draw, depth + 1) for each in shape(field.entity)}
    name = field.name
    match field.kafka_type:
        case "string":
            if "group" in name and "instance" not in name:
                return draw.choice(GROUPS)
            if "topic" in name or name == "name":
                return draw.choice(TOPICS)
            return draw.choice(MEMBERS) if "member" in name else draw.choice(("", "consumer", "range", "a" * 40))
        case "records":
            return batch(draw)
        case "bytes":
            return draw.randbytes(draw.randrange(40))
        case "uuid":
            return draw.choice((bytes(16), b"\x01" * 16))
        case "bool":
            return draw.random() < 0.5
        case "int8":
            return draw.choice((-1, 0, 1, 2, 32))
        case "int16" | "error_code":
            return draw.choice((-1, 0, 1, 2))
        case "datetime_i64":
            return 1_700_000_000_000
        case "int64":
            return draw.choice((*NUMBERS, 2**62, -(2**62)))
        case _:
            return draw.choice(NUMBERS)


def real(draw: random.Random) -> bytes:
    """Return a valid request."""
    api, version, later = draw.choice(requests())
    schema = later or load_entity_schema(api, version, EntityType.request)
    entity = fill(schema, {field.name: value(field, draw) for field in shape(schema)})
    return frames.write_request(RequestHeader(frames.API_KEYS[api], version, draw.randrange(100), "fuzz"), entity)


def bad(draw: random.Random, frame: bytearray) -> bytes:
    """Return that frame without its length, with an error in it; sometimes unchanged."""
    kind = draw.randrange(10)
    if kind == 0:
        return draw.randbytes(draw.randrange(120))
    if kind == 1:
        return bytes(frame[: draw.randrange(len(frame))])
    if kind == 2:
        struct.pack_into(">h", frame, 2, draw.randrange(-3, 30))
    elif kind == 3:
        struct.pack_into(">h", frame, 0, draw.choice((*TABLE, 4, 5, 99, -1)))
    elif kind == 4:
        at = draw.randrange(8, len(frame))
        frame[at : at + 4] = draw.choice((b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff\x0f", b"\x80\x00\x00\x00"))
    elif kind == 5:
        frame += draw.randbytes(draw.randrange(1, 30))
    elif kind in (6, 7):
        for _ in range(draw.choice((1, 2, 5))):
            frame[draw.randrange(len(frame))] = draw.randrange(256)
    elif kind == 8:
        at = draw.randrange(8, len(frame))
        del frame[at : at + draw.randrange(1, 6)]
    return bytes(frame)


def bad_frames(seed: int, count: int) -> Iterator[bytes]:
    """Return so many frames; a seed gives the same frames everywhere."""
    draw = random.Random(seed)
    pool: list[bytes] = []
    for at in range(count):
        if at % 40_000 == 0:
            pool = [real(draw) for _ in range(min(4_000, count))]
        yield bad(draw, bytearray(draw.choice(pool)))
