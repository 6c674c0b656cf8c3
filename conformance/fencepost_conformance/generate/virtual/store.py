"""A store that is slow and fails, within what ``Store`` allows."""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.offset_records import OffsetCommitKey, OffsetCommitValue
from fencepost.protocol.records import Record
from fencepost.store import AppendError, InDoubt, MemoryStore, StoreError

#: one commit: group, topic, partition, offset
Committed = tuple[str, str, int, int]


@dataclass(frozen=True, slots=True)
class StoreFaults:
    """Chances of faults, from 0 to 1, and ``slow_s``, the longest time of an append. ``refuse``: an append fails and
    adds no record. ``doubt``: an append fails, and its records may have been added or not. ``unloadable``: a load
    fails."""

    slow_s: float = 0.0
    refuse: float = 0.0
    doubt: float = 0.0
    unloadable: float = 0.0
    no_compaction: float = 0.0


@dataclass(slots=True, eq=False)
class _Append:
    records: Sequence[Record]
    leader_epoch: int
    done: asyncio.Future[None]


class FaultyStore(MemoryStore):
    """A store that adds the appends of each partition in order, each after a random delay. While ``calm`` is set
    nothing fails.

    ``log`` has every offset that was ever durable, by partition of the offsets topic and in the order of that log;
    ``metadata`` has the metadata of these commits."""

    def __init__(self, partitions: int, faults: StoreFaults, random: Random) -> None:
        super().__init__(partitions)
        self.calm = False
        self.log: dict[int, list[Committed]] = defaultdict(list)
        self.durable: set[Committed] = set()
        self.metadata: dict[Committed, str] = {}
        self._faults = faults
        self._random = random
        self._queues: dict[int, deque[_Append]] = defaultdict(deque)

    def _happens(self, chance: float) -> bool:
        return not self.calm and self._random.random() < chance

    async def load(self, partition: int) -> Sequence[Record]:
        await asyncio.sleep(self._random.random() * self._faults.slow_s)
        if self._happens(self._faults.unloadable):
            raise StoreError("the disk cannot be read")
        return await super().load(partition)

    async def compact(self, partition: int) -> int:
        await asyncio.sleep(self._random.random() * self._faults.slow_s)
        if self._happens(self._faults.no_compaction):
            raise StoreError("the disk is full")
        return await super().compact(partition)

    def append(self, partition: int, records: Sequence[Record], *, leader_epoch: int) -> asyncio.Future[None]:
        loop = asyncio.get_running_loop()
        append = _Append(records, leader_epoch, loop.create_future())
        queue = self._queues[partition]
        queue.append(append)
        delay = self._random.random() * self._faults.slow_s if self._random.random() < 0.8 else 0.0
        if delay == 0.0 and len(queue) == 1:
            self._land(partition)
        else:
            loop.call_later(delay, self._land, partition)
        return append.done

    def _land(self, partition: int) -> None:
        """End the oldest append. Appends that were queued before the failure was reported fail with it."""
        queue = self._queues[partition]
        if not queue or not self._open:
            return
        append = queue.popleft()
        if append.done.cancelled():
            return
        failure: Exception | None = None
        if self._happens(self._faults.refuse):
            failure = AppendError(self._random.choice((ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR)))
        elif self._happens(self._faults.doubt):
            if self._random.random() < 0.5:
                self._add(partition, append)
            failure = InDoubt("the disk did not answer")
        else:
            failure = self._add(partition, append)
        if failure is None:
            append.done.set_result(None)
            return
        append.done.set_exception(failure)
        others, self._queues[partition] = queue, deque()
        for other in others:
            if not other.done.done():
                other.done.set_exception(AppendError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "an earlier one has failed"))

    def _add(self, partition: int, append: _Append) -> Exception | None:
        done = super().append(partition, append.records, leader_epoch=append.leader_epoch)
        failure = done.exception()
        if failure is not None:
            assert isinstance(failure, Exception)
            return failure
        for record in append.records:
            key, value = record.key, record.value
            if isinstance(key, OffsetCommitKey) and isinstance(value, OffsetCommitValue):
                commit = (key.group, key.topic, key.partition, value.offset)
                self.log[partition].append(commit)
                self.durable.add(commit)
                self.metadata[commit] = value.metadata
        return None
