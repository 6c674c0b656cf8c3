"""The tables of a store, and what is done in them: the same statements for SQLite and PostgreSQL.

``?`` stands for a value. A record stands in Kafka's bytes, with the producer of its transaction beside it, as the
header of a batch has it, and a checksum over all of it. Each partition knows how many records it has, so that none goes
unnoticed.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple, Protocol

from fencepost.codec import Codec, CodecError
from fencepost.log import FencedEpoch
from fencepost.protocol.logged import Logged
from fencepost.protocol.offset_records import ControlKey, Producer
from fencepost.protocol.records import Record

from .kept import Change, DropBatches, Kept, Put, PutBatch
from .shared import StoreError

#: The format of what is kept; one that is newer is not read.
FORMAT: Final = 1
TABLES: Final = (
    """CREATE TABLE partitions (
        number INTEGER PRIMARY KEY, leader_epoch INTEGER NOT NULL, next_offset BIGINT NOT NULL,
        row_count BIGINT NOT NULL, compacted BIGINT NOT NULL)""",
    """CREATE TABLE records (
        number INTEGER NOT NULL, place BIGINT NOT NULL, leader_epoch INTEGER NOT NULL, producer_id BIGINT,
        producer_epoch INTEGER, control INTEGER NOT NULL, record_key {blob} NOT NULL, record_value {blob},
        checksum BIGINT NOT NULL, PRIMARY KEY (number, place)){end}""",
    """CREATE TABLE kept_values (
        kind TEXT NOT NULL, name TEXT NOT NULL, text TEXT NOT NULL, checksum BIGINT NOT NULL,
        PRIMARY KEY (kind, name)){end}""",
    """CREATE TABLE kept_batches (
        topic_id {blob} NOT NULL, number INTEGER NOT NULL, base BIGINT NOT NULL, data {blob} NOT NULL,
        checksum BIGINT NOT NULL, PRIMARY KEY (topic_id, number, base)){end}""",
)
#: As many batches are read at once at most.
_AT_ONCE: Final = 10_000
_CODEC: Final = Codec()
_HEAD: Final = struct.Struct(">iqqhih").pack


class DamagedStore(StoreError):
    """What is in the store is not what was written; the message says where."""


class Statements(Protocol):
    """A connection, as far as tables need it."""

    def rows(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Run it: the rows that it gives."""

    def run(self, statement: str, values: Sequence[Any] = ()) -> int:
        """Run it: how many rows it was about."""

    def many(self, statement: str, values: Sequence[Sequence[Any]]) -> int:
        """Run it for each of these: how many rows it was about in all."""

    def insert(self, table: str, rows: Sequence[Sequence[Any]]) -> None:
        """New rows of a table, all of its columns in each."""


class Bytes(NamedTuple):
    """A record as it is kept, for a compaction, which need not read it: its key is that of its bytes."""

    place: int
    key: bytes | ControlKey
    value: bytes | None
    producer: Producer | None


class Row(NamedTuple):
    """A record as it is written: all but its place."""

    producer_id: int | None
    producer_epoch: int | None
    control: int
    key: bytes
    value: bytes | None


class State(NamedTuple):
    """What a partition knows of itself."""

    leader_epoch: int
    next_offset: int
    row_count: int
    compacted: int


def encoded(records: Sequence[Record]) -> list[Row]:
    """The records in bytes. Raises ``Unwritable``."""
    rows = []
    for record, (key, value) in zip(records, _CODEC.encoded_all(records), strict=True):
        producer = record.producer
        control = int(isinstance(record.key, ControlKey))
        if producer is None:
            rows.append(Row(None, None, control, key, value))
        else:
            rows.append(Row(producer.producer_id, producer.producer_epoch, control, key, value))
    return rows


