"""Readers for Kafka's encodings: the fixed one, and the flexible one with varints and tagged fields (F-REC-10).

They accept the same lengths and numbers as Kafka's own readers, even those that no writer produces: a varint may be
longer than needed, and names may be malformed (F-REC-22, F-REC-24).
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct, error, unpack_from
from typing import Final, TypeVar

from fencepost.protocol.embedded import text_of

from .errors import TornRecord
from .layout import Layout

T = TypeVar("T")

_INT8: Final = Struct(">b").unpack_from
_INT16: Final = Struct(">h").unpack_from
_INT32: Final = Struct(">i").unpack_from
_INT64: Final = Struct(">q").unpack_from
#: Errors of numbers that the end of the bytes cuts off; ``Codec`` converts them to ``TornRecord``.
ENDS_EARLY: Final = (error, IndexError)
ID_SIZE: Final = 16
LONGEST_TEXT: Final = 0x7FFF


class RecordReader:
    """A position in the bytes of one key or value. Raises ``TornRecord`` or one of ``ENDS_EARLY``."""

    __slots__ = ("at", "data", "layout")

    def __init__(self, data: bytes, layout: Layout) -> None:
        self.data = data
        self.at = 0
        self.layout = layout

    def int8(self) -> int:
        """Read a signed number of one byte."""
        number: int = _INT8(self.data, self.at)[0]
        self.at += 1
        return number

    def int16(self) -> int:
        """Read a signed number of two bytes."""
        number: int = _INT16(self.data, self.at)[0]
        self.at += 2
        return number

    def int32(self) -> int:
        """Read a signed number of four bytes."""
        number: int = _INT32(self.data, self.at)[0]
        self.at += 4
        return number

    def int64(self) -> int:
        """Read a signed number of eight bytes."""
        number: int = _INT64(self.data, self.at)[0]
        self.at += 8
        return number

    def topic_id(self) -> bytes:
        """Read the 16 bytes of a topic id."""
        return self._take(ID_SIZE)

    def varint(self) -> int:
        """Read a number in groups of seven bits, the lowest first, in at most five bytes. Bits above 32 are lost, and
        the highest remaining bit is the sign, as in Java."""
        data, at = self.data, self.at
        byte = data[at]
        if byte < 0x80:
            self.at = at + 1
            return byte
        number = byte & 0x7F
        for shift in (7, 14, 21, 28):
            at += 1
            byte = data[at]
            number |= (byte & 0x7F) << shift
            if byte < 0x80:
                self.at = at + 1
                number &= 0xFFFF_FFFF
                return number - (1 << 32) if number >> 31 else number
        raise self.torn("a varint of more than five bytes")

    def text(self) -> str:
        """Read a text with its length in two bytes."""
        size = self.int16()
        if size < 0:
            raise self.torn("a text is null")
        return self._text(size)

    def nullable_text(self) -> str | None:
        """Read a text with its length in two bytes; a negative length means None."""
        size = self.int16()
        return None if size < 0 else self._text(size)

    def compact_text(self) -> str:
        """Read a text with the varint of its length + 1."""
        size = self._compact_size()
        if size < 0:
            raise self.torn("a text is null")
        return self._text(size)

    def compact_nullable_text(self) -> str | None:
        """Read a text with the varint of its length + 1; 0 means None."""
        size = self._compact_size()
        return None if size < 0 else self._text(size)

    def content(self) -> bytes:
        """Read bytes with their length in four bytes."""
        return self._content(self.int32())

    def compact_content(self) -> bytes:
        """Read bytes with the varint of their length + 1."""
        return self._content(self._compact_size())

    def array(self, read: Callable[[RecordReader], T]) -> tuple[T, ...]:
        """Read elements with their number in four bytes."""
        size = self.int32()
        if size < 0:
            raise self.torn("a list is null")
        return self._array(size, read)

    def compact_array(self, read: Callable[[RecordReader], T]) -> tuple[T, ...]:
        """Read elements with the varint of their number + 1."""
        size = self._compact_size()
        if size < 0:
            raise self.torn("a list is null")
        return self._array(size, read)

    def numbers(self) -> tuple[int, ...]:
        """Read a compact list of numbers of four bytes."""
        found = self.nullable_numbers()
        if found is None:
            raise self.torn("a list is null")
        return found

    def nullable_numbers(self) -> tuple[int, ...] | None:
        """Read a compact list of numbers of four bytes, or None."""
        size = self._compact_size()
        if size < 0:
            return None
        self._allow(size)
        found: tuple[int, ...] = unpack_from(f">{size}i", self.data, self.at)
        self.at += 4 * size
        return found

    def tagged(self, zero: Callable[[RecordReader], T] | None, missing: T) -> T:
        """Read the tagged field with number 0, or return ``missing``; skip all others. ``zero`` None: skip that too.

        The encoded length of a field is used only to skip it. If a field occurs twice, the last one counts.
        """
        count = self.varint()
        most = self.layout.most_tags
        if most is not None and (count < 0 or count > most):
            raise self.torn(f"the number of tagged fields must be from 0 to {most} (got {count})")
        found = missing
        for _ in range(count):
            tag, size = self.varint(), self.varint()
            if tag == 0 and zero is not None:
                found = zero(self)
            else:
                self._take(size)
        return found

    def no_tags(self) -> None:
        """Skip all tagged fields."""
        self.tagged(None, None)

    def _compact_size(self) -> int:
        """Read a length; -1 means null. The overflow of Java's numbers only affects impossible lengths."""
        number = self.varint()
        return number - 1 if number != -(1 << 31) else (1 << 31) - 1

    def _text(self, size: int) -> str:
        if size > LONGEST_TEXT:
            raise self.torn(f"a text must have at most {LONGEST_TEXT} bytes (got {size})")
        data = self._take(size)
        try:
            return data.decode()
        except UnicodeDecodeError:
            return text_of(data)

    def _content(self, size: int) -> bytes:
        if size < 0:
            raise self.torn("bytes are null")
        return self._take(size)

    def _array(self, size: int, read: Callable[[RecordReader], T]) -> tuple[T, ...]:
        self._allow(size)
        return tuple([read(self) for _ in range(size)])

    def _allow(self, size: int) -> None:
        """Check the number of elements; each takes at least one byte."""
        left = len(self.data) - self.at
        most = self.layout.most_elements
        if size > left or (most is not None and size > most):
            raise self.torn(f"a list of {size} elements does not fit into the {left} bytes left, or is too long")

    def _take(self, size: int) -> bytes:
        end = self.at + size
        if size < 0 or end > len(self.data):
            raise self.torn(f"a length of {size} bytes does not fit")
        taken = self.data[self.at : end]
        self.at = end
        return taken

    def torn(self, why: str) -> TornRecord:
        """Return the error to raise, with the reason and the position."""
        return TornRecord(f"{why}, before byte {self.at} of {len(self.data)}")
