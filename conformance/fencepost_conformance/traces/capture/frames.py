"""Cuts the bytes of a connection into Kafka's frames, also behind bytes that the capture does not have.

Behind a loss, and in a connection whose beginning is not captured, nothing says where a frame begins. Clients and
brokers write whole frames, so one probably begins where a segment begins. It counts as one if it can be decoded: a
request as a request, an answer by the correlation id of a request.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from typing import Final

from kio.schema.index import api_key_map

from fencepost.wire.frames import (
    MAX_REQUEST_BYTES,
    MAX_RESPONSE_BYTES,
    MalformedFrame,
    is_tls,
    read_correlation_id,
    read_request,
    read_request_header,
)

from .streams import Connection, Half, Piece

_LENGTH: Final = 4


class Kind(Enum):
    KAFKA = "Kafka"
    TLS = "TLS"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Frame:
    """``number`` and ``at_ns``: packet and time at which it was complete."""

    number: int
    at_ns: int
    data: bytes


@dataclass(slots=True)
class Cut:
    """The frames of one direction. ``lost``: bytes that the capture does not have. ``skipped``: bytes at the beginning
    or behind a loss that belong to no frame. ``odd``: why the rest could not be cut."""

    frames: list[Frame] = field(default_factory=list)
    lost: int = 0
    skipped: int = 0
    odd: str = ""


@dataclass(slots=True)
class Exchanged:
    """The frames of a connection. ``requests`` and ``answers`` are empty unless it is Kafka's."""

    connection: Connection
    kind: Kind
    requests: Cut = field(default_factory=Cut)
    answers: Cut = field(default_factory=Cut)


def exchanged(connection: Connection) -> Exchanged:
    """Cut both directions of a connection. If its opening is not captured, the side that sends requests is the
    client."""
    client, server = connection.client, connection.server
    if any(_speaks_tls(half) for half in connection.halves.values()):
        return Exchanged(connection, Kind.TLS)
    for asks, answers in ((client, server),) if connection.opened else ((client, server), (server, client)):
        requests = _cut(connection.half(asks).pieces(), connection.half(asks).begun, _is_request, MAX_REQUEST_BYTES)
        if not requests.frames or not _is_header(requests.frames[0].data):
            continue
        connection.client, connection.server = asks, answers
        asked = {read_request_header(each.data).correlation_id for each in requests.frames if _is_header(each.data)}
        half = connection.half(answers)
        responses = _cut(half.pieces(), half.begun, partial(_answers, asked), MAX_RESPONSE_BYTES)
        return Exchanged(connection, Kind.KAFKA, requests, responses)
    return Exchanged(connection, Kind.OTHER)


def _speaks_tls(half: Half) -> bool:
    first = next(half.pieces(), None)
    return first is not None and is_tls(first.data)


def _is_header(frame: bytes) -> bool:
    try:
        return read_request_header(frame).api_key in api_key_map
    except MalformedFrame:
        return False


def _is_request(frame: bytes) -> bool:
    try:
        read_request(read_request_header(frame), frame)
    except MalformedFrame:
        return False
    return True


def _answers(asked: set[int], frame: bytes) -> bool:
    try:
        return read_correlation_id(frame) in asked
    except MalformedFrame:
        return False


def _cut(pieces: Iterable[Piece], begun: bool, fits: Callable[[bytes], bool], limit: int) -> Cut:
    cut = Cut()
    rest = bytearray()
    inside = begun
    for piece in pieces:
        if piece.lost:
            cut.lost += piece.lost
            cut.skipped += len(rest)
            rest, inside = bytearray(), False
        rest += piece.data
        if not inside:
            length = int.from_bytes(rest[:_LENGTH], "big")
            whole = bytes(rest[_LENGTH : _LENGTH + length])
            if not (0 < length == len(whole) and fits(whole)):
                cut.skipped += len(rest)
                rest.clear()
                continue
            inside = True
        while len(rest) >= _LENGTH:
            (length,) = struct.unpack_from(">i", rest)
            if not 0 <= length <= limit:
                cut.odd = f"the length of a frame must be between 0 and {limit} bytes (got {length})"
                return cut
            if len(rest) < _LENGTH + length:
                break
            cut.frames.append(Frame(piece.number, piece.at_ns, bytes(rest[_LENGTH : _LENGTH + length])))
            del rest[: _LENGTH + length]
    cut.skipped += len(rest)
    return cut
