"""Many records at once, as a load reads and a commit writes them: it comes to the same as one by one, in a fraction of
the time.

Nearly all of a log are offsets; their keys come again and again, and their values have one of two shapes. A run of such
rows makes no records. Of each partition it leaves one ``StoredOffset``, to which every later row of that partition only
gives its value's bytes and its place. Groups and partitions are known by the bytes of their part of the key, which are
taken apart where they are met first. Whatever is otherwise goes the long way, and ends the run.
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
    Row,
    StoredOffset,
    is_packed,
)
from fencepost.protocol.offset_messages import ZERO_ID
from fencepost.protocol.offset_records import OffsetCommitKey, OffsetCommitValue
from fencepost.protocol.records import Record

_EMPTY: Final = 1  #: the length of a text of no bytes, and one
_ID_TAG: Final = (1, 0, 16)  #: one tag, of number 0, and the length of an id
_VERSION: Final = 4  #: of the values that are packed
_SIZE: Final = Struct(">h")
_PARTITION: Final = Struct(">i")


class Loading:
    """Takes the records of a log in order. ``one`` reads a row of any kind, and raises what it raises; ``topic_ids``:
    the release knows them."""

    __slots__ = ("_groups", "_length", "_names", "_one", "_partitions", "_parts", "_rows", "_topic_ids")

    def __init__(self, topic_ids: bool, one: Callable[[bytes | None, bytes | None], Record | None]) -> None:
        self._topic_ids = topic_ids
        self._one = one
        self._parts: list[Record | Commits] = []
        self._length = 0
        #: by the part of a key up to the group's name, and by the rest of it; None: not so that one is known by it
        self._names: dict[bytes, str | None] = {}
        self._partitions: dict[bytes, Partition | None] = {}
        #: of the run that is under way
        self._groups: dict[str, dict[Partition, StoredOffset]] = {}
        self._rows: list[Row] = []

    def take(self, rows: Iterable[Row]) -> None:
        """Rows of which none is of a transaction. Raises what reading one raises."""
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
                            known.told = value
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
        """A record that was read."""
        self._end_run()
        self._parts.append(record)
        self._length += 1

    def done(self) -> Logged:
        """All that was taken."""
        self._end_run()
        return Logged(tuple(self._parts), self._length, self._each)

    def _each(self, rows: list[Row]) -> list[Record]:
        """Rows one by one, should somebody ask for them."""
        read = [self._one(key, value) for key, value in rows]
        return [record for record in read if record is not None]

    def _end_run(self) -> None:
        if self._rows:
            self._parts.append(Commits({name: found for name, found in self._groups.items() if found}, self._rows))
        self._groups, self._rows = {}, []


def _name(begin: bytes) -> str | None:
    """The group of an offset's key that begins so; None for any other key, and for a name that is malformed."""
    if begin[:2] != b"\x00\x01" or begin[2] > 127:
        return None
    try:
        return begin[4:].decode()
    except UnicodeDecodeError:
        return None


def _partition(rest: bytes) -> Partition | None:
    """Topic and partition of an offset's key that ends so, with nothing behind the partition; None for any other."""
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
    """The bytes of these records. ``one`` writes a record of any kind, and raises what it raises; ``version``: of the
    values of offsets that have no time to expire; ``topic_ids``: the release knows them."""
    if version != _VERSION:
        return [one(record) for record in records]
    found = []
    names: dict[tuple[str, str], bytes] = {}
    begin, bare, named = _PARTITION.pack, BARE.pack, NAMED.pack
    for record in records:
        key, value = record.key, record.value
        if (
            type(key) is not OffsetCommitKey
            or type(value) is not OffsetCommitValue
            or value.expire_timestamp != -1
            or value.metadata
        ):
            found.append(one(record))
            continue
        both = key.group, key.topic
        prefix = names.get(both)
        if prefix is None:
            whole = one(record)
            names[both] = whole[0][:-4]
            found.append(whole)
            continue
        try:
            told = begin(key.partition)
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
        found.append(one(record) if data is None else (prefix + told, data))
    return found
