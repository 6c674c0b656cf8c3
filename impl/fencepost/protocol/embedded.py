"""Subscriptions and assignments: the bytes of consumers in JoinGroup and SyncGroup (section 10.1).

The layout is a version of two bytes and then the body of that version, in Kafka's non-flexible encoding: strings with
a length of two bytes, arrays and byte strings with a length of four, -1 for null. The broker does not read them, unless
a group is converted from one protocol to the other (X-UP-05, X-DOWN-04).
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar

from .partitions import TopicPartition, java_order, partition_order

PROTOCOL_TYPE = "consumer"
HIGHEST_VERSION = 3
NO_GENERATION = -1

Item = TypeVar("Item")


class SchemaError(ValueError):
    """The bytes are not a subscription or an assignment (A-EMB-05)."""


class LengthError(SchemaError):
    """A length in the bytes is impossible. Kafka handles an early end of the bytes, but not this error (X-UP-06)."""


@dataclass(frozen=True, slots=True)
class Subscription:
    """A member's subscription. ``generation_id`` -1 is "absent" (A-EMB-09); ``rack_id`` is never empty."""

    topics: tuple[str, ...]
    user_data: bytes | None = None
    owned_partitions: tuple[TopicPartition, ...] = ()
    generation_id: int = NO_GENERATION
    rack_id: str | None = None


@dataclass(frozen=True, slots=True)
class Assignment:
    """The leader's assignment for a member."""

    partitions: tuple[TopicPartition, ...]
    user_data: bytes | None = None


def encode_subscription(subscription: Subscription, version: int = HIGHEST_VERSION) -> bytes:
    """Encode a subscription. Fields that ``version`` lacks are left out (A-EMB-02, A-EMB-04, A-EMB-07).

    Raises ``SchemaError`` for a negative version; a version above the highest writes the highest.
    """
    version = _usable(version)
    parts = [struct.pack(">h", version)]
    parts.append(_array(sorted(subscription.topics, key=java_order), _string))
    parts.append(_bytes(subscription.user_data))
    if version >= 1:
        owned = sorted(subscription.owned_partitions, key=partition_order)
        parts.append(encode_partitions(owned))
    if version >= 2:
        parts.append(struct.pack(">i", max(subscription.generation_id, NO_GENERATION)))
    if version >= 3:
        parts.append(struct.pack(">h", -1) if subscription.rack_id is None else _string(subscription.rack_id))
    return b"".join(parts)


def decode_subscription(data: bytes) -> Subscription:
    """Decode a subscription of any version; bytes after the body are ignored. Raises ``SchemaError`` (A-EMB-05)."""
    reader = EmbeddedReader(data)
    version = _usable(reader.int16())
    topics = tuple(reader.array(reader.string))
    user_data = reader.nullable_bytes()
    owned = tuple(_each(reader.topic_partitions())) if version >= 1 else ()
    generation = reader.int32() if version >= 2 else NO_GENERATION
    rack = reader.nullable_string() if version >= 3 else None
    # A-EMB-09: any negative generation means none; so does an empty rack.
    return Subscription(topics, user_data, owned, max(generation, NO_GENERATION), rack or None)


def subscribed_topics(data: bytes) -> tuple[str, ...]:
    """Decode the topics of a subscription as version 0, with which every later version begins (G-DATA-10). Raises
    ``SchemaError``."""
    reader = EmbeddedReader(data)
    reader.int16()
    topics = tuple(reader.array(reader.string))
    reader.nullable_bytes()
    return topics


def encode_assignment(assignment: Assignment, version: int = HIGHEST_VERSION) -> bytes:
    """Encode an assignment; topics are in the order of their first partition (A-EMB-03, A-EMB-04)."""
    version = _usable(version)
    return struct.pack(">h", version) + encode_partitions(assignment.partitions) + _bytes(assignment.user_data)


def decode_assignment(data: bytes) -> Assignment:
    """Decode an assignment of any version. Raises ``SchemaError`` (A-EMB-05)."""
    topics, user_data = decode_topics(data)
    return Assignment(tuple(_each(topics)), user_data)


def encode_topics(topics: Iterable[tuple[str, list[int]]], version: int) -> bytes:
    """Encode an assignment without user data, by topic, even topics without partitions. Raises ``SchemaError``."""
    return struct.pack(">h", _usable(version)) + _topics(topics) + _bytes(None)


