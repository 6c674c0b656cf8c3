"""Invalid and unusual frames: wrong lengths, headers and messages."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final

from .script import RAW, Move
from .world import World

_HEARTBEAT, _API_VERSIONS, _METADATA = 12, 18, 3
_CLIENT: Final = b"beside"
#: of a member that no group has
_BODY: Final = b"\0\x01g\0\0\0\x03\0\x01m"
#: Kafka's default ``socket.request.max.bytes``
_MOST: Final = 100 * 1024 * 1024
_LENGTHS: Final = (-1, -(2**31), 2**31 - 1, _MOST + 1, 0)


def _request(
    key: int = _HEARTBEAT,
    version: int = 0,
    client: bytes | None = _CLIENT,
    length: int | None = None,
    body: bytes = _BODY,
) -> bytes:
    said = (-1 if client is None else len(client)) if length is None else length
    return struct.pack(">hhih", key, version, 7, said) + (client or b"") + body


def frame(world: World) -> Iterator[Move]:
    """Draw an invalid frame, or a valid one of an unusual form."""
    good = _request()
    choices = (
        *(struct.pack(">i", length) + good for length in _LENGTHS),
        _framed(b""),
        _framed(good[: world.rng.randrange(1, 10)]),
        _framed(good[: world.rng.randrange(10, len(good))]),
        _framed(good + b"\0"),
        _framed(good + bytes(world.rng.randrange(2, 30))),
        _framed(_request(key=world.choice((999, -1, 2**15 - 1)))),
        _framed(_request(version=world.choice((-1, 99, 2**15 - 1)))),
        _framed(_request(_API_VERSIONS, world.choice((-1, 99)), body=b"")),
        _framed(_request(_METADATA, 99, body=b"")),
        _framed(_request(client=None)),
        _framed(_request(client=b"")),
        _framed(_request(client=b"\xff\xfe")),
        _framed(_request(client="grüße".encode())),
        _framed(_request(length=world.choice((-2, -(2**15), 2**15 - 1)))),
        _framed(_request(body=b"\xff\xff\0\0\0\x03\0\x01m")),
        _framed(_request(body=b"\0\x01\xff\0\0\0\x03\0\x01m")),
    )
    yield Move(RAW, 0, {"data": world.choice(choices)})


def _framed(data: bytes) -> bytes:
    return struct.pack(">i", len(data)) + data


MOVES: Final = ((frame, 1),)
