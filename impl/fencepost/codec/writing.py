"""Writes Kafka's encoding, the fixed and the flexible one, as Kafka's own writers do (F-REC-10, F-REC-25)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from struct import Struct, pack
from typing import Final, TypeVar

from .errors import Unwritable
from .reading import ID_SIZE, LONGEST_TEXT

T = TypeVar("T")

int8: Final = Struct(">b").pack
int16: Final = Struct(">h").pack
int32: Final = Struct(">i").pack
int64: Final = Struct(">q").pack
NO_TAGS: Final = b"\0"
_NULL: Final = b"\xff\xff"
_COMPACT_NULL: Final = b"\0"


def varint(number: int) -> bytes:
    """A number from 0 on in groups of seven bits, the lowest first."""
    if number < 0x80:
        return bytes((number,))
    groups = []
    while number >= 0x80:
        groups.append(number & 0x7F | 0x80)
        number >>= 7
    groups.append(number)
    return bytes(groups)


def text(value: str) -> bytes:
    """A text after its length in two bytes."""
    data = _encoded(value)
    return int16(len(data)) + data


def nullable_text(value: str | None) -> bytes:
    """The same, with length -1 for None."""
    return _NULL if value is None else text(value)


def compact_text(value: str) -> bytes:
    """A text after the varint of its length and one."""
    data = _encoded(value)
    return varint(len(data) + 1) + data


def compact_nullable_text(value: str | None) -> bytes:
    """The same, with 0 for None."""
    return _COMPACT_NULL if value is None else compact_text(value)


def content(value: bytes) -> bytes:
    """Bytes after their length in four bytes."""
    return int32(len(value)) + value


def compact_content(value: bytes) -> bytes:
    """Bytes after the varint of their length and one."""
    return varint(len(value) + 1) + value


def array(items: Sequence[T], write: Callable[[T], bytes]) -> bytes:
    """Elements after their number in four bytes."""
    return int32(len(items)) + b"".join([write(item) for item in items])


def compact_array(items: Sequence[T], write: Callable[[T], bytes]) -> bytes:
    """Elements after the varint of their number and one."""
    return varint(len(items) + 1) + b"".join([write(item) for item in items])


def numbers(items: Sequence[int]) -> bytes:
    """A compact list of numbers of four bytes."""
    return varint(len(items) + 1) + pack(f">{len(items)}i", *items)


def topic_id(value: bytes) -> bytes:
    """The 16 bytes of a topic id. Raises ``Unwritable`` for another number of them."""
    if len(value) != ID_SIZE:
        raise Unwritable(f"a topic id of {len(value)} bytes, not {ID_SIZE}")
    return value


def tag_zero(field: bytes) -> bytes:
    """One tagged field, of number 0: how many there are, its number, its length, and itself."""
    return b"\x01\x00" + varint(len(field)) + field


def _encoded(value: str) -> bytes:
    """Raises ``Unwritable`` if the text is too long."""
    data = value.encode("utf-8", "replace")  # a lone surrogate becomes a question mark, as in Java (A-EMB-10)
    if len(data) > LONGEST_TEXT:
        raise Unwritable(f"a text of {len(data)} bytes; there is room for {LONGEST_TEXT}")
    return data