def make(on: Statements, partitions: int, blob: str, end: str) -> None:
    """The tables of a new store."""
    for statement in TABLES:
        on.run(statement.format(blob=blob, end=end))
    on.many("INSERT INTO partitions VALUES (?, 0, 0, 0, 0)", [(number,) for number in range(partitions)])


def count(on: Statements) -> int:
    """How many partitions there are."""
    numbers = [number for (number,) in on.rows("SELECT number FROM partitions ORDER BY number")]
    if not numbers or numbers != list(range(len(numbers))):
        raise DamagedStore(f"of the partitions there are {numbers}")
    return len(numbers)


def lead(on: Statements, number: int) -> int:
    """A new leader epoch."""
    statement = "UPDATE partitions SET leader_epoch = leader_epoch + 1 WHERE number = ? RETURNING leader_epoch"
    ((epoch,),) = on.rows(statement, (number,))
    return int(epoch)


def fence(on: Statements, number: int, leader_epoch: int, further: int = 0) -> int:
    """Makes room for so many records, and says where. Nobody else leads the partition before this transaction ends.
    Raises ``FencedEpoch`` if somebody does already."""
    statement = (
        "UPDATE partitions SET next_offset = next_offset + ?, row_count = row_count + ?"
        " WHERE number = ? AND leader_epoch = ? RETURNING next_offset"
    )
    found = on.rows(statement, (further, further, number, leader_epoch))
    if not found:
        ((epoch,),) = on.rows("SELECT leader_epoch FROM partitions WHERE number = ?", (number,))
        raise FencedEpoch(leader_epoch, epoch)
    return int(found[0][0]) - further


class Appends:
    """The appends of one transaction: their records are put together and written with few statements. Of each partition
    the first append looks who leads it, which nobody can change before the transaction ends."""

    def __init__(self, on: Statements) -> None:
        self.on = on
        self.places: dict[tuple[int, int], int] = {}  #: by partition and epoch: the place of the next record
        self.known: dict[tuple[int, int], int] = {}  #: and up to where the partition knows of them
        self.rows: list[tuple[Any, ...]] = []

    def flush(self) -> None:
        """Write them. To be called before anything else is done in the tables, and before the transaction ends."""
        if self.rows:
            self.on.insert("records", self.rows)
        for (number, leader_epoch), place in self.places.items():
            more = place - self.known[number, leader_epoch]
            if more:
                fence(self.on, number, leader_epoch, more)
        self.forget()

    def forget(self) -> None:
        """The transaction is taken back."""
        self.places, self.known, self.rows = {}, {}, []


def append(to: Appends, number: int, rows: Sequence[Row], leader_epoch: int) -> None:
    """The records behind the others. Raises ``FencedEpoch``, and then nothing of them is there."""
    who = number, leader_epoch
    first = to.places.get(who)
    if first is None:
        first = fence(to.on, number, leader_epoch, len(rows))
        to.known[who] = first + len(rows)
    to.places[who] = first + len(rows)
    to.rows += [
        (number, place, leader_epoch, *row, _checksum(number, place, row)) for place, row in enumerate(rows, first)
    ]


def state(on: Statements, number: int) -> State:
    """What the partition knows of itself."""
    found = on.rows(
        "SELECT leader_epoch, next_offset, row_count, compacted FROM partitions WHERE number = ?", (number,)
    )
    return State(*found[0])


_RECORDS: Final = (
    "SELECT place, producer_id, producer_epoch, control, record_key, record_value, checksum FROM records"
    " WHERE number = ? ORDER BY place"
)


def read(on: Statements, number: int) -> tuple[State, list[tuple[Any, ...]]]:
    """The rows of a partition, and what it knows of itself; both of one moment if it is one transaction."""
    return state(on, number), on.rows(_RECORDS, (number,))


