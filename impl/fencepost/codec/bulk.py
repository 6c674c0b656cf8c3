"""Fast paths for many records: loads and commits give the same result as one record at a time, in less time.

Nearly all records of a log are offsets. Their keys repeat, and their values have one of two layouts. For consecutive
rows of this kind no records are created. Each partition gets one ``StoredOffset``, and each later row only replaces its
value's bytes and its place. Groups and partitions are looked up by the bytes of their part of the key, which are
decoded only the first time. Any other row takes the slow path, and ends the run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from struct import Struct, error
from typing import Final

from fencepost.protocol.logged import (
    BARE,
    NAMED,
    NAMED_SIZE,
    Commits,
    Logged,
    Partition,
    PlainCommit,
    Row,
    StoredOffset,
    is_packed,
)
from fencepost.protocol.offset_messages import ZERO_ID
from fencepost.protocol.offset_records import OffsetCommitKey, OffsetCommitValue
from fencepost.protocol.records import Record

from .offsets import key_prefix

_EMPTY: Final = 1  #: the length of an empty text, plus one
_ID_TAG: Final = (1, 0, 16)  #: one tag, its number 0, and the length of an id
_VERSION: Final = 4  #: of packed values
_SIZE: Final = Struct(">h")
_PARTITION: Final = Struct(">i")


class Loading:
    """Reads the records of a log in order. ``one``: reads a row of any kind, and may raise; ``topic_ids``: whether the
    release has topic ids."""

    __slots__ = ("_groups", "_length", "_names", "_one", "_partitions", "_parts", "_rows", "_topic_ids")

    def __init__(self, topic_ids: bool, one: Callable[[bytes | None, bytes | None], Record | None]) -> None:
        self._topic_ids = topic_ids
        self._one = one
        self._parts: list[Record | Commits] = []
        self._length = 0
        #: by the part of a key up to the group's name, and by the rest; None: the part is not that of an offset key
        self._names: dict[bytes, str | None] = {}
        self._partitions: dict[bytes, Partition | None] = {}
        #: of the current run
        self._groups: dict[str, dict[Partition, StoredOffset]] = {}
        self._rows: list[Row] = []

    def take(self, rows: Iterable[Row]) -> None:
        """Take rows without transactions. Raises the errors of ``one``."""
        refused = 0 if self._topic_ids else NAMED_SIZE
        names, partitions, run = self._names, self._partitions, self._rows
        head, committed, place = b"", dict[Partition, StoredOffset](), self._length
        for row in rows:
            key, value = row
            if key is not None and value is not None and is_packed(value) and len(value) != refused and len(key) > 4:
                size = 4 + (key[2] << 8) + key[3]
                begin = key[:size]
                if begin != head:
                    if begin not in names:
                        names[begin] = _name(begin)
                    name = names[begin]
                    if name is not None:
                        head = begin
                        found = self._groups.get(name)
                        if found is None:
                            found = self._groups[name] = {}
                        committed = found
                if begin == head:
                    rest = key[size:]
                    partition = partitions.get(rest)
                    if partition is None and rest not in partitions:
                        partition = partitions[rest] = _partition(rest)
                    if partition is not None:
                        known = committed.get(partition)
                        if known is None:
                            committed[partition] = StoredOffset(value, place)
                        else:
                            known.raw_value = value
                            known.place = place
                        run.append(row)
                        place += 1
                        continue
            self._length = place
            record = self._one(key, value)
            if record is not None:
                self.add(record)
                place += 1
                run, head = self._rows, b""
        self._length = place

    def add(self, record: Record) -> None:
        """Add a decoded record."""
        self._end_run()
        self._parts.append(record)
        self._length += 1

    def done(self) -> Logged:
        """Return all rows taken."""
        self._end_run()
        return Logged(tuple(self._parts), self._length, self._each)

    def _each(self, rows: list[Row]) -> list[Record]:
        """Decode rows one by one, when a caller needs them."""
        read = [self._one(key, value) for key, value in rows]
        return [record for record in read if record is not None]

    def _end_run(self) -> None:
        if self._rows:
            self._parts.append(Commits({name: found for name, found in self._groups.items() if found}, self._rows))
        self._groups, self._rows = {}, []


def _name(begin: bytes) -> str | None:
    """Return the group of an offset key that starts with these bytes; None for another key, or a malformed name."""
    if begin[:2] != b"\x00\x01" or begin[2] > 127:
        return None
    try:
        return begin[4:].decode()
    except UnicodeDecodeError:
        return None


def _partition(rest: bytes) -> Partition | None:
    """Return topic and partition of an offset key that ends with these bytes; None if they do not fit exactly."""
    size = len(rest) - 6
    if size < 0 or _SIZE.unpack_from(rest)[0] != size:
        return None
    try:
        return rest[2:-4].decode(), _PARTITION.unpack_from(rest, size + 2)[0]
    except UnicodeDecodeError:
        return None


def written(
    records: Iterable[Record], version: int, topic_ids: bool, one: Callable[[Record], tuple[bytes, bytes | None]]
) -> list[tuple[bytes, bytes | None]]:
    """Encode records. ``one``: encodes a record of any kind, and may raise; ``version``: of offset values without
    expiry; ``topic_ids``: whether the release has topic ids."""
    if version != _VERSION:
        return [one(record) for record in records]
    if isinstance(records, PlainCommit) and topic_ids:
        return _committed(records)
    found = []
    group, topic, prefix = "", "", b""
    begin, bare, named = _PARTITION.pack, BARE.pack, NAMED.pack
    for record in records:
        key, value = record.key, record.value
        if (
            type(key) is not OffsetCommitKey
            or type(value) is not OffsetCommitValue
            or value.expire_timestamp != -1
            or value.expires_at_minus_one
            or value.metadata
        ):
            found.append(one(record))
            continue
        if key.topic != topic or key.group != group or not prefix:
            group, topic = key.group, key.topic
            prefix = key_prefix(group, topic)
        try:
            suffix = begin(key.partition)
            topic_id = value.topic_id
            time = value.commit_timestamp
            if not topic_ids or topic_id == ZERO_ID:
                data = bare(version, value.offset, value.leader_epoch, _EMPTY, time, 0)
            elif len(topic_id) == 16:
                data = named(version, value.offset, value.leader_epoch, _EMPTY, time, *_ID_TAG, topic_id)
            else:
                data = None
        except error:
            data = None
        found.append(one(record) if data is None else (prefix + suffix, data))
    return found


def _committed(commit: PlainCommit) -> list[tuple[bytes, bytes | None]]:
    """Encode a commit whose values are encoded already. Raises ``Unwritable``."""
    found: list[tuple[bytes, bytes | None]] = []
    group, of, prefix, partition = commit.group, None, b"", _PARTITION.pack
    for (topic, index), value in commit.rows:
        if topic is not of:
            of, prefix = topic, key_prefix(group, topic)
        found.append((prefix + partition(index), value))
    return found
