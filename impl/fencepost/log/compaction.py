"""Compaction: the records of a log that are no longer needed, and the log without them.

The last record of each key is the state. Earlier ones can be deleted; their offsets stay unused, so the order of the
rest does not change. A tombstone stays until every reader of an earlier record of its key has seen it. No record of an
open transaction is deleted: the log is compacted up to the start of the first one. Then records of aborted transactions
are deleted, and a marker after the last record of its transaction.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence
from dataclasses import replace
from typing import Final, NamedTuple, Protocol, TypeVar

from fencepost.protocol.offset_records import ControlKey, Producer

from .partition import Batch, PartitionLog

#: How long a tombstone stays if the readers are unknown: one day, in ms.
RETENTION_MS: Final = 86_400_000
#: Smallest number of new records for a compaction.
LEAST: Final = 1_000


def due(log: PartitionLog, least: int = LEAST) -> bool:
    """Return whether a compaction is worthwhile: at least ``least`` records are new, and at least as many as the last
    compaction left. So a log is at most about twice its needed size, and each record is examined only a few times."""
    dirty = log.committed - log.clean
    if dirty < least:
        return False
    return worth(dirty, sum(len(batch.rows) for batch in log.batches if batch.end <= log.clean), least)


def worth(dirty: int, left: int, least: int = LEAST) -> bool:
    """Return whether a compaction is worthwhile; ``dirty``: records since the last one, ``left``: those that it
    left."""
    return dirty >= max(least, left)


class Entry(Protocol):
    """The part of a record that matters here: a ``Record``, or its bytes. Equal keys are the same key; the end of a
    transaction has a ``ControlKey``."""

    @property
    def key(self) -> Hashable: ...
    @property
    def value(self) -> object: ...
    @property
    def producer(self) -> Producer | None: ...


Kept = TypeVar("Kept", bound=Entry)


class Outlived(NamedTuple):
    """Places of records that are no longer needed. ``superseded``: by a later record of the key, or aborted with their
    transaction. ``ending``: tombstones without earlier records, and markers of transactions without records. ``head``:
    the place of the first record of an open transaction, up to which this can be decided."""

    superseded: frozenset[int]
    ending: frozenset[int]
    head: int


def outlived(records: Sequence[Entry]) -> Outlived:
    """Return the records of a log that are no longer needed."""
    opened: dict[int, list[int]] = {}  #: places by producer
    marked: dict[int, list[int]] = {}  #: the places of a transaction, by the place of its marker
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
    """Return the records that remain after a compaction of a whole log, with or without ``tombstones`` and the markers
    of transactions without records."""
    found = outlived(records)
    gone = found.superseded if tombstones else found.superseded | found.ending
    return [record for place, record in enumerate(records) if place not in gone]


def compact(
    log: PartitionLog, now_ms: int, *, retention_ms: int = RETENTION_MS, readers: Collection[int] | None = None
) -> PartitionLog:
    """Return the log without records that are no longer needed. Only replicated records count: others may still be
    truncated, and then an earlier record would be the last one again.

    ``readers``: the next offset of each current reader, if all of them are known; else a tombstone stays for
    ``retention_ms`` after the first compaction that saw it. ``now_ms``: the time, in ms."""
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
    """Return whether every reader of an earlier record has seen the tombstone."""
    if readers is not None:
        return not any(0 < reader <= offset for reader in readers)
    return batch.horizon_ms is not None and now_ms >= batch.horizon_ms
