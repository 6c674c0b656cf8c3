"""The tables of a store, and what is done in them: the same statements for SQLite and PostgreSQL.

``?`` stands for a value. Records stand in batches (``packed``). Each partition knows how many records it has, so that
none goes unnoticed.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Protocol

from fencepost.codec import CodecError
from fencepost.log import FencedEpoch
from fencepost.protocol.logged import Logged
from fencepost.protocol.offset_records import ControlKey, Producer

from . import packed
from .kept import Change, DropBatches, Kept, Put, PutBatch
from .packed import CODEC, PLAIN, Header, Pair, Run
from .shared import StoreError

#: The format of what is kept; one that is newer is not read.
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
#: As many batches are read at once at most.
_AT_ONCE: Final = 10_000


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
    """A record as it is kept, for a compaction, which need not read it: its key is that of its bytes. ``batch``: the
    place of its batch."""

    batch: int
    place: int
    key: bytes | ControlKey
    value: bytes | None
    producer: Producer | None


class State(NamedTuple):
    """What a partition knows of itself."""

    leader_epoch: int
    next_offset: int
    row_count: int
    compacted: int


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


@dataclass(slots=True, eq=False)
class _Batch:
    number: int
    place: int
    leader_epoch: int
    header: Header
    pairs: list[Pair]


class Appends:
    """The appends of one transaction: their records are put together in few batches and written with few statements. Of
    each partition the first append looks who leads it, which nobody can change before the transaction ends."""

    def __init__(self, on: Statements) -> None:
        self.on = on
        self.places: dict[tuple[int, int], int] = {}  #: by partition and epoch: the place of the next record
        self.known: dict[tuple[int, int], int] = {}  #: and up to where the partition knows of them
        self.last: dict[tuple[int, int], _Batch] = {}  #: and what the next records may go into
        self.batches: list[_Batch] = []

    def flush(self) -> None:
        """Write them. To be called before anything else is done in the tables, and before the transaction ends."""
        if self.batches:
            self.on.insert("records", [_row(batch) for batch in self.batches])
        for (number, leader_epoch), place in self.places.items():
            more = place - self.known[number, leader_epoch]
            if more:
                fence(self.on, number, leader_epoch, more)
        self.forget()

    def forget(self) -> None:
        """The transaction is taken back."""
        self.places, self.known, self.last, self.batches = {}, {}, {}, []


def append(to: Appends, number: int, runs: Sequence[Run], leader_epoch: int) -> None:
    """The records behind the others. Raises ``FencedEpoch``, and then nothing of them is there."""
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
    """What the partition knows of itself."""
    found = on.rows(
        "SELECT leader_epoch, next_offset, row_count, compacted FROM partitions WHERE number = ?", (number,)
    )
    return State(*found[0])


_COLUMNS: Final = "place, producer_id, producer_epoch, control, data, checksum"


def read(on: Statements, number: int) -> tuple[State, list[tuple[Any, ...]]]:
    """The batches of a partition, and what it knows of itself; both of one moment if it is one transaction."""
    return state(on, number), on.rows(f"SELECT {_COLUMNS} FROM records WHERE number = ? ORDER BY place", (number,))


def decoded(number: int, known: State, rows: Iterable[tuple[Any, ...]]) -> Logged:
    """The records of the batches of a partition. Raises ``DamagedStore`` for what is not as it was written."""
    loading, last = CODEC.loading(), -1
    for row in rows:
        place, header, found = _taken(number, row)
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
        raise DamagedStore(f"partition {number} ends at {known.next_offset}, and has a record at {last}")
    if len(records) != known.row_count:
        raise DamagedStore(f"partition {number} has {len(records)} records, and {known.row_count} were left in it")
    return records


def _taken(number: int, row: tuple[Any, ...]) -> tuple[int, Header, list[packed.Kept]]:
    """The place of a batch, its header and its records. Raises ``DamagedStore``."""
    place, producer_id, producer_epoch, control, data, checksum = row
    header, data = Header(producer_id, producer_epoch, control), bytes(data)
    if checksum != packed.checksum(number, place, header, data):
        raise DamagedStore(f"partition {number}, offset {place}: the records are not as they were written")
    return place, header, packed.unpacked(data)


def _unread(header: Header, found: Sequence[packed.Kept]) -> int:
    """The first of these records that cannot be read."""
    for place, key, value in found:
        try:
            CODEC.loaded(key, value, header.producer, control=bool(header.control))
        except CodecError:
            return place
    return 0


def raw(on: Statements, number: int, after: int, most: int) -> list[Bytes]:
    """Records of a partition behind a place, of so many batches at most, not read. Raises ``DamagedStore``."""
    rows = on.rows(
        f"SELECT {_COLUMNS} FROM records WHERE number = ? AND place > ? ORDER BY place LIMIT ?", (number, after, most)
    )
    found = []
    for row in rows:
        batch, header, records = _taken(number, row)
        producer = header.producer
        for place, key, value in records:
            # the end of a transaction; 1 at the end of its key is a commit (F-REC-26)
            name = ControlKey(key[-1] == 1) if header.control else key
            found.append(Bytes(batch, batch + place, name, None if value is None else b"", producer))
    return found


def delete(on: Statements, number: int, places: Mapping[int, Set[int]]) -> int:
    """Records go, by the places of their batches; how many there were. Raises ``DamagedStore``."""
    gone = 0
    for batch, some in places.items():
        where = (number, batch)
        (row,) = on.rows(f"SELECT {_COLUMNS} FROM records WHERE number = ? AND place = ?", where)
        _, header, found = _taken(number, row)
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
