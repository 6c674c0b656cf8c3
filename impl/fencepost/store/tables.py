"""The tables of a store, and the statements on them, which are the same for SQLite and PostgreSQL.

``?`` is the placeholder for a value. Records are stored in batches (``packed``). Each partition stores its number of
records, so that a missing record is detected.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import partial
from itertools import repeat
from typing import Any, Final, NamedTuple, Protocol

from fencepost.codec import CodecError
from fencepost.log import FencedEpoch
from fencepost.protocol.logged import Logged
from fencepost.protocol.offset_records import ControlKey, Producer

from . import packed
from .base import StoreError
from .kept import Change, DropBatches, Kept, Put, PutBatch
from .packed import CODEC, PLAIN, Header, Pair, Run

#: Version of the format; a newer one is not read.
FORMAT: Final = 2
RECORDS: Final = """CREATE TABLE records (
        number INTEGER NOT NULL, place BIGINT NOT NULL, leader_epoch INTEGER NOT NULL, producer_id BIGINT,
        producer_epoch INTEGER, control INTEGER NOT NULL, data {blob} NOT NULL, checksum BIGINT NOT NULL,
        PRIMARY KEY (number, place)){end}"""
TABLES: Final = (
    """CREATE TABLE partitions (
        number INTEGER PRIMARY KEY, leader_epoch INTEGER NOT NULL, next_offset BIGINT NOT NULL,
        row_count BIGINT NOT NULL, compacted BIGINT NOT NULL)""",
    RECORDS,
    """CREATE TABLE kept_values (
        kind TEXT NOT NULL, name TEXT NOT NULL, text TEXT NOT NULL, checksum BIGINT NOT NULL,
        PRIMARY KEY (kind, name)){end}""",
    """CREATE TABLE kept_batches (
        topic_id {blob} NOT NULL, number INTEGER NOT NULL, base BIGINT NOT NULL, data {blob} NOT NULL,
        checksum BIGINT NOT NULL, PRIMARY KEY (topic_id, number, base)){end}""",
)
#: Largest number of batches to read at a time.
_AT_ONCE: Final = 10_000


class DamagedStore(StoreError):
    """The data in the store is not the data that was written; the message says where."""


class Statements(Protocol):
    """A database connection, as far as tables need it."""

    def rows(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Run a statement; return its rows."""

    def run(self, statement: str, values: Sequence[Any] = ()) -> int:
        """Run a statement; return the number of affected rows."""

    def many(self, statement: str, values: Sequence[Sequence[Any]]) -> int:
        """Run a statement once for each element; return the total number of affected rows."""

    def insert(self, table: str, rows: Sequence[Sequence[Any]]) -> None:
        """Insert rows with all columns of a table."""


class Bytes(NamedTuple):
    """An undecoded record, for a compaction; its key is compared by its bytes. ``batch``: the place of its batch."""

    batch: int
    place: int
    key: bytes | ControlKey
    value: bytes | None
    producer: Producer | None


#: From the fields to ``Bytes``; ``Bytes._make`` does the same in twice the time.
_bytes_of: Final[Callable[[Iterable[Any]], Bytes]] = partial(tuple.__new__, Bytes)


class Stored(NamedTuple):
    """A batch as it is stored: its checksum, and its undecoded records."""

    checksum: int
    records: list[Bytes]


class State(NamedTuple):
    """The row of a partition."""

    leader_epoch: int
    next_offset: int
    row_count: int
    compacted: int


def make(on: Statements, partitions: int, blob: str, end: str) -> None:
    """Create the tables of a new store."""
    for statement in TABLES:
        on.run(statement.format(blob=blob, end=end))
    on.many("INSERT INTO partitions VALUES (?, 0, 0, 0, 0)", [(number,) for number in range(partitions)])


def count(on: Statements) -> int:
    """Return the number of partitions."""
    numbers = [number for (number,) in on.rows("SELECT number FROM partitions ORDER BY number")]
    if not numbers or numbers != list(range(len(numbers))):
        raise DamagedStore(f"the store must have partitions 0, 1, 2 and so on (got {numbers})")
    return len(numbers)