def decode_topics(data: bytes) -> tuple[list[tuple[str, list[int]]], bytes | None]:
    """Decode an assignment into its listed topics and its user data. Raises ``SchemaError`` (A-EMB-05)."""
    reader = EmbeddedReader(data)
    _usable(reader.int16())
    return reader.topic_partitions(), reader.nullable_bytes()


def version_of(data: bytes) -> int:
    """Return the version at the start of the bytes. Raises ``SchemaError`` if there is none."""
    return EmbeddedReader(data).int16()


def _usable(version: int) -> int:
    if version < 0:
        raise SchemaError(f"version must be >= 0 (got {version})")
    return min(version, HIGHEST_VERSION)  # A-EMB-05


def _string(text: str) -> bytes:
    data = text.encode("utf-8", "replace")  # A-EMB-10
    if len(data) > 32_767:
        raise SchemaError(f"a string must have at most 32767 bytes (got {len(data)})")
    return struct.pack(">h", len(data)) + data


#: the bytes of a surrogate, which Java's decoder treats as one malformed run, and Python's as two or three
_SURROGATE = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]?")


def text_of(data: bytes) -> str:
    """Decode text as Kafka does: each malformed run gives one U+FFFD (A-EMB-10)."""
    return _SURROGATE.sub(b"\xff", data).decode("utf-8", "replace")


def _bytes(data: bytes | None) -> bytes:
    return struct.pack(">i", -1) if data is None else struct.pack(">i", len(data)) + data


def _array(items: Iterable[Item], write: Callable[[Item], bytes]) -> bytes:
    written = [write(item) for item in items]
    return struct.pack(">i", len(written)) + b"".join(written)


def encode_partitions(partitions: Iterable[TopicPartition]) -> bytes:
    """Encode partitions as an array of topics, grouped by topic, in the given order (A-EMB-07)."""
    topics: dict[str, list[int]] = {}
    for topic, partition in partitions:
        topics.setdefault(topic, []).append(partition)
    return _topics(topics.items())


def _topics(topics: Iterable[tuple[str, list[int]]]) -> bytes:
    return _array(topics, lambda row: _string(row[0]) + _array(row[1], lambda number: struct.pack(">i", number)))


def _each(rows: Iterable[tuple[str, list[int]]]) -> Iterable[TopicPartition]:
    """Yield the listed partitions; a topic may occur twice (A-EMB-11)."""
    for topic, partitions in rows:
        for partition in partitions:
            yield TopicPartition(topic, partition)


class EmbeddedReader:
    """Reader of encoded bytes. Raises ``SchemaError`` if they do not fit, ``LengthError`` if a length does not."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def _take(self, size: int) -> bytes:
        end = self._at + size
        if size < 0 or end > len(self._data):
            raise LengthError(
                f"a length of {size} bytes at offset {self._at} exceeds the {len(self._data)} bytes given"
            )
        taken = self._data[self._at : end]
        self._at = end
        return taken

    def _number(self, size: int) -> int:
        if size > len(self._data) - self._at:
            raise SchemaError(f"the bytes end at {len(self._data)}, within a number")
        return int.from_bytes(self._take(size), "big", signed=True)

    def int16(self) -> int:
        """Read a signed number of two bytes."""
        return self._number(2)

    def int32(self) -> int:
        """Read a signed number of four bytes."""
        return self._number(4)

    def string(self) -> str:
        """Read a text with its length."""
        return text_of(self._take(self.int16()))

    def nullable_string(self) -> str | None:
        """Read a text with its length; a length of -1 means None."""
        size = self.int16()
        return None if size < 0 else text_of(self._take(size))

    def nullable_bytes(self) -> bytes | None:
        """Read bytes with their length; a length of -1 means None."""
        size = self.int32()
        return None if size < 0 else self._take(size)

    def array(self, read: Callable[[], Item]) -> list[Item]:
        """Read an array with its number of items."""
        size = self.int32()
        if size < 0 or size > len(self._data) - self._at:  # every element takes at least a byte
            raise LengthError(f"an array of {size} items does not fit into {len(self._data) - self._at} bytes")
        return [read() for _ in range(size)]

    def topic_partitions(self) -> list[tuple[str, list[int]]]:
        """Read the listed topics, each with its partitions."""
        return self.array(lambda: (self.string(), self.array(self.int32)))
