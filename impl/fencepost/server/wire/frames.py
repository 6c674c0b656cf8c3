"""Frames of the Kafka protocol: four bytes of length, then a header, then a message.

A frame is handled as the bytes after its length. Only what a proxy must know is read here: enough of the header to name
the API, and the message of the APIs that somebody asked for.
"""

from __future__ import annotations

import asyncio
import struct
from dataclasses import dataclass
from errno import ETIMEDOUT
from functools import cache
from io import BytesIO
from typing import Any

from kio.index import KioIndexError, load_entity_schema
from kio.schema.index import api_key_map, schema_name_map
from kio.serial import entity_writer
from kio.static.constants import EntityType

from .later import LATER
from .read import BadBytes, OddCode, reader

#: Kafka's default ``socket.request.max.bytes``; answers may be larger, by what one fetch returns.
MAX_REQUEST_BYTES = 100 * 1024 * 1024
MAX_RESPONSE_BYTES = 2**31 - 1

#: seconds for which a peer may keep a caller waiting: to take a connection, and to answer what is answered at once
CONNECT_S = 10.0
ASK_S = 10.0

API_KEYS = {name: key for key, name in api_key_map.items()}


class MalformedFrame(Exception):
    """The peer does not speak the Kafka protocol, or not a version of it that is known here."""


class NoAnswer(MalformedFrame):
    """The peer took a request and did not answer it in time."""


class UnknownErrorCode(MalformedFrame):
    """An answer that is whole, but has an error ``code`` that Kafka does not have."""

    def __init__(self, text: str, code: int) -> None:
        super().__init__(text)
        self.code = code


@dataclass(frozen=True, slots=True)
class RequestHeader:
    """What a request says before its message; ``client_id`` may be null."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None

    @property
    def api(self) -> str:
        """kio's name of the API, such as ``join_group``; ``api_<key>`` when unknown."""
        return api_key_map.get(self.api_key, f"api_{self.api_key}")


#: How a handshake of TLS and an alert begin, which would be frames of more than 340 MiB.
_TLS = (0x1603, 0x1503)
SPEAKS_TLS = "the peer speaks TLS"


async def read_frame(reader: asyncio.StreamReader, limit: int) -> bytes | None:
    """The next frame, or None at the end of the stream between two frames.

    Raises MalformedFrame for an impossible length or a stream that ends inside a frame.
    """
    try:
        (length,) = struct.unpack(">i", await reader.readexactly(4))
        if length >> 16 in _TLS:
            raise MalformedFrame(SPEAKS_TLS)
        if not 0 <= length <= limit:
            raise MalformedFrame(f"a frame of {length} bytes is announced; at most {limit} are allowed")
        return await reader.readexactly(length)
    except asyncio.IncompleteReadError as end:
        if end.partial or end.expected != 4:
            raise MalformedFrame("the connection ends inside a frame") from None
        return None


