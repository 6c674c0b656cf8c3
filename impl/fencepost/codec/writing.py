"""Writers for Kafka's encodings, the fixed and the flexible one, equal to Kafka's own (F-REC-10, F-REC-25)."""

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
    """Write a number >= 0 in groups of seven bits, the lowest first."""
    if number < 0x80:
        return bytes((number,))
    groups = []
    while number >= 0x80:
        groups.append(number & 0x7F | 0x80)
        number >>= 7
    groups.append(number)
    return bytes(groups)


def text(value: str) -> bytes:
    """Write a text with its length in two bytes."""
    data = _encoded(value)
    return int16(len(data)) + data


def nullable_text(value: str | None) -> bytes:
    """Write a text with its length in two bytes; -1 for None."""
    return _NULL if value is None else text(value)


def compact_text(value: str) -> bytes:
    """Write a text with the varint of its length + 1."""
    data = _encoded(value)
    return varint(len(data) + 1) + data


def compact_nullable_text(value: str | None) -> bytes:
    """Write a text with the varint of its length + 1; 0 for None."""
    return _COMPACT_NULL if value is None else compact_text(value)


def content(value: bytes) -> bytes:
    """Write bytes with their length in four bytes."""
    return int32(len(value)) + value


def compact_content(value: bytes) -> bytes:
    """Write bytes with the varint of their length + 1."""
    return varint(len(value) + 1) + value


def array(items: Sequence[T], write: Callable[[T], bytes]) -> bytes:
    """Write elements with their number in four bytes."""
    return int32(len(items)) + b"".join([write(item) for item in items])


def compact_array(items: Sequence[T], write: Callable[[T], bytes]) -> bytes:
    """Write elements with the varint of their number + 1."""
    return varint(len(items) + 1) + b"".join([write(item) for item in items])


def numbers(items: Sequence[int]) -> bytes:
    """Write a compact list of numbers of four bytes."""
    return varint(len(items) + 1) + pack(f">{len(items)}i", *items)


def topic_id(value: bytes) -> bytes:
    """Write a topic id. Raises ``Unwritable`` unless it has 16 bytes."""
    if len(value) != ID_SIZE:
        raise Unwritable(f"a topic id must have {ID_SIZE} bytes (got {len(value)})")
    return value


def tag_zero(field: bytes) -> bytes:
    """Write one tagged field with number 0: the number of fields, its number, its length, and its bytes."""
    return b"\x01\x00" + varint(len(field)) + field


def _encoded(value: str) -> bytes:
    """Encode a text. Raises ``Unwritable`` if it is too long."""
    data = value.encode("utf-8", "replace")  # a lone surrogate becomes a question mark, as in Java (A-EMB-10)
    if len(data) > LONGEST_TEXT:
        raise Unwritable(f"a text must have at most {LONGEST_TEXT} bytes (got {len(data)})")
    return data
