"""The bytes that consumers put into JoinGroup and SyncGroup: subscriptions and assignments (section 10.1).

The layout is a version of two bytes and then the body of that version, in Kafka's non-flexible encoding: strings with
a length of two bytes, arrays and byte strings with a length of four, -1 for null. The broker passes them on unread,
until a group changes from one protocol to the other (X-UP-05, X-DOWN-04).
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
    """A length in the bytes is impossible, which Kafka does not foresee where it foresees an early end (X-UP-06)."""


@dataclass(frozen=True, slots=True)
class Subscription:
    """What a member tells the leader. ``generation_id`` -1 is "absent" (A-EMB-09); ``rack_id`` is never empty."""

    topics: tuple[str, ...]
    user_data: bytes | None = None
    owned_partitions: tuple[TopicPartition, ...] = ()
    generation_id: int = NO_GENERATION
    rack_id: str | None = None


@dataclass(frozen=True, slots=True)
class Assignment:
    """What the leader tells a member."""

    partitions: tuple[TopicPartition, ...]
    user_data: bytes | None = None


def encode_subscription(subscription: Subscription, version: int = HIGHEST_VERSION) -> bytes:
    """Write a subscription. Fields that ``version`` does not have are left out (A-EMB-02, A-EMB-04, A-EMB-07).

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
    """Read a subscription of any version; bytes after the body are ignored. Raises ``SchemaError`` (A-EMB-05)."""
    reader = Reader(data)
    version = _usable(reader.int16())
    topics = tuple(reader.array(reader.string))
    user_data = reader.nullable_bytes()
    owned = tuple(_each(reader.topic_partitions())) if version >= 1 else ()
    generation = reader.int32() if version >= 2 else NO_GENERATION
    rack = reader.nullable_string() if version >= 3 else None
    # A-EMB-09: any negative generation is no generation; an empty rack is no rack.
    return Subscription(topics, user_data, owned, max(generation, NO_GENERATION), rack or None)


def subscribed_topics(data: bytes) -> tuple[str, ...]:
    """The topics of a subscription, read as its version 0, which every later one begins with (G-DATA-10). Raises
    ``SchemaError``."""
    reader = Reader(data)
    reader.int16()
    topics = tuple(reader.array(reader.string))
    reader.nullable_bytes()
    return topics


def encode_assignment(assignment: Assignment, version: int = HIGHEST_VERSION) -> bytes:
    """Write an assignment: topics in the order in which they are first met (A-EMB-03, A-EMB-04)."""
    version = _usable(version)
    return struct.pack(">h", version) + encode_partitions(assignment.partitions) + _bytes(assignment.user_data)


def decode_assignment(data: bytes) -> Assignment:
    """Read an assignment of any version. Raises ``SchemaError`` (A-EMB-05)."""
    topics, user_data = decode_topics(data)
    return Assignment(tuple(_each(topics)), user_data)


def encode_topics(topics: Iterable[tuple[str, list[int]]], version: int) -> bytes:
    """Write an assignment without user data, topic by topic; one without partitions is kept. Raises ``SchemaError``."""
    return struct.pack(">h", _usable(version)) + _topics(topics) + _bytes(None)


def decode_topics(data: bytes) -> tuple[list[tuple[str, list[int]]], bytes | None]:
    """An assignment topic by topic, as it is listed, and its user data. Raises ``SchemaError`` (A-EMB-05)."""
    reader = Reader(data)
    _usable(reader.int16())
    return reader.topic_partitions(), reader.nullable_bytes()


def version_of(data: bytes) -> int:
    """The version that the bytes begin with. Raises ``SchemaError`` if there is none."""
    return Reader(data).int16()


def _usable(version: int) -> int:
    if version < 0:
        raise SchemaError(f"unsupported version {version}")
    return min(version, HIGHEST_VERSION)  # A-EMB-05


def _string(text: str) -> bytes:
    data = text.encode("utf-8", "replace")  # A-EMB-10
    if len(data) > 32_767:
        raise SchemaError(f"a string of {len(data)} bytes does not fit")
    return struct.pack(">h", len(data)) + data


#: the bytes of a surrogate, which Java's decoder takes for one malformed run, and Python's for two or three
_SURROGATE = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]?")


def text_of(data: bytes) -> str:
    """Text that may be malformed, as Kafka reads it: one U+FFFD for each malformed run (A-EMB-10)."""
    return _SURROGATE.sub(b"\xff", data).decode("utf-8", "replace")


def _bytes(data: bytes | None) -> bytes:
    return struct.pack(">i", -1) if data is None else struct.pack(">i", len(data)) + data


def _array(items: Iterable[Item], write: Callable[[Item], bytes]) -> bytes:
    written = [write(item) for item in items]
    return struct.pack(">i", len(written)) + b"".join(written)


def encode_partitions(partitions: Iterable[TopicPartition]) -> bytes:
    """An array of topics with their partitions: grouped by topic, in the order given (A-EMB-07)."""
    topics: dict[str, list[int]] = {}
    for topic, partition in partitions:
        topics.setdefault(topic, []).append(partition)
    return _topics(topics.items())


def _topics(topics: Iterable[tuple[str, list[int]]]) -> bytes:
    return _array(topics, lambda row: _string(row[0]) + _array(row[1], lambda number: struct.pack(">i", number)))


def _each(rows: Iterable[tuple[str, list[int]]]) -> Iterable[TopicPartition]:
    """One entry a partition, as they are listed: a topic may come twice (A-EMB-11)."""
    for topic, partitions in rows:
        for partition in partitions:
            yield TopicPartition(topic, partition)


class Reader:
    """Reads from the front; whatever does not fit is a ``SchemaError``, and a ``LengthError`` if a length says so."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def _take(self, size: int) -> bytes:
        end = self._at + size
        if size < 0 or end > len(self._data):
            raise LengthError(f"needs {size} bytes at {self._at} of {len(self._data)}")
        taken = self._data[self._at : end]
        self._at = end
        return taken

    def _number(self, size: int) -> int:
        if size > len(self._data) - self._at:
            raise SchemaError(f"ends at {len(self._data)}, within a number")
        return int.from_bytes(self._take(size), "big", signed=True)

    def int16(self) -> int:
        """A signed number of two bytes."""
        return self._number(2)

    def int32(self) -> int:
        """A signed number of four bytes."""
        return self._number(4)

    def string(self) -> str:
        """A text after its length."""
        return text_of(self._take(self.int16()))

    def nullable_string(self) -> str | None:
        """A text after its length, which is -1 if there is none."""
        size = self.int16()
        return None if size < 0 else text_of(self._take(size))

    def nullable_bytes(self) -> bytes | None:
        """Bytes after their length, which is -1 if there are none."""
        size = self.int32()
        return None if size < 0 else self._take(size)

    def array(self, read: Callable[[], Item]) -> list[Item]:
        """Items after their number."""
        size = self.int32()
        if size < 0 or size > len(self._data) - self._at:  # every element takes at least a byte
            raise LengthError(f"an array of {size} elements in {len(self._data) - self._at} bytes")
        return [read() for _ in range(size)]

    def topic_partitions(self) -> list[tuple[str, list[int]]]:
        """Topics as they are listed, each with its partitions."""
        return self.array(lambda: (self.string(), self.array(self.int32)))
