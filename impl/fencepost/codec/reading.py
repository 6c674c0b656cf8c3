"""Reads Kafka's encoding from the front: the fixed one, and the flexible one with varints and tagged fields (F-REC-10).

Lengths and numbers are taken as Kafka's own readers take them, also those that no writer makes: a varint may be longer
than it needs to be, and names may be malformed (F-REC-22, F-REC-24).
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
#: What a number raises that the bytes end in; ``Codec`` tells it as ``TornRecord``.
ENDS_EARLY: Final = (error, IndexError)
ID_SIZE: Final = 16
LONGEST_TEXT: Final = 0x7FFF


class Reader:
    """Stands at a place in the bytes of one key or value. Raises ``TornRecord`` or one of ``ENDS_EARLY``."""

    __slots__ = ("at", "data", "layout")

    def __init__(self, data: bytes, layout: Layout) -> None:
        self.data = data
        self.at = 0
        self.layout = layout

    def int8(self) -> int:
        """A signed number of one byte."""
        number: int = _INT8(self.data, self.at)[0]
        self.at += 1
        return number

    def int16(self) -> int:
        """A signed number of two bytes."""
        number: int = _INT16(self.data, self.at)[0]
        self.at += 2
        return number

    def int32(self) -> int:
        """A signed number of four bytes."""
        number: int = _INT32(self.data, self.at)[0]
        self.at += 4
        return number

    def int64(self) -> int:
        """A signed number of eight bytes."""
        number: int = _INT64(self.data, self.at)[0]
        self.at += 8
        return number

    def topic_id(self) -> bytes:
        """The 16 bytes of a topic id."""
        return self._take(ID_SIZE)

    def varint(self) -> int:
        """An unsigned number in groups of seven bits, the lowest first, in at most five bytes; what does not fit in 32
        bits is lost, and the highest of them counts as a sign, as in Java's numbers."""
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
        """A text after its length in two bytes."""
        size = self.int16()
        if size < 0:
            raise self.torn("null for a text")
        return self._text(size)

    def nullable_text(self) -> str | None:
        """A text after its length in two bytes, which is negative if there is none."""
        size = self.int16()
        return None if size < 0 else self._text(size)

    def compact_text(self) -> str:
        """A text after the varint of its length and one."""
        size = self._compact_size()
        if size < 0:
            raise self.torn("null for a text")
        return self._text(size)

    def compact_nullable_text(self) -> str | None:
        """A text after the varint of its length and one, which is 0 if there is none."""
        size = self._compact_size()
        return None if size < 0 else self._text(size)

    def content(self) -> bytes:
        """Bytes after their length in four bytes."""
        return self._content(self.int32())

    def compact_content(self) -> bytes:
        """Bytes after the varint of their length and one."""
        return self._content(self._compact_size())

    def array(self, read: Callable[[Reader], T]) -> tuple[T, ...]:
        """Elements after their number in four bytes."""
        size = self.int32()
        if size < 0:
            raise self.torn("null for a list")
        return self._array(size, read)

    def compact_array(self, read: Callable[[Reader], T]) -> tuple[T, ...]:
        """Elements after the varint of their number and one."""
        size = self._compact_size()
        if size < 0:
            raise self.torn("null for a list")
        return self._array(size, read)

    def numbers(self) -> tuple[int, ...]:
        """A compact list of numbers of four bytes."""
        found = self.nullable_numbers()
        if found is None:
            raise self.torn("null for a list")
        return found

    def nullable_numbers(self) -> tuple[int, ...] | None:
        """A compact list of numbers of four bytes, or none."""
        size = self._compact_size()
        if size < 0:
            return None
        self._allow(size)
        found: tuple[int, ...] = unpack_from(f">{size}i", self.data, self.at)
        self.at += 4 * size
        return found

    def tagged(self, zero: Callable[[Reader], T] | None, missing: T) -> T:
        """The tagged field of number 0, or ``missing``; the others are passed over. ``zero`` None: it is one of them.

        How long a field is said to be counts only if it is passed over; of one that comes twice the last counts.
        """
        count = self.varint()
        most = self.layout.most_tags
        if most is not None and (count < 0 or count > most):
            raise self.torn(f"{count} tagged fields")
        found = missing
        for _ in range(count):
            tag, size = self.varint(), self.varint()
            if tag == 0 and zero is not None:
                found = zero(self)
            else:
                self._take(size)
        return found

    def no_tags(self) -> None:
        """Passes over tagged fields of which none is known."""
        self.tagged(None, None)

    def _compact_size(self) -> int:
        """-1: null. Java's numbers go round at their end, where no length is."""
        number = self.varint()
        return number - 1 if number != -(1 << 31) else (1 << 31) - 1

    def _text(self, size: int) -> str:
        if size > LONGEST_TEXT:
            raise self.torn(f"a text of {size} bytes")
        data = self._take(size)
        try:
            return data.decode()
        except UnicodeDecodeError:
            return text_of(data)

    def _content(self, size: int) -> bytes:
        if size < 0:
            raise self.torn("null for bytes")
        return self._take(size)

    def _array(self, size: int, read: Callable[[Reader], T]) -> tuple[T, ...]:
        self._allow(size)
        return tuple([read(self) for _ in range(size)])

    def _allow(self, size: int) -> None:
        """Every element takes at least one byte."""
        left = len(self.data) - self.at
        most = self.layout.most_elements
        if size > left or (most is not None and size > most):
            raise self.torn(f"a list of {size} elements in {left} bytes")

    def _take(self, size: int) -> bytes:
        end = self.at + size
        if size < 0 or end > len(self.data):
            raise self.torn(f"needs {size} bytes")
        taken = self.data[self.at : end]
        self.at = end
        return taken

    def torn(self, why: str) -> TornRecord:
        """To be raised: it says why, and where."""
        return TornRecord(f"{why} before byte {self.at} of {len(self.data)}")