def lead(on: Statements, number: int) -> int:
    """Start and return a new leader epoch."""
    statement = "UPDATE partitions SET leader_epoch = leader_epoch + 1 WHERE number = ? RETURNING leader_epoch"
    ((epoch,),) = on.rows(statement, (number,))
    return int(epoch)


def fence(on: Statements, number: int, leader_epoch: int, further: int = 0) -> int:
    """Reserve places for ``further`` records, and return the first. No other leader can be elected before this
    transaction ends. Raises ``FencedEpoch`` if one was elected already."""
    statement = (
        "UPDATE partitions SET next_offset = next_offset + ?, row_count = row_count + ?"
        " WHERE number = ? AND leader_epoch = ? RETURNING next_offset"
    )
    found = on.rows(statement, (further, further, number, leader_epoch))
    if not found:
        ((epoch,),) = on.rows("SELECT leader_epoch FROM partitions WHERE number = ?", (number,))
        raise FencedEpoch(leader_epoch, epoch)
    return int(found[0][0]) - further


@dataclass(slots=True, eq=False)
class _Batch:
    number: int
    place: int
    leader_epoch: int
    header: Header
    pairs: list[Pair]


class Appends:
    """The appends of one transaction. Their records are collected into few batches and written with few statements. The
    first append to a partition checks its leader, which cannot change before the transaction ends."""

    def __init__(self, on: Statements) -> None:
        self.on = on
        self.places: dict[tuple[int, int], int] = {}  #: by partition and epoch: the place of the next record
        self.known: dict[tuple[int, int], int] = {}  #: and the place up to which the partition's row counts records
        self.last: dict[tuple[int, int], _Batch] = {}  #: and the batch for the next records
        self.batches: list[_Batch] = []

    def flush(self) -> None:
        """Write the batches. Call this before any other statement on the tables, and before the transaction ends."""
        if self.batches:
            self.on.insert("records", [_row(batch) for batch in self.batches])
        for (number, leader_epoch), place in self.places.items():
            more = place - self.known[number, leader_epoch]
            if more:
                fence(self.on, number, leader_epoch, more)
        self.forget()

    def forget(self) -> None:
        """Forget the batches, because the transaction was rolled back."""
        self.places, self.known, self.last, self.batches = {}, {}, {}, []


def append(to: Appends, number: int, runs: Sequence[Run], leader_epoch: int) -> None:
    """Append records to a partition. Raises ``FencedEpoch``; then none of them was added."""
    who = number, leader_epoch
    place = to.places.get(who)
    if place is None:
        more = sum([len(run.pairs) for run in runs])
        place = fence(to.on, number, leader_epoch, more)
        to.known[who] = place + more
    for run in runs:
        batch = to.last.get(who)
        if batch is None or batch.header != run.header or len(batch.pairs) >= packed.MOST:
            batch = to.last[who] = _Batch(number, place, leader_epoch, run.header, [])
            to.batches.append(batch)
        batch.pairs += run.pairs
        place += len(run.pairs)
    to.places[who] = place


def _row(batch: _Batch) -> tuple[Any, ...]:
    data = packed.packed(batch.pairs)
    checksum = packed.checksum(batch.number, batch.place, batch.header, data)
    return (batch.number, batch.place, batch.leader_epoch, *batch.header, data, checksum)


def state(on: Statements, number: int) -> State:
    """Return the row of the partition."""
    found = on.rows(
        "SELECT leader_epoch, next_offset, row_count, compacted FROM partitions WHERE number = ?", (number,)
    )
    return State(*found[0])


_COLUMNS: Final = "place, producer_id, producer_epoch, control, data, checksum"


def read(on: Statements, number: int) -> tuple[State, list[tuple[Any, ...]]]:
    """Return a partition's row and its batches; they are consistent if read in one transaction."""
    return state(on, number), on.rows(f"SELECT {_COLUMNS} FROM records WHERE number = ? ORDER BY place", (number,))


