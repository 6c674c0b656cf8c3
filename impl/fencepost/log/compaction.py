"""What of a log nobody needs any more, and the log without it.

Of each key the last record is the state: those before it may go, and their places in the log stay empty, so that the
order of what is left is what it was. A tombstone stays until whoever had read a record that it ends has found it. Of a
transaction nothing goes before it has ended: the log is compacted up to where the first open one begins. Then what it
has aborted goes, and what marks its end goes after the last record that it marked.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence
from dataclasses import replace
from typing import Final, NamedTuple, Protocol, TypeVar

from fencepost.protocol.offset_records import ControlKey, Producer

from .partition import Batch, PartitionLog

#: How long a tombstone stays for readers that nobody knows of: a day.
RETENTION_MS: Final = 86_400_000
#: Fewer records are not worth a compaction.
LEAST: Final = 1_000


def due(log: PartitionLog, least: int = LEAST) -> bool:
    """Whether as much was written since the last compaction as it left, and at least ``least``: so a log is at most
    about twice what is needed of it, and each record is looked at a few times in all."""
    dirty = log.committed - log.clean
    if dirty < least:
        return False
    return worth(dirty, sum(len(batch.rows) for batch in log.batches if batch.end <= log.clean), least)


def worth(dirty: int, left: int, least: int = LEAST) -> bool:
    """Whether it is time, by how many records were written since the last compaction and how many it left."""
    return dirty >= max(least, left)


class Entry(Protocol):
    """What is looked at of a record: a ``Record``, or the bytes of one. Equal keys are of one key; the end of a
    transaction has a ``ControlKey``."""

    @property
    def key(self) -> Hashable: ...
    @property
    def value(self) -> object: ...
    @property
    def producer(self) -> Producer | None: ...


Kept = TypeVar("Kept", bound=Entry)


class Outlived(NamedTuple):
    """Places of records that nobody needs: ``superseded`` by a later one of their key, or aborted with their
    transaction; ``ending``: tombstones that nothing is left to end of, and marks of transactions of which nothing is
    left. ``head``: up to where that can be told, the place of the first record of a transaction that is open."""

    superseded: frozenset[int]
    ending: frozenset[int]
    head: int


def outlived(records: Sequence[Entry]) -> Outlived:
    """What of a log nobody needs."""
    opened: dict[int, list[int]] = {}  #: places by producer
    marked: dict[int, list[int]] = {}  #: the places of a transaction, by that of the marker
    aborted: set[int] = set()
    for place, record in enumerate(records):
        if record.producer is None:
            continue
        producer = record.producer.producer_id
        if isinstance(record.key, ControlKey):
            marked[place] = opened.pop(producer, [])
            if not record.key.committed:
                aborted.update(marked[place])
        else:
            opened.setdefault(producer, []).append(place)
    head = min((places[0] for places in opened.values()), default=len(records))
    last: dict[Hashable, int] = {}
    superseded = {place for place in aborted if place < head}
    for place, record in enumerate(records[:head]):
        if place in aborted or place in marked:
            continue
        before = last.get(record.key)
        if before is not None:
            superseded.add(before)
        last[record.key] = place
    ending = {place for place in last.values() if records[place].value is None}
    ending.update(place for place, of in marked.items() if place < head and superseded.issuperset(of))
    return Outlived(frozenset(superseded), frozenset(ending), head)


def left(records: Sequence[Kept], *, tombstones: bool = True) -> list[Kept]:
    """What a compaction of a whole log leaves of it at the most, with or without ``tombstones`` and the marks of
    transactions of which nothing is left."""
    found = outlived(records)
    gone = found.superseded if tombstones else found.superseded | found.ending
    return [record for place, record in enumerate(records) if place not in gone]


def compact(
    log: PartitionLog, now_ms: int, *, retention_ms: int = RETENTION_MS, readers: Collection[int] | None = None
) -> PartitionLog:
    """The log without what nobody needs, of that which is replicated: what is not may yet be cut off, and the record
    before it be the last one again.

    ``readers``: how far those have read who read now (the offset that each wants next), if all of them are known; else
    a tombstone stays for ``retention_ms`` after the first compaction that met it. ``now_ms``: the time, in ms."""
    rows = [row for row in log.rows if row.offset < log.committed]
    found = outlived([row.record for row in rows])
    superseded = {rows[place].offset for place in found.superseded}
    ending = {rows[place].offset for place in found.ending}
    batches = []
    for batch in log.batches:
        changed = batch
        if batch.horizon_ms is None and any(row.offset in ending for row in batch.rows):
            changed = replace(batch, horizon_ms=now_ms + retention_ms)
        left = tuple(
            row
            for row in batch.rows
            if row.offset not in superseded
            and not (row.offset in ending and _found_by_all(row.offset, changed, now_ms, readers))
        )
        if left:
            batches.append(changed if len(left) == len(batch.rows) else replace(changed, rows=left))
    clean = rows[found.head].offset if found.head < len(rows) else log.committed
    return replace(log, batches=tuple(batches), clean=max(log.clean, clean))


def _found_by_all(offset: int, batch: Batch, now_ms: int, readers: Collection[int] | None) -> bool:
    """Whether nobody can be on the way to a tombstone, having read what it ends."""
    if readers is not None:
        return not any(0 < reader <= offset for reader in readers)
    return batch.horizon_ms is not None and now_ms >= batch.horizon_ms