async def connect(host: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection. Raises ``OSError``, also if there is none within ``CONNECT_S``."""
    try:
        return await asyncio.wait_for(asyncio.open_connection(host, port), CONNECT_S)
    except TimeoutError as late:
        raise TimeoutError(late.errno or ETIMEDOUT, f"no connection within {CONNECT_S:g} s") from None


async def read_answer(reader: asyncio.StreamReader, api: str, within_s: float) -> bytes | None:
    """As ``read_frame``, of a peer that was asked something. Raises ``NoAnswer`` if nothing comes in time."""
    try:
        return await asyncio.wait_for(read_frame(reader, MAX_RESPONSE_BYTES), within_s)
    except TimeoutError:
        raise NoAnswer(f"no answer to {api} within {within_s:g} s") from None


async def close(writer: asyncio.StreamWriter) -> None:
    """Close a connection once what was written is sent; a peer that does not take it within a second loses it."""
    writer.close()
    try:
        await asyncio.wait_for(writer.wait_closed(), 1)
    except TimeoutError:
        writer.transport.abort()
    except OSError:
        pass  # the peer was quicker


def framed(payload: bytes) -> bytes:
    """With its length before it."""
    return struct.pack(">i", len(payload)) + payload


def read_request_header(frame: bytes) -> RequestHeader:
    """Header versions 1 and 2 begin alike; raises MalformedFrame."""
    try:
        key, version, correlation, length = struct.unpack_from(">hhih", frame)
        if length < -1 or 10 + length > len(frame):
            raise MalformedFrame(f"the client id is said to have {length} bytes")
        client_id = None if length == -1 else frame[10 : 10 + length].decode()
    except (struct.error, UnicodeDecodeError) as error:
        raise MalformedFrame(f"no request header: {error}") from None
    return RequestHeader(key, version, correlation, client_id)


def read_correlation_id(frame: bytes) -> int:
    """Which request a response answers; raises MalformedFrame."""
    if len(frame) < 4:
        raise MalformedFrame("no response header")
    correlation: int = struct.unpack_from(">i", frame)[0]
    return correlation


def highest_version(api: str) -> int:
    """The highest version of an API that kio can decode."""
    return max(schema_name_map[api])


@cache
def _schema(api: str, version: int, kind: Any) -> Any:
    if (later := LATER.get((api, version, kind))) is not None:
        return later
    try:
        return load_entity_schema(api, version, kind)
    except KioIndexError:
        raise MalformedFrame(f"{api} has no version {version} that is known here") from None


def request_schema(api: str, version: int) -> Any:
    """kio's class of a request; raises MalformedFrame for a version that nobody knows."""
    return _schema(api, version, EntityType.request)


def _read(schema: Any, frame: bytes, offset: int) -> tuple[Any, int]:
    try:
        return reader(schema)(frame, offset, len(frame))
    except OddCode as odd:
        raise UnknownErrorCode(f"{schema.__name__}: {odd}", odd.code) from None
    except BadBytes as error:
        raise MalformedFrame(f"{schema.__name__}: {error}") from None


def response_schema(api: str, version: int) -> Any:
    """kio's class of a response; raises MalformedFrame for a version that nobody knows."""
    return _schema(api, version, EntityType.response)


def warm(api: str, version: int) -> None:
    """Make what reads its requests and writes its responses; raises MalformedFrame for a version that nobody knows."""
    reader(_schema(api, version, EntityType.request))
    entity_writer(_schema(api, version, EntityType.response))


def read_request(header: RequestHeader, frame: bytes) -> Any:
    """The request as kio's entity of that version; raises MalformedFrame."""
    schema = _schema(header.api, header.api_version, EntityType.request)
    _, at = _read(schema.__header_schema__, frame, 0)
    return _read(schema, frame, at)[0]


def read_response(api: str, version: int, frame: bytes) -> Any:
    """The response as kio's entity of that version; raises MalformedFrame."""
    schema = _schema(api, version, EntityType.response)
    _, at = _read(schema.__header_schema__, frame, 0)
    return _read(schema, frame, at)[0]


def write_request(header: RequestHeader, entity: Any) -> bytes:
    """A request, without its length."""
    head_schema = entity.__header_schema__
    buffer = BytesIO()
    fields: dict[str, Any] = {
        "request_api_key": header.api_key,
        "request_api_version": header.api_version,
        "correlation_id": header.correlation_id,
        "client_id": header.client_id,
    }
    entity_writer(head_schema)(buffer, head_schema(**fields))
    entity_writer(type(entity))(buffer, entity)
    return buffer.getvalue()


def write_response(correlation_id: int, entity: Any) -> bytes:
    """A response, without its length."""
    head_schema = entity.__header_schema__
    buffer = BytesIO()
    entity_writer(head_schema)(buffer, head_schema(correlation_id=correlation_id))
    entity_writer(type(entity))(buffer, entity)
    return buffer.getvalue()