def decoded(number: int, known: State, rows: Iterable[tuple[Any, ...]]) -> Logged:
    """Decode the batches of a partition. Raises ``DamagedStore`` for damaged data."""
    loading, last = CODEC.loading(), -1
    for row in rows:
        place, header, found = _decoded_batch(number, row)
        last = place + found[-1][0]
        try:
            if header == PLAIN:
                loading.take([(key, value) for _, key, value in found])
                continue
            producer = header.producer
            for _, key, value in found:
                record = CODEC.loaded(key, value, producer, control=bool(header.control))
                if record is not None:
                    loading.add(record)
        except CodecError as reason:
            raise DamagedStore(f"partition {number}, offset {place + _unread(header, found)}: {reason}") from None
    records = loading.done()
    if last >= known.next_offset:
        raise DamagedStore(f"partition {number} ends at offset {known.next_offset}, but has a record at {last}")
    if len(records) != known.row_count:
        raise DamagedStore(f"partition {number} must have {known.row_count} records (found {len(records)})")
    return records


def _decoded_batch(number: int, row: tuple[Any, ...]) -> tuple[int, Header, list[packed.Kept]]:
    """Return the place of a batch, its header and its records. Raises ``DamagedStore``."""
    place, header, data = _whole(number, row)
    return place, header, packed.unpacked(data)


def _whole(number: int, row: tuple[Any, ...]) -> tuple[int, Header, bytes]:
    """Return the place of a batch, its header and its bytes. Raises ``DamagedStore``."""
    place, producer_id, producer_epoch, control, data, checksum = row
    header, data = Header(producer_id, producer_epoch, control), bytes(data)
    if checksum != packed.checksum(number, place, header, data):
        raise DamagedStore(f"partition {number}, offset {place}: wrong checksum, the records were changed")
    return place, header, data


def _unread(header: Header, found: Sequence[packed.Kept]) -> int:
    """Return the place of the first record that cannot be decoded."""
    for place, key, value in found:
        try:
            CODEC.loaded(key, value, header.producer, control=bool(header.control))
        except CodecError:
            return place
    return 0


def raw(on: Statements, number: int, after: int, most: int) -> list[Stored]:
    """Return at most ``most`` batches after a place. Raises ``DamagedStore``."""
    rows = on.rows(
        f"SELECT {_COLUMNS} FROM records WHERE number = ? AND place > ? ORDER BY place LIMIT ?", (number, after, most)
    )
    found = []
    for row in rows:
        batch, header, data = _whole(number, row)
        places, keys, values = packed.keys(data)
        # of a control record; 1 at the end of its key is a commit (F-REC-26)
        names = [ControlKey(key[-1] == 1) for key in keys] if header.control else keys
        columns = repeat(batch), map(batch.__add__, places), names, values, repeat(header.producer)
        some = list(map(_bytes_of, zip(*columns, strict=False)))
        found.append(Stored(row[-1], some))
    return found


class Doomed(NamedTuple):
    """Records of one batch to delete: their places; if these are all of the batch, its checksum."""

    places: Set[int]
    whole: int | None


def delete(on: Statements, number: int, doomed: Mapping[int, Doomed]) -> int:
    """Delete records, given by the places of their batches; return their number. Raises ``DamagedStore``."""
    gone = 0
    for batch, (some, whole) in doomed.items():
        where = (number, batch)
        if whole is not None:  # if it has not changed since, it need not be read again
            statement = "DELETE FROM records WHERE number = ? AND place = ? AND checksum = ?"
            if on.run(statement, (*where, whole)):
                gone += len(some)
                continue
        (row,) = on.rows(f"SELECT {_COLUMNS} FROM records WHERE number = ? AND place = ?", where)
        _, header, found = _decoded_batch(number, row)
        left = [each for each in found if batch + each[0] not in some]
        gone += len(found) - len(left)
        if left:
            data = packed.repacked(left)
            values = (data, packed.checksum(number, batch, header, data), *where)
            on.run("UPDATE records SET data = ?, checksum = ? WHERE number = ? AND place = ?", values)
        else:
            on.run("DELETE FROM records WHERE number = ? AND place = ?", where)
    on.run("UPDATE partitions SET row_count = row_count - ? WHERE number = ?", (gone, number))
    return gone


