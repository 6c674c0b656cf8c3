"""A store in a database: its tables, and the thread that writes them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Hashable, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Final, Protocol, TypeVar

from fencepost.codec import Unwritable
from fencepost.log import outlived, worth
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.records import Record

from . import tables
from .base import AppendError, ClosedStore, require_changes, require_partition, require_place, unfit
from .kept import Change, Kept
from .packed import Run, encoded
from .tables import Bytes, Doomed, Statements, Stored
from .worker import Database, JobRunner

_log = logging.getLogger(__name__)

#: Batches that a compaction reads at a time, and records that it deletes at a time; other writes run in between.
BATCHES: Final = 1_000
CHUNK: Final = 20_000
#: The line of data other than group records; those of records are the partition numbers.
_KEPT: Final = "kept"
_Self = TypeVar("_Self", bound="SqlStore")
_Value = TypeVar("_Value")


class DatabaseConnection(Database, Statements, Protocol):
    """A database that can be opened."""

    def open(self) -> int:
        """Connect, create missing tables, and return the number of partitions. Raises ``StoreError``."""

    def snapshot(self) -> None:
        """Begin a read-only transaction with a consistent view."""

    def close(self) -> None:
        """Disconnect."""


class SqlStore:
    """Base of stores in databases. Use it as ``async with store``, or with ``open`` and ``close``."""

    def __init__(self, connection: DatabaseConnection, name: str) -> None:
        self._connection = connection
        self._appends = tables.Appends(connection)
        self._name = name
        self._worker: JobRunner | None = None
        self._partitions = 0
        self._epochs: dict[int, int] = {}
        self._rows: dict[int, int] = {}  #: approximate number of records, by partition
        self._left: dict[int, int] = {}  #: number of records after the last compaction

    async def __aenter__(self: _Self) -> _Self:
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def open(self) -> int:
        """Open or create the store, unless it is open; return the number of partitions. Raises ``StoreError`` for a
        store that cannot be used."""
        if self._worker is None:
            worker = JobRunner(self._connection, self._appends, self._name)
            try:
                self._partitions = await worker.alone(self._connection.open)
            except BaseException:
                await worker.close()
                raise
            self._worker = worker
        return self._partitions

    async def close(self) -> None:
        worker, self._worker = self._worker, None
        if worker is not None:
            closing = worker.alone(self._connection.close)
            await worker.close()
            await closing

    async def lead(self, partition: int) -> int:
        require_partition(partition, self._partitions_open())
        epoch = await self._within(lambda: tables.lead(self._connection, partition), partition)
        self._epochs[partition] = epoch
        return epoch

    async def load(self, partition: int) -> Sequence[Record]:
        require_partition(partition, self._partitions_open())
        known, rows = await self._open().alone(lambda: self._at_once(lambda: tables.read(self._connection, partition)))
        self._rows[partition], self._left[partition] = known.row_count, known.compacted
        return await asyncio.to_thread(tables.decoded, partition, known, rows)

    def _at_once(self, read: Callable[[], _Value]) -> _Value:
        """Read with a consistent view."""
        self._connection.snapshot()
        try:
            return read()
        finally:
            self._connection.rollback()

    def append(self, partition: int, records: Sequence[Record], *, leader_epoch: int) -> asyncio.Future[None]:
        require_partition(partition, self._partitions_open())
        runs: list[Run] | None
        try:
            runs, reason = encoded(records), ""
        except Unwritable as failure:
            runs, reason = None, unfit(records) or str(failure)

        def act() -> None:
            if runs is None:  # rejected in its turn, so that no later append passes it
                raise AppendError(ErrorCode.UNKNOWN_SERVER_ERROR, reason)
            tables.append(self._appends, partition, runs, leader_epoch)

        self._rows[partition] = self._rows.get(partition, 0) + len(records)
        return self._open().within(act, partition)

    def due(self, partition: int) -> bool:
        left = self._left.get(partition, 0)
        return worth(self._rows.get(partition, 0) - left, left)

    async def compact(self, partition: int) -> int:
        """Delete records that are no longer needed, and after them their tombstones. So the log loads to the same state
        between any two transactions."""
        worker = self._open()
        require_partition(partition, self._partitions)
        seen: list[Bytes] = []
        whole: dict[int, Stored] = {}  #: by their places: batches of which nothing is deleted yet
        while True:
            after = seen[-1].place if seen else -1
            more = await worker.alone(lambda after=after: tables.raw(self._connection, partition, after, BATCHES))  # type: ignore[misc]
            if not more:
                break
            for batch in more:
                whole[batch.records[0].batch] = batch
                seen += batch.records
        found = await asyncio.to_thread(outlived, seen)
        gone = 0
        for places in (sorted(found.superseded), sorted(found.ending)):
            for begin in range(0, len(places), CHUNK):
                some = _by_batch([seen[place] for place in places[begin : begin + CHUNK]], whole)
                gone += await self._within(
                    lambda some=some: tables.delete(self._connection, partition, some),  # type: ignore[misc]
                    ("compaction", partition),
                )
        left = await self._within(lambda: tables.compacted(self._connection, partition), ("compaction", partition))
        self._rows[partition] = self._left[partition] = left
        return gone

    async def write(self, changes: Sequence[Change]) -> None:
        """Apply changes. A host that led partition 0 must still lead it, since another host may write these by now."""
        require_changes(changes)
        epoch = self._epochs.get(0)

        def act() -> None:
            if epoch is not None:
                tables.fence(self._connection, 0, epoch)
            for each in changes:
                tables.change(self._connection, each)

        await self._within(act, _KEPT)

    async def kept(self) -> Kept:
        return await self._open().alone(lambda: self._at_once(lambda: tables.kept(self._connection)))

    async def batches(
        self, topic_id: bytes, partition: int, offset: int, most: int, *, within: bool = True
    ) -> Sequence[bytes]:
        require_place(partition, offset)

        def read() -> list[tuple[int, bytes]]:
            return tables.batches(self._connection, topic_id, partition, offset, most, within=within)

        return [data for _, data in await self._open().alone(lambda: self._at_once(read))]

    def _within(self, act: Callable[[], _Value], line: Hashable) -> asyncio.Future[_Value]:
        """Run in a transaction, after the appends that are already in it."""

        def behind() -> _Value:
            self._appends.flush()
            return act()

        return self._open().within(behind, line)

    def _partitions_open(self) -> int:
        """Return the number of partitions. Raises ``ClosedStore``."""
        self._open()
        return self._partitions

    def _open(self) -> JobRunner:
        if self._worker is None:
            raise ClosedStore
        return self._worker


def _by_batch(records: Sequence[Bytes], whole: dict[int, Stored]) -> dict[int, Doomed]:
    """Sort records that are to be deleted by their batches, which are not ``whole`` any more."""
    found = {}
    for batch, some in groupby(records, key=itemgetter(0)):
        places = {each.place for each in some}
        stored = whole.pop(batch, None)
        all_of_it = stored is not None and len(places) == len(stored.records)
        found[batch] = Doomed(places, stored.checksum if stored is not None and all_of_it else None)
    return found
