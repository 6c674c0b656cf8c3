"""The values of the closed log: records, copies, brokers, the cluster."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from typing import Final, NamedTuple, TypeAlias

GONE: Final = ""  #: the value of a tombstone, and of a key without a record

#: The result of all records: a value for each key, in the order of the configuration's keys.
Contents: TypeAlias = tuple[str, ...]


class Row(NamedTuple):
    """A record; ``key`` is the number of the key."""

    offset: int
    epoch: int
    key: int
    value: str


Rows: TypeAlias = tuple[Row, ...]  #: by offset, with gaps where a cleaner removed records


class Copy(NamedTuple):
    """A broker's copy: its records, the offset of the next one, the high watermark."""

    rows: Rows = ()
    end: int = 0
    high_watermark: int = 0


class Memory(NamedTuple):
    """A coordinator's memory: contents as far as read, the offset read up to, offsets of the writes to be answered."""

    contents: Contents
    upto: int
    unanswered: frozenset[int]


class Broker(NamedTuple):
    """A broker: the number of the last election that it knows (from 1), its copy, its coordinator."""

    known_epoch: int
    copy: Copy
    memory: Memory


class Election(NamedTuple):
    """The winner (the broker's number), and the offset at which its records begin."""

    leader: int
    start: int


class Cluster(NamedTuple):
    """The controller's knowledge: all elections, and whose copies count."""

    elections: tuple[Election, ...]
    in_sync: frozenset[int]

    @property
    def epoch(self) -> int:
        return len(self.elections)

    @property
    def leader(self) -> int:
        return self.elections[-1].leader

    def led_by(self, number: int, broker: Broker) -> bool:
        """Return whether the broker coordinates, as far as it knows."""
        return self.elections[broker.known_epoch - 1].leader == number


def place(rows: Rows, offset: int) -> int:
    """Return the place of the first record at the offset or after it."""
    return bisect_left(rows, (offset,))


def below(rows: Rows, offset: int) -> Rows:
    """Return the records before the offset."""
    return rows[: place(rows, offset)]


def replay(rows: Iterable[Row], contents: Contents) -> Contents:
    """Return the contents after these records, applied in order."""
    found = [*contents]
    for row in rows:
        found[row.key] = row.value
    return tuple(found)