def compacted(on: Statements, number: int) -> int:
    """Record the end of a compaction; return the number of remaining records."""
    on.run("UPDATE partitions SET compacted = row_count WHERE number = ?", (number,))
    return state(on, number).compacted


def change(on: Statements, each: Change) -> None:
    """Apply one change of data other than group records."""
    match each:
        case PutBatch():
            place = (each.topic_id, each.partition, each.base)
            on.run("DELETE FROM kept_batches WHERE topic_id = ? AND number = ? AND base = ?", place)
            row = (*place, each.data, zlib.crc32(each.data))
            on.run("INSERT INTO kept_batches VALUES (?, ?, ?, ?, ?)", row)
        case DropBatches(partition=None):
            on.run("DELETE FROM kept_batches WHERE topic_id = ?", (each.topic_id,))
        case DropBatches():
            place = (each.topic_id, each.partition, each.below)  # type: ignore[assignment]
            on.run("DELETE FROM kept_batches WHERE topic_id = ? AND number = ? AND base < ?", place)
        case Put():
            on.run("DELETE FROM kept_values WHERE kind = ? AND name = ?", (each.kind, each.name))
            if each.value is not None:
                checksum = zlib.crc32(each.value.encode())
                on.run("INSERT INTO kept_values VALUES (?, ?, ?, ?)", (each.kind, each.name, each.value, checksum))


def kept(on: Statements) -> Kept:
    """Return all values. Raises ``DamagedStore``."""
    found = Kept()
    for kind, name, text, checksum in on.rows("SELECT kind, name, text, checksum FROM kept_values"):
        if zlib.crc32(text.encode()) != checksum:
            raise DamagedStore(f"{kind} {name!r}: wrong checksum, the text was changed")
        found.values.setdefault(kind, {})[name] = text
    return found


def places(on: Statements) -> list[tuple[bytes, int]]:
    """Return the topic ids and partitions that have batches."""
    rows = on.rows("SELECT DISTINCT topic_id, number FROM kept_batches ORDER BY topic_id, number")
    return [(bytes(topic_id), number) for topic_id, number in rows]


def batches(
    on: Statements, topic_id: bytes, number: int, offset: int, most: int, *, within: bool
) -> list[tuple[int, bytes]]:
    """Return batches of a topic from an offset on, with their first offsets: at most ``most`` bytes, but at least one
    batch. Raises ``DamagedStore``."""
    place = (topic_id, number)
    if within:
        found = on.rows(
            "SELECT max(base) FROM kept_batches WHERE topic_id = ? AND number = ? AND base <= ?", (*place, offset)
        )
        offset = offset if found[0][0] is None else found[0][0]
    last, size = None, 0
    for base, length in on.rows(
        "SELECT base, length(data) FROM kept_batches WHERE topic_id = ? AND number = ? AND base >= ?"
        " ORDER BY base LIMIT ?",
        (*place, offset, _AT_ONCE),
    ):
        size += length
        if last is not None and size > most:
            break
        last = base
    if last is None:
        return []
    rows = on.rows(
        "SELECT base, data, checksum FROM kept_batches WHERE topic_id = ? AND number = ? AND base BETWEEN ? AND ?"
        " ORDER BY base",
        (*place, offset, last),
    )
    for base, data, checksum in rows:
        if zlib.crc32(data) != checksum:
            where = f"topic {topic_id.hex()}, partition {number}, offset {base}"
            raise DamagedStore(f"{where}: wrong checksum, the batch was changed")
    return [(base, bytes(data)) for base, data, _ in rows]
