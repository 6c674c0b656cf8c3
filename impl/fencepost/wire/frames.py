"""Frames of the Kafka protocol: four bytes of length, then a header, then a message.

Here a frame is the bytes after the length. A caller can read the header alone, as a proxy does, or the whole message.
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

from fencepost.wire.later import LATER
from fencepost.wire.read import BadBytes, OddCode, reader

#: Kafka's default ``socket.request.max.bytes``; answers may be larger, by what one fetch returns.
MAX_REQUEST_BYTES = 100 * 1024 * 1024
MAX_RESPONSE_BYTES = 2**31 - 1

#: time limits in seconds: to connect, and for the answer to a request that the peer answers immediately
CONNECT_S = 10.0
ASK_S = 10.0

API_KEYS = {name: key for key, name in api_key_map.items()}


class MalformedFrame(Exception):
    """The peer does not speak the Kafka protocol, or uses a version that is not supported."""


class NoAnswer(MalformedFrame):
    """The peer accepted a request and did not answer it in time."""


class UnknownErrorCode(MalformedFrame):
    """An answer is complete, but has an error ``code`` that Kafka does not have."""

    def __init__(self, text: str, code: int) -> None:
        super().__init__(text)
        self.code = code


@dataclass(frozen=True, slots=True)
class RequestHeader:
    """The header of a request; ``client_id`` may be null."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None

    @property
    def api(self) -> str:
        """kio's name of the API, such as ``join_group``; ``api_<key>`` if it is unknown."""
        return api_key_map.get(self.api_key, f"api_{self.api_key}")


#: The first bytes of a TLS handshake and of a TLS alert; as lengths they would be more than 340 MiB.
_TLS = (0x1603, 0x1503)
SPEAKS_TLS = "the peer speaks TLS"


def is_tls(start: bytes) -> bool:
    """Whether a stream that begins so is encrypted by TLS."""
    return int.from_bytes(start[:2], "big") in _TLS


async def read_frame(reader: asyncio.StreamReader, limit: int) -> bytes | None:
    """Return the next frame; None if the stream ends between two frames.

    Raises MalformedFrame for an invalid length, or if the stream ends inside a frame.
    """
    try:
        (length,) = struct.unpack(">i", await reader.readexactly(4))
        if length >> 16 in _TLS:
            raise MalformedFrame(SPEAKS_TLS)
        if not 0 <= length <= limit:
            raise MalformedFrame(f"the length of a frame must be between 0 and {limit} bytes (got {length})")
        return await reader.readexactly(length)
    except asyncio.IncompleteReadError as end:
        if end.partial or end.expected != 4:
            raise MalformedFrame("the connection ends inside a frame") from None
        return None


async def connect(host: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Open a connection. Raises ``OSError``, also after ``CONNECT_S`` seconds."""
    try:
        return await asyncio.wait_for(asyncio.open_connection(host, port), CONNECT_S)
    except TimeoutError as late:
        raise TimeoutError(late.errno or ETIMEDOUT, f"no connection within {CONNECT_S:g} s") from None


async def read_answer(reader: asyncio.StreamReader, api: str, within_s: float) -> bytes | None:
    """Read the answer to a request, like ``read_frame``. Raises ``NoAnswer`` if no frame arrives in time."""
    try:
        return await asyncio.wait_for(read_frame(reader, MAX_RESPONSE_BYTES), within_s)
    except TimeoutError:
        raise NoAnswer(f"no answer to {api} within {within_s:g} s") from None


async def close(writer: asyncio.StreamWriter) -> None:
    """Close a connection when its data is sent, at the latest after a second."""
    writer.close()
    try:
        await asyncio.wait_for(writer.wait_closed(), 1)
    except TimeoutError:
        writer.transport.abort()
    except OSError:
        pass  # the peer closed it first


def framed(payload: bytes) -> bytes:
    """Return a payload with its length before it."""
    return struct.pack(">i", len(payload)) + payload


def read_request_header(frame: bytes) -> RequestHeader:
    """Read the fields that request headers v1 and v2 share. Raises MalformedFrame."""
    try:
        key, version, correlation, length = struct.unpack_from(">hhih", frame)
        if length < -1 or 10 + length > len(frame):
            raise MalformedFrame(f"invalid length of the client id: {length} bytes")
        # text that is not UTF-8 is read as Java reads it
        client_id = None if length == -1 else frame[10 : 10 + length].decode(errors="replace")
    except struct.error as error:
        raise MalformedFrame(f"invalid request header: {error}") from None
    return RequestHeader(key, version, correlation, client_id)


def read_correlation_id(frame: bytes) -> int:
    """Return the correlation id of a response. Raises MalformedFrame."""
    if len(frame) < 4:
        raise MalformedFrame(f"a response must have at least 4 bytes (got {len(frame)})")
    correlation: int = struct.unpack_from(">i", frame)[0]
    return correlation


def highest_version(api: str) -> int:
    """Return the highest version of an API that kio can decode."""
    return max(schema_name_map[api])


@cache
def _schema(api: str, version: int, kind: Any) -> Any:
    if (later := LATER.get((api, version, kind))) is not None:
        return later
    try:
        return load_entity_schema(api, version, kind)
    except KioIndexError:
        raise MalformedFrame(f"{api} v{version} is not supported") from None


def request_schema(api: str, version: int) -> Any:
    """Return kio's class of a request. Raises MalformedFrame for an unsupported version."""
    return _schema(api, version, EntityType.request)


def _read(schema: Any, frame: bytes, offset: int) -> tuple[Any, int]:
    try:
        return reader(schema)(frame, offset, len(frame))
    except OddCode as odd:
        raise UnknownErrorCode(f"{schema.__name__}: {odd}", odd.code) from None
    except BadBytes as error:
        raise MalformedFrame(f"{schema.__name__}: {error}") from None


def response_schema(api: str, version: int) -> Any:
    """Return kio's class of a response. Raises MalformedFrame for an unsupported version."""
    return _schema(api, version, EntityType.response)


def warm(api: str, version: int) -> None:
    """Build the reader of an API's requests and the writer of its responses. Raises MalformedFrame for an unsupported
    version."""
    reader(_schema(api, version, EntityType.request))
    entity_writer(_schema(api, version, EntityType.response))


def read_header(api: str, version: int, frame: bytes) -> int:
    """Read the whole header of a request in this version. Return where the message begins. Raises MalformedFrame."""
    _, at = _read(_schema(api, version, EntityType.request).__header_schema__, frame, 0)
    return at


def read_request(header: RequestHeader, frame: bytes) -> Any:
    """Return a request as kio's entity of its version. Raises MalformedFrame."""
    at = read_header(header.api, header.api_version, frame)
    return _read(_schema(header.api, header.api_version, EntityType.request), frame, at)[0]


def read_response(api: str, version: int, frame: bytes) -> Any:
    """Return a response as kio's entity of a version. Raises MalformedFrame."""
    schema = _schema(api, version, EntityType.response)
    _, at = _read(schema.__header_schema__, frame, 0)
    return _read(schema, frame, at)[0]


def write_request(header: RequestHeader, entity: Any) -> bytes:
    """Return the frame of a request, without its length."""
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
    """Return the frame of a response, without its length."""
    head_schema = entity.__header_schema__
    buffer = BytesIO()
    entity_writer(head_schema)(buffer, head_schema(correlation_id=correlation_id))
    entity_writer(type(entity))(buffer, entity)
    return buffer.getvalue()