def decoded(number: int, known: State, rows: Iterable[tuple[Any, ...]]) -> Logged:
    """The records of the rows of a partition. Raises ``DamagedStore`` for what is not as it was written."""
    loading, place = _CODEC.loading(), -1
    for place, producer_id, producer_epoch, control, key, value, checksum in rows:
        row = Row(producer_id, producer_epoch, control, bytes(key), None if value is None else bytes(value))
        if checksum != _checksum(number, place, row):
            raise DamagedStore(f"partition {number}, offset {place}: the record is not as it was written")
        try:
            if producer_id is None and not control:
                loading.take(((row.key, row.value),))
                continue
            producer = None if producer_id is None else Producer(producer_id, producer_epoch)
            record = _CODEC.loaded(row.key, row.value, producer, control=bool(control))
        except CodecError as reason:
            raise DamagedStore(f"partition {number}, offset {place}: {reason}") from None
        if record is not None:
            loading.add(record)
    records = loading.done()
    if place >= known.next_offset:
        raise DamagedStore(f"partition {number} ends at {known.next_offset}, and has a record at {place}")
    if len(records) != known.row_count:
        raise DamagedStore(f"partition {number} has {len(records)} records, and {known.row_count} were left in it")
    return records


def raw(on: Statements, number: int, after: int, most: int) -> list[Bytes]:
    """Records of a partition behind a place, not read."""
    found = on.rows(
        "SELECT place, producer_id, producer_epoch, control, record_key, record_value FROM records"
        " WHERE number = ? AND place > ? ORDER BY place LIMIT ?",
        (number, after, most),
    )
    return [
        Bytes(
            place,
            # the end of a transaction; 1 at the end of its key is a commit (F-REC-26)
            ControlKey(bytes(key)[-1] == 1) if control else bytes(key),
            None if value is None else b"",
            None if producer_id is None else Producer(producer_id, producer_epoch),
        )
        for place, producer_id, producer_epoch, control, key, value in found
    ]


def delete(on: Statements, number: int, places: Sequence[int]) -> int:
    """Records go; how many there were."""
    gone = on.many("DELETE FROM records WHERE number = ? AND place = ?", [(number, place) for place in places])
    on.run("UPDATE partitions SET row_count = row_count - ? WHERE number = ?", (gone, number))
    return gone


def compacted(on: Statements, number: int) -> int:
    """A compaction is done: how many records it has left."""
    on.run("UPDATE partitions SET compacted = row_count WHERE number = ?", (number,))
    return state(on, number).compacted


def change(on: Statements, each: Change) -> None:
    """One change of what is no record of groups."""
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
    """All values. Raises ``DamagedStore``."""
    found = Kept()
    for kind, name, text, checksum in on.rows("SELECT kind, name, text, checksum FROM kept_values"):
        if zlib.crc32(text.encode()) != checksum:
            raise DamagedStore(f"{kind} {name!r} is not as it was written")
        found.values.setdefault(kind, {})[name] = text
    return found


def places(on: Statements) -> list[tuple[bytes, int]]:
    """The topics, by id, and partitions that have batches."""
    rows = on.rows("SELECT DISTINCT topic_id, number FROM kept_batches ORDER BY topic_id, number")
    return [(bytes(topic_id), number) for topic_id, number in rows]


def batches(
    on: Statements, topic_id: bytes, number: int, offset: int, most: int, *, within: bool
) -> list[tuple[int, bytes]]:
    """Batches of a topic from an offset on, with their first offsets, of at most so many bytes, one at least. Raises
    ``DamagedStore``."""
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
            raise DamagedStore(f"{where}: the batch is not as it was written")
    return [(base, bytes(data)) for base, data, _ in rows]


def _checksum(number: int, place: int, row: Row) -> int:
    """Of all of a row; a value that is missing is not one that is empty."""
    none = -1 if row.value is None else 0
    producer = -1 if row.producer_id is None else row.producer_id
    head = _HEAD(number, place, producer, row.producer_epoch or 0, len(row.key), 2 * row.control + none)
    return zlib.crc32(row.value or b"", zlib.crc32(row.key, zlib.crc32(head)))
