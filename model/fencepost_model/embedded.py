"""Subscriptions and assignments as bytes, read and written according to the rule book (A-EMB).

The core uses ``fencepost.protocol.embedded``. This module does not, so the comparison of core and model also compares
how both read the same bytes.

A field is a function from the bytes and an offset to a value and the offset after it.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterable
from functools import partial
from typing import Final, NamedTuple, TypeAlias, TypeVar

HIGHEST_VERSION: Final = 3
Rows: TypeAlias = list[tuple[str, list[int]]]  #: topics as listed, each with its partitions
T = TypeVar("T")
Field: TypeAlias = Callable[[bytes, int], tuple[T, int]]


class BadBytes(ValueError):
    """The bytes are not a subscription or an assignment (A-EMB-05)."""


class BadLength(BadBytes):
    """The length of a string, array or byte string is impossible (X-UP-06)."""


class Subscription(NamedTuple):
    """A subscription of a member. ``generation`` is None if absent (A-EMB-09), ``rack`` None if absent or empty."""

    topics: list[str]
    owned: Rows
    generation: int | None
    rack: str | None


def read_subscription(data: bytes) -> Subscription:
    """Read a subscription of any version (A-EMB-02). Raises BadBytes."""
    version, at = _version(data)
    topics, at = _array(_text, data, at)
    _, at = _bytes_or_none(data, at)
    owned: Rows = []
    generation, rack = -1, None
    if version >= 1:
        owned, at = _rows(data, at)
    if version >= 2:
        generation, at = _int32(data, at)
    if version >= 3:
        rack, at = _text_or_none(data, at)
    return Subscription(topics, owned, None if generation < 0 else generation, rack or None)


def read_assignment(data: bytes) -> tuple[Rows, bytes | None]:
    """Read an assignment of any version: its rows and its user data (A-EMB-03). Raises BadBytes."""
    _, at = _version(data)
    rows, at = _rows(data, at)
    return rows, _bytes_or_none(data, at)[0]


def write_assignment(rows: Iterable[tuple[str, list[int]]], version: int, user_data: bytes | None = None) -> bytes:
    """Write an assignment in this version, or in the highest one. Raises BadBytes."""
    listed = list(rows)
    written = [_version_bytes(version), _count(listed)]
    for topic, partitions in listed:
        written += [
            _text_bytes(topic),
            _count(partitions),
            *(each.to_bytes(4, "big", signed=True) for each in partitions),
        ]
    written += [b"\xff\xff\xff\xff"] if user_data is None else [_count(user_data), user_data]
    return b"".join(written)


def version_of(data: bytes) -> int:
    """Return the version that the bytes start with, known or not. Raises BadBytes if they are too short."""
    return _int16(data, 0)[0]


# ---- fields ----------------------------------------------------------------------------------------------------------


def _number(size: int, data: bytes, at: int) -> tuple[int, int]:
    end = at + size
    if end > len(data):
        raise BadBytes(f"the bytes end at {len(data)}, within the number at {at}")
    return int.from_bytes(data[at:end], "big", signed=True), end


_int16: Final = partial(_number, 2)
_int32: Final = partial(_number, 4)


def _version(data: bytes) -> tuple[int, int]:
    version, at = _int16(data, 0)
    if version < 0:
        raise BadBytes(f"version {version} is negative")
    return min(version, HIGHEST_VERSION), at


def _cut(data: bytes, at: int, length: int) -> tuple[bytes, int]:
    if not 0 <= length <= len(data) - at:
        raise BadLength(f"length {length} at {at} of {len(data)} bytes")
    return data[at : at + length], at + length


def _text(data: bytes, at: int) -> tuple[str, int]:
    length, at = _int16(data, at)
    found, at = _cut(data, at, length)
    return found.decode("utf-8", _ONE_RUN), at


def _text_or_none(data: bytes, at: int) -> tuple[str | None, int]:
    length, behind = _int16(data, at)
    return (None, behind) if length < 0 else _text(data, at)


def _bytes_or_none(data: bytes, at: int) -> tuple[bytes | None, int]:
    length, at = _int32(data, at)
    return (None, at) if length < 0 else _cut(data, at, length)


def _array(field: Field[T], data: bytes, at: int) -> tuple[list[T], int]:
    count, at = _int32(data, at)
    if not 0 <= count <= len(data) - at:  # an element takes at least one byte
        raise BadLength(f"{count} elements at {at} of {len(data)} bytes")
    found = []
    for _ in range(count):
        each, at = field(data, at)
        found.append(each)
    return found, at


def _row(data: bytes, at: int) -> tuple[tuple[str, list[int]], int]:
    topic, at = _text(data, at)
    partitions, at = _array(_int32, data, at)
    return (topic, partitions), at


_rows: Final = partial(_array, _row)


# ---- text and numbers as bytes ---------------------------------------------------------------------------------------


def _one_run(error: UnicodeError) -> tuple[str, int]:
    """Return one U+FFFD for a malformed run; the bytes of an encoded surrogate are one run (A-EMB-10)."""
    if not isinstance(error, UnicodeDecodeError):
        raise error
    start, end = error.start, error.end
    is_surrogate = error.object[start] == 0xED and error.object[start + 1 : start + 2] > b"\x9f"
    if is_surrogate and error.object[start + 1] <= 0xBF:
        third = error.object[start + 2 : start + 3]
        end = start + 3 if b"\x80" <= third <= b"\xbf" else start + 2
    return "\N{REPLACEMENT CHARACTER}", end


_ONE_RUN: Final = "fencepost-model-one-run"
codecs.register_error(_ONE_RUN, _one_run)


def _version_bytes(version: int) -> bytes:
    if version < 0:
        raise BadBytes(f"version {version} is negative")
    return min(version, HIGHEST_VERSION).to_bytes(2, "big")


def _count(items: bytes | list[T]) -> bytes:
    return len(items).to_bytes(4, "big")


def _text_bytes(text: str) -> bytes:
    data = text.encode("utf-8", "replace")  # A-EMB-10
    if len(data) > 0x7FFF:
        raise BadBytes(f"a text of {len(data)} bytes is too long")
    return len(data).to_bytes(2, "big") + data
