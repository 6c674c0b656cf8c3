"""Logs in memory, which last as long as the process."""

from __future__ import annotations

import asyncio
from bisect import bisect_left, insort
from collections.abc import Sequence

from fencepost.log import FencedEpoch, left, worth
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.records import Record

from .base import AppendError, ClosedStore, partitions_of, require_changes, require_partition, require_place, unfit
from .kept import Change, DropBatches, Kept, Put, PutBatch


class _Log:
    __slots__ = ("epoch", "left", "records")

    def __init__(self) -> None:
        self.epoch = 0
        self.records: list[Record] = []
        self.left = 0  #: number of records after the last compaction


class MemoryStore:
    """Keeps the records of all partitions that are still needed. While ``failing`` is set, every append and write fails
    with it. Use it as ``async with MemoryStore() as store``; ``GroupBroker`` opens it too."""

    def __init__(self, partitions: int = 1) -> None:
        self._logs = [_Log() for _ in range(partitions_of(partitions, None, 1))]
        self._open = False
        self._batches: dict[tuple[bytes, int], dict[int, bytes]] = {}
        self._bases: dict[tuple[bytes, int], list[int]] = {}  #: the same, in order
        self._values: dict[str, dict[str, str]] = {}
        self.failing: ErrorCode | None = None

    async def __aenter__(self) -> MemoryStore:
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def open(self) -> int:
        """Open the store; it still has the data from before it was closed."""
        self._open = True
        return len(self._logs)

    async def close(self) -> None:
        self._open = False

    def records(self, partition: int = 0) -> tuple[Record, ...]:
        """Return the current records of a partition, in log order; also of a closed store."""
        require_partition(partition, len(self._logs))
        return tuple(self._logs[partition].records)

    async def lead(self, partition: int) -> int:
        log = self._log(partition)
        log.epoch += 1
        return log.epoch

    async def load(self, partition: int) -> Sequence[Record]:
        return tuple(self._log(partition).records)

    def append(self, partition: int, records: Sequence[Record], *, leader_epoch: int) -> asyncio.Future[None]:
        log = self._log(partition)
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        failure = self._refusal(log, records, leader_epoch)
        if failure is None:
            log.records.extend(records)
            done.set_result(None)
        else:
            done.set_exception(failure)
        return done

    def _refusal(self, log: _Log, records: Sequence[Record], leader_epoch: int) -> Exception | None:
        if leader_epoch != log.epoch:
            return FencedEpoch(leader_epoch, log.epoch)
        if self.failing is not None:
            return AppendError(self.failing)
        wrong = unfit(records)
        return None if wrong is None else AppendError(ErrorCode.UNKNOWN_SERVER_ERROR, wrong)

    def due(self, partition: int) -> bool:
        log = self._log(partition)
        return worth(len(log.records) - log.left, log.left)

    async def compact(self, partition: int) -> int:
        """Compact a copy in a separate thread; records appended meanwhile stay after it."""
        log = self._log(partition)
        seen = list(log.records)
        log.records[: len(seen)] = kept = await asyncio.to_thread(left, seen, tombstones=False)
        log.left = len(kept)
        return len(seen) - len(kept)

    async def write(self, changes: Sequence[Change]) -> None:
        if not self._open:
            raise ClosedStore
        require_changes(changes)
        if self.failing is not None:
            raise AppendError(self.failing)
        for change in changes:
            match change:
                case PutBatch():
                    self._put((change.topic_id, change.partition), change.base, change.data)
                case DropBatches():
                    for topic_id, partition in list(self._batches):
                        if topic_id == change.topic_id and change.partition in (None, partition):
                            self._drop((topic_id, partition), None if change.partition is None else change.below)
                case Put(kind=kind, name=name, value=value):
                    values = self._values.setdefault(kind, {})
                    if value is None:
                        values.pop(name, None)
                    else:
                        values[name] = value

    def _put(self, place: tuple[bytes, int], base: int, data: bytes) -> None:
        batches = self._batches.setdefault(place, {})
        if base not in batches:
            insort(self._bases.setdefault(place, []), base)
        batches[base] = data

    def _drop(self, place: tuple[bytes, int], below: int | None) -> None:
        left = {base: data for base, data in self._batches.pop(place).items() if below is not None and base >= below}
        bases = self._bases.pop(place)
        if left:
            self._batches[place] = left
            self._bases[place] = bases[-len(left) :]

    async def kept(self) -> Kept:
        return Kept({kind: dict(values) for kind, values in self._values.items() if values})

    async def batches(
        self, topic_id: bytes, partition: int, offset: int, most: int, *, within: bool = True
    ) -> Sequence[bytes]:
        require_place(partition, offset)
        place = topic_id, partition
        bases, rows = self._bases.get(place, []), self._batches.get(place, {})
        begin = bisect_left(bases, offset)
        if within and begin and (begin == len(bases) or bases[begin] > offset):
            begin -= 1
        found: list[bytes] = []
        size = 0
        for at in range(begin, len(bases)):
            size += len(rows[bases[at]])
            if found and size > most:
                break
            found.append(rows[bases[at]])
        return found

    def _log(self, partition: int) -> _Log:
        if not self._open:
            raise ClosedStore
        require_partition(partition, len(self._logs))
        return self._logs[partition]
