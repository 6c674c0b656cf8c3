"""A reader from bytes to kio's message classes.

It replaces kio's own reader, which allocates memory for any array length in a message, so that a frame of ten bytes can
crash the process. kio's reader also rejects tagged fields of later versions, which the protocol requires readers to
skip. This reader checks every length against the frame, and replaces invalid UTF-8 like Java does.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import cache
from struct import Struct
from typing import Any, Final, TypeAlias
from uuid import UUID

from kio.schema.errors import ErrorCode

from fencepost.wire.shape import Field, shape

#: From a buffer, a position in it and its end, to a value and the position after it.
Read: TypeAlias = Callable[[bytes, int, int], tuple[Any, int]]


class BadBytes(ValueError):
    """The bytes are not a message of the class."""


class OddCode(BadBytes):
    """A message has an error ``code`` that Kafka does not have."""

    def __init__(self, code: int) -> None:
        super().__init__(f"Kafka has no error code {code}")
        self.code = code


_STRUCTS: Final = {
    "int8": "b", "uint8": "B", "bool": "b", "int16": "h", "uint16": "H", "error_code": "h", "int32": "i",
    "uint32": "I", "timedelta_i32": "i", "int64": "q", "uint64": "Q", "timedelta_i64": "q", "datetime_i64": "q",
    "float64": "d", "uuid": "16s",
}  # fmt: skip
_INT16: Final = Struct(">h").unpack_from
_INT32: Final = Struct(">i").unpack_from
_LONGEST_VARINT: Final = 5
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_ZERO: Final = bytes(16)
_CODES: Final[dict[int, ErrorCode]] = {each.value: each for each in ErrorCode}


def uvarint(data: bytes, at: int, end: int) -> tuple[int, int]:
    """Read an unsigned varint. Returns it and the position after it. Raises ``BadBytes``."""
    value = 0
    for place in range(_LONGEST_VARINT):
        if at >= end:
            break
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << (7 * place)
        if byte < 0x80:
            return value, at
    raise BadBytes("a varint does not end")


def _code(value: int) -> ErrorCode:
    found = _CODES.get(value)
    if found is None:
        raise OddCode(value)
    return found


def _moment(value: int) -> datetime | None:
    try:
        return None if value < 0 else _EPOCH + timedelta(milliseconds=value)
    except OverflowError:
        raise BadBytes(f"a time of {value} ms is out of range") from None


_OF: Final[dict[str, Callable[[Any], Any]]] = {
    "bool": bool,
    "error_code": _code,
    "timedelta_i32": lambda value: timedelta(milliseconds=value),
    "datetime_i64": _moment,
    "uuid": lambda value: None if value == _ZERO else UUID(bytes=value),
}


def _fixed(kafka_type: str) -> tuple[Read, int]:
    packed = Struct(">" + _STRUCTS[kafka_type])
    size, unpack = packed.size, packed.unpack_from
    make = _OF.get(kafka_type)
    if kafka_type == "timedelta_i64":
        make = _span

    def plain(data: bytes, at: int, end: int) -> tuple[Any, int]:
        if at + size > end:
            raise BadBytes("the message ends inside a field")
        return unpack(data, at)[0], at + size

    def made(data: bytes, at: int, end: int) -> tuple[Any, int]:
        if at + size > end:
            raise BadBytes("the message ends inside a field")
        assert make is not None
        return make(unpack(data, at)[0]), at + size

    return (plain if make is None else made), size


def _span(value: int) -> timedelta:
    try:
        return timedelta(milliseconds=value)
    except OverflowError:
        raise BadBytes(f"a duration of {value} ms is out of range") from None


def _sized(field: Field, *, compact: bool) -> Read:
    """A string or bytes."""
    text = field.kafka_type == "string"
    # kio does not mark which tagged fields may be null, so all of them may
    nullable = field.optional or field.tag is not None
    wide = not text

    def length_of(data: bytes, at: int, end: int) -> tuple[int, int]:
        if compact:
            length, at = uvarint(data, at, end)
            return length - 1, at
        width = 4 if wide else 2
        if at + width > end:
            raise BadBytes("the message ends inside a length")
        return (_INT32(data, at) if wide else _INT16(data, at))[0], at + width

    def read(data: bytes, at: int, end: int) -> tuple[Any, int]:
        length, at = length_of(data, at, end)
        if length < 0:
            if length == -1 and nullable:
                return None, at
            raise BadBytes(f"{field.name} has the invalid length {length}")
        behind = at + length
        if behind > end:
            raise BadBytes(f"{field.name} has length {length}, but only {end - at} bytes are left")
        found = data[at:behind]
        return (found.decode(errors="replace") if text else found), behind

    return read


def _array(field: Field, item: Read, least: int, *, compact: bool) -> Read:
    def read(data: bytes, at: int, end: int) -> tuple[Any, int]:
        if compact:
            count, at = uvarint(data, at, end)
            count -= 1
        else:
            if at + 4 > end:
                raise BadBytes("the message ends inside a length")
            count, at = _INT32(data, at)[0], at + 4
        if count < 0:
            if count == -1 and field.optional:
                return None, at
            raise BadBytes(f"{field.name} has the invalid count {count}")
        if count * least > end - at:
            raise BadBytes(f"{field.name} has {count} items, but only {end - at} bytes are left")
        found = []
        for _ in range(count):
            value, at = item(data, at, end)
            found.append(value)
        return tuple(found), at

    return read


def _nullable(inner: Read) -> Read:
    def read(data: bytes, at: int, end: int) -> tuple[Any, int]:
        if at >= end:
            raise BadBytes("the message ends inside a field")
        return (None, at + 1) if data[at] >= 0x80 else inner(data, at + 1, end)

    return read


def _field(field: Field, *, flexible: bool, in_request_header: bool) -> Read:
    least = 1
    if field.entity is not None:
        one = reader(field.entity)
        if field.optional and not field.array:
            one = _nullable(one)
    elif field.kafka_type in _STRUCTS:
        one, least = _fixed(field.kafka_type)
    else:
        # the client id in a header is never compact, so that every broker can read it
        plain = in_request_header and field.name == "client_id"
        one = _sized(_item(field), compact=flexible and not plain)
    return _array(field, one, least, compact=flexible) if field.array else one


def _item(field: Field) -> Field:
    """Return the field of an array's items, which are never null."""
    if not field.array:
        return field
    return Field(field.name, field.kafka_type, field.entity, array=False, optional=False, tag=None, default=None)


@cache
def reader(schema: Any) -> Read:
    """Return the function that reads a message of class ``schema``; it raises ``BadBytes``."""
    flexible: bool = schema.__flexible__
    header = schema.__name__ == "RequestHeader"
    steps: list[tuple[str, Read]] = []
    tagged: dict[int, tuple[str, Read]] = {}
    for field in shape(schema):
        read = _field(field, flexible=flexible, in_request_header=header)
        if field.tag is None:
            steps.append((field.name, read))
        else:
            tagged[field.tag] = field.name, read

    def entity(data: bytes, at: int, end: int) -> tuple[Any, int]:
        values = {}
        for name, read in steps:
            values[name], at = read(data, at, end)
        if flexible:
            count, at = uvarint(data, at, end)
            for _ in range(count):
                tag, at = uvarint(data, at, end)
                length, at = uvarint(data, at, end)
                if length > end - at:
                    raise BadBytes(f"tagged field {tag} has length {length}, but only {end - at} bytes are left")
                known = tagged.get(tag)
                if known is not None:
                    values[known[0]], _ = known[1](data, at, at + length)
                at += length
        return schema(**values), at

    return entity
