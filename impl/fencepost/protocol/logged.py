"""Sequences of records that are created on first use: those of a commit, and those of a log as a load gets them.

The creation of the records of a commit, three objects for each partition, would take half of the time of a commit of
many partitions. But few readers need them: a store writes the bytes, and the coordinator keeps them.

Nearly all records of a log are offsets. Later records supersede most of them, and few of the rest are needed soon. So a
program that reads a log from bytes (``fencepost.codec``) creates no record for each. Of consecutive commits it keeps
the last one of each partition, as the bytes of its value, and decodes them on first use.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from struct import Struct
from typing import Any, Final, TypeAlias, overload

from .offset_messages import ZERO_ID
from .offset_records import OffsetCommitKey, OffsetCommitValue
from .records import Record

#: A topic name and a partition number.
Partition: TypeAlias = tuple[str, int]
#: Key and value of a log record, in any bytes.
Row: TypeAlias = tuple[bytes | None, bytes | None]

BARE: Final = Struct(">hqiBqB")  #: version 4: offset, leader epoch, no metadata, time, no tags
NAMED: Final = Struct(">hqiBqBBB16s")  #: the same with the id of the topic as its one tag
BARE_SIZE: Final = 24
NAMED_SIZE: Final = 42


def is_packed(value: bytes) -> bool:
    """Return whether these bytes are the value of an offset in one of the two usual layouts: version 4 without
    metadata, and either without tags or with only the topic id (F-REC-11)."""
    size = len(value)
    if size == NAMED_SIZE:
        return (
            value[1] == 4 and value[0] == 0 and value[14] == 1 and value[23] == 1 and value[24] == 0 and value[25] == 16
        )
    return size == BARE_SIZE and value[1] == 4 and value[0] == 0 and value[14] == 1 and value[23] == 0


def unpacked(value: bytes) -> OffsetCommitValue:
    """Decode a value for which ``is_packed`` holds."""
    if len(value) == BARE_SIZE:
        _, offset, epoch, _, time, _ = BARE.unpack(value)
        return OffsetCommitValue(offset, leader_epoch=epoch, commit_timestamp=time, topic_id=ZERO_ID)
    _, offset, epoch, _, time, _, _, _, topic_id = NAMED.unpack(value)
    return OffsetCommitValue(offset, leader_epoch=epoch, commit_timestamp=time, topic_id=topic_id)


class StoredOffset:
    """The value of an offset record, and the record's offset in the log (O-TXN-08). Equal to another with the same
    data. It is not changed once it is in a state or a ``Commits``."""

    __slots__ = ("place", "raw_value")

    def __init__(self, raw_value: OffsetCommitValue | bytes, place: int) -> None:
        self.raw_value = raw_value
        self.place = place

    @property
    def value(self) -> OffsetCommitValue:
        """The record's value; bytes are decoded once."""
        raw_value = self.raw_value
        if isinstance(raw_value, bytes):
            raw_value = self.raw_value = unpacked(raw_value)
        return raw_value

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, StoredOffset):
            return NotImplemented
        return self.place == other.place and self.value == other.value

    def __hash__(self) -> int:
        return hash((self.value, self.place))

    def __repr__(self) -> str:
        return f"StoredOffset(value={self.value!r}, place={self.place})"

    def __reduce__(self) -> tuple[Any, ...]:
        return StoredOffset, (self.value, self.place)


def for_load(records: Sequence[Record]) -> tuple[Record, ...] | Logged:
    """Return the records in the form for ``Load``."""
    return records if isinstance(records, Logged) else tuple(records)


class Commits:
    """Consecutive plain commits of a log. ``groups``: the last commit of each partition, by group; groups and
    partitions in the order of their first commit. ``rows``: all of them unchanged."""

    __slots__ = ("groups", "rows")

    def __init__(self, groups: dict[str, dict[Partition, StoredOffset]], rows: list[Row]) -> None:
        self.groups = groups
        self.rows = rows


class RecordsOnUse(Sequence[Record]):
    """A sequence of records that are created when they are first used. A subclass sets ``_records`` to None, and has
    the length."""

    __slots__ = ("_records",)
    _records: tuple[Record, ...] | None

    @abstractmethod
    def _created(self) -> Iterable[Record]:
        """Create the records."""

    @property
    def records(self) -> tuple[Record, ...]:
        """The records, in log order."""
        if self._records is None:
            self._records = tuple(self._created())
        return self._records

    def __iter__(self) -> Iterator[Record]:
        return iter(self.records)

    @overload
    def __getitem__(self, place: int) -> Record: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[Record, ...]: ...
    def __getitem__(self, place: Any) -> Any:
        return self.records[place]


class PlainCommit(RecordsOnUse):
    """The records of a commit outside of transactions. ``rows``: its partitions, each with the bytes of its value, for
    which ``is_packed`` holds."""

    __slots__ = ("group", "rows")

    def __init__(self, group: str, rows: Sequence[tuple[Partition, bytes]]) -> None:
        self.group = group
        self.rows = rows
        self._records = None

    def _created(self) -> list[Record]:
        group = self.group
        return [Record(OffsetCommitKey(group, topic, index), unpacked(value)) for (topic, index), value in self.rows]

    def __len__(self) -> int:
        return len(self.rows)


class Logged(RecordsOnUse):
    """The records of a log, read from bytes: a sequence of records of which ``Load`` uses only ``parts``. It must not
    be changed."""

    __slots__ = ("_decode", "_length", "parts")

    def __init__(
        self, parts: tuple[Record | Commits, ...], length: int, decode: Callable[[list[Row]], list[Record]]
    ) -> None:
        self.parts = parts
        self._length = length
        self._decode = decode
        self._records = None

    def _created(self) -> list[Record]:
        found: list[Record] = []
        for part in self.parts:
            if isinstance(part, Commits):
                found += self._decode(part.rows)
            else:
                found.append(part)
        return found

    def __len__(self) -> int:
        return self._length

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and self.records == tuple(other)

    __hash__ = None  # type: ignore[assignment]  # as for a mutable sequence: it is filled lazily

    def __reduce__(self) -> tuple[Any, ...]:
        return tuple, (self.records,)

    def __repr__(self) -> str:
        return f"Logged({list(self.records)})"
