"""The log of a partition: its batches in order, and its open and aborted transactions.

The batches are in the store. The last ones are also in memory, within a budget for all partitions."""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from kio.schema.errors import ErrorCode as Code

from fencepost_server.data.batches import Batch, leader_epoch_of, placed, read_header
from fencepost_server.data.index import Index
from fencepost_server.data.known import Aborted, Known, KnownRow
from fencepost_server.data.producers import MOST, LookedUp, Refused
from fencepost_server.data.tail import Budget, Tail

#: a write that takes longer is reported as failed
_LONGEST_WRITE_S: Final = 30.0
#: the size of batches to read at a time in a scan, in bytes
_PIECE: Final = 1 << 20
#: Reads durable batches: from the one with an offset on, at most so many bytes, but at least one batch.
Source: TypeAlias = Callable[[int, int], Awaitable[Sequence[bytes]]]


@dataclass(frozen=True, slots=True)
class Fetched:
    """The part of a fetch response that comes from the log of a partition."""

    records: bytes = b""
    aborted: tuple[Aborted, ...] = ()


class PartitionState(KnownRow):
    """The producers and transactions of a partition's durable batches, up to the offset ``end``."""

    end: int


class PartitionLog:
    """The log of a partition. ``start`` is its first offset, ``end`` the offset of the next record, and ``high`` the
    high watermark: all records below it are durable. ``size``: the bytes of all batches. ``deleted``: the topic was
    deleted. ``leader_epoch``: the epoch of new batches. Without ``source`` and ``budget``, all batches stay in
    memory."""

    def __init__(
        self, index: int, source: Source | None = None, budget: Budget | None = None, leader_epoch: int = 0
    ) -> None:
        self.index = index
        self.leader_epoch = leader_epoch
        self.start = 0
        self.end = 0
        self.high = 0
        self.size = 0
        self.deleted = False
        self._source = source
        self._budget = budget
        self._tail = Tail()
        self._blocks = Index()
        self._epochs: list[tuple[int, int]] = []  #: leader epochs, and where each began
        self._now = Known()
        self._durable = Known()  #: from durable batches only, like after a restart
        self._pending: deque[tuple[Batch, bool | None]] = deque()
        self._first = 0  #: the base offset of the first batch
        self._gone = 0  #: bytes of batches that were deleted
        self._known_until = 0  #: the end of the log when the state that a start has read was stored
        self._looked_up: dict[int, LookedUp] = {}  #: by producer id, until a transactional batch is accepted
        self._watchers: set[Callable[[], None]] = set()

    @property
    def stable(self) -> int:
        """The last stable offset: all transactions below it are decided, and all records are durable. It is never below
        the batch with ``start``; as in Kafka, it may be the base offset of that batch."""
        return min(self.high, max(min(self._durable.open.values(), default=self.high), self._first))

    @property
    def open_producers(self) -> tuple[int, ...]:
        """The ids of producers with an open transaction."""
        return tuple(self._now.open)

    def add(self, batch: Batch) -> tuple[Batch, bool]:
        """Append a batch. Returns it with its offsets, and whether it is new: a duplicate is not appended. Raises
        ``Refused``."""
        looked_up = self._looked_up.get(batch.producer_id)
        known = None if batch.control else self._now.producers.again(batch, looked_up)
        if known is not None:
            return replace(placed(batch, known.base, self.leader_epoch), max_timestamp=known.max_timestamp), False
        if batch.producer_id in self._now.open and not batch.transactional:
            words = "the producer has an open transaction, but the batch is not transactional"
            raise Refused(Code.invalid_txn_state, words)
        put = placed(batch, self.end, self.leader_epoch)
        self._put(put, committed=None)
        return put, True

    def verify(self, batch: Batch, *, bumps: bool) -> bool:
        """Return whether the transaction coordinator must verify a transactional batch, because its transaction is not
        open in this partition (KIP-890), and note the batch. If the coordinator rejects it, the log rejects later
        batches of the producer until it accepts this one or the transaction ends. ``bumps``: as in ``LookedUp``. Raises
        ``Refused`` if the producer has written in a later epoch."""
        if self._now.producers.epoch(batch.producer_id) != -1:
            self._now.producers.check_epoch(batch)
        if self._now.ongoing(batch.producer_id, batch.producer_epoch):
            return False
        epoch, sequence = batch.producer_epoch, batch.base_sequence
        found = self._looked_up.get(batch.producer_id)
        if found is None:
            found = LookedUp(epoch, sequence, bumps)
        elif epoch > found.epoch or (epoch == found.epoch and sequence < found.lowest):
            found = LookedUp(epoch, sequence, found.bumps)
        self._looked_up[batch.producer_id] = found
        if len(self._looked_up) > MOST:
            del self._looked_up[next(iter(self._looked_up))]
        return True

    def end_transaction(self, marker: Batch, *, committed: bool) -> Batch:
        """Append the marker that ends a transaction."""
        put = placed(marker, self.end, self.leader_epoch)
        self._put(put, committed=committed)
        return put

    def _put(self, put: Batch, *, committed: bool | None) -> None:
        self._tail.put(put)
        self._pending.append((put, committed))
        self.size += len(put.data)
        self.end = put.last + 1
        self._now.wrote(put, committed=committed)
        if put.transactional:
            self._accepted(put)

    def _accepted(self, put: Batch) -> None:
        """Forget what the transaction coordinator was asked, unless the marker is that of an earlier transaction."""
        found = self._looked_up.get(put.producer_id)
        if found is not None and not (found.bumps and put.control and put.producer_epoch == found.epoch):
            del self._looked_up[put.producer_id]

    def restore(self, put: Batch, *, committed: bool | None) -> None:
        """Add a batch from the store at a start. ``committed``: whether a marker commits its transaction."""
        self.size += len(put.data)
        self.end = put.last + 1
        self._wrote(put)
        if put.base >= self._known_until:
            self._now.wrote(put, committed=committed)
            self._durable.wrote(put, committed=committed)

    @property
    def state(self) -> PartitionState:
        """The producers and transactions of the durable batches, as values for JSON. Kafka has them in a snapshot."""
        return {"end": self.high, **self._durable.as_row()}

    def begin(self, state: PartitionState) -> None:
        """Start with a stored ``state``, before the first ``restore``. It knows producers and transactions whose
        batches were deleted. Raises ``ValueError``, ``KeyError`` or ``TypeError`` for an invalid one."""
        self._known_until = int(state["end"])
        self._durable = Known.of_row(state)
        self._now = self._durable.copy()

    def retract(self) -> None:
        """Remove the batches that could not be made durable."""
        if not self._pending:
            return
        for _ in self._pending:
            self.size -= len(self._tail.drop_last().data)
        self._pending.clear()
        self._now = self._durable.copy()
        self.end = self.high
        self.notify_watchers()

    def durable(self, end: int) -> None:
        """Raise the high watermark: all records below ``end`` are durable. Waiting readers look again."""
        if end <= self.high:
            return
        while self._pending and self._pending[0][0].last < end:
            batch, committed = self._pending.popleft()
            self._wrote(batch)
            self._durable.wrote(batch, committed=committed)
            if self._budget is not None:
                self._budget.took(self._tail, batch)
        self.high = end
        self.notify_watchers()

    def notify_watchers(self) -> None:
        """Call the watchers, so that waiting readers look again."""
        for each in list(self._watchers):
            each()

    def watch(self, watcher: Callable[[], None]) -> None:
        """Call ``watcher`` when there may be more to read."""
        self._watchers.add(watcher)

    def unwatch(self, watcher: Callable[[], None]) -> None:
        """Remove a watcher."""
        self._watchers.discard(watcher)

    def check_epoch(self, epoch: int) -> Code:
        """Return the error of a client's leader epoch; ``none`` if it is the current one, or -1 for no epoch."""
        if epoch > self.leader_epoch:
            return Code.unknown_leader_epoch
        return Code.fenced_leader_epoch if epoch != -1 and epoch < self.leader_epoch else Code.none

    def epoch_of(self, offset: int) -> int:
        """Return the leader epoch in which the record at an offset was written; the current one for the end."""
        if offset >= self.high:
            return self.leader_epoch
        at = bisect_right(self._epochs, offset, key=lambda row: row[1])
        return self._epochs[at - 1][0] if at else -1

    def end_of(self, epoch: int) -> tuple[int, int]:
        """Return the greatest epoch with records that is not above ``epoch``, and its end offset; -1 and -1 for an
        epoch that has not begun, and for -1, not an epoch. If the records of the epoch were deleted, the end is
        the start of the log. Any other negative epoch counts as one before the first. All as in Kafka's
        ``LeaderEpochFileCache``."""
        if epoch == self.leader_epoch:
            return epoch, self.high
        if epoch == -1 or epoch > self.leader_epoch:
            return -1, -1
        at = bisect_right(self._epochs, epoch, key=lambda row: row[0])
        end = self._epochs[at][1] if at < len(self._epochs) else self.high
        return self._epochs[at - 1][0] if at else epoch, max(end, self.start)

    def _wrote(self, put: Batch) -> None:
        """Add a durable batch to the index and the leader epochs."""
        self._blocks.add(put)
        epoch = leader_epoch_of(put)
        if not self._epochs or epoch > self._epochs[-1][0]:
            self._epochs.append((epoch, put.base))

    def check(self, offset: int, last_epoch: int = -1) -> Code:
        """Return the error of reading at an offset; ``last_epoch`` is the epoch of the reader's last record, -1 if it
        sends none."""
        if last_epoch < 0:
            return Code.none if self.start <= offset <= self.high else Code.offset_out_of_range
        epoch, _ = self.end_of(last_epoch)
        return Code.offset_out_of_range if epoch < 0 or offset < self.start else Code.none

    async def read(self, offset: int, most: int, *, committed: bool, one_at_least: bool) -> Fetched:
        """Return complete batches from an offset on, at most ``most`` bytes; with ``one_at_least``, the first one even
        if it is larger. Raises what the store raises."""
        limit = self.stable if committed else self.high
        found: list[bytes] = []
        size = 0
        last = offset
        for batch in await self._since(offset, limit, most):
            if batch.last < offset:
                continue
            if batch.last >= limit or (size + len(batch.data) > most and not (one_at_least and not found)):
                break
            found.append(batch.data)
            size += len(batch.data)
            last = batch.last
        if offset < self.start:  # deleted meanwhile
            return Fetched()
        aborted: tuple[Aborted, ...] = ()
        if committed and found:
            aborted = tuple(each for each in self._durable.aborted if each.last >= offset and each.first <= last)
        return Fetched(b"".join(found), aborted)

    async def _since(self, offset: int, limit: int, most: int) -> Sequence[Batch]:
        """Return batches from the one with an offset on, of about ``most`` bytes."""
        if offset >= limit:
            return ()
        first = self._tail.base
        if self._source is None or (first is not None and first <= offset):
            return self._tail.since(offset, most)
        return [read_header(data) for data in await self._source(offset, most)]

    async def scan(self, offset: int, limit: int) -> AsyncIterator[Batch]:
        """Yield, in order, the durable batches whose base offset is at least ``offset`` and below ``limit``."""
        limit = min(limit, self.high)
        while offset < limit:
            some = await self._since(offset, limit, _PIECE)
            if not some:
                return
            for batch in some:
                if batch.base >= limit:
                    return
                if batch.base >= offset:
                    yield batch
            offset = max(some[-1].last + 1, offset + 1)

    @property
    def blocks(self) -> Index:
        """The sparse index of the log."""
        return self._blocks

    def ready(self, offset: int, *, committed: bool) -> int:
        """Return about how many bytes a reader can read from an offset on."""
        limit = self.stable if committed else self.high
        if offset >= limit:
            return 0
        first = self._tail.base
        if first is not None and first <= offset:
            return self._tail.bytes_between(offset, limit)
        return self._blocks.bytes_between(offset, limit)

    async def delete_before(self, offset: int) -> int:
        """Delete the records below an offset. Only complete batches are removed, but no reader sees records below the
        offset. Returns the base offset of the first batch that is left; the high watermark if none is."""
        self.start = max(self.start, offset)
        base, gone = self._blocks.before(self.start)
        gone = max(gone, self._gone)
        first = self.high
        async for batch in self.scan(base, self.high):
            if batch.last >= self.start:
                first = batch.base
                break
            gone += len(batch.data)
        self._forget(first, gone)
        self._first = first
        return first

    def restored(self, start: int, end: int) -> None:
        """Set the offsets after the last ``restore``. ``start`` and ``end`` are those stored when records were
        deleted. If all were, the producers are forgotten: Kafka drops a snapshot that is not above the first offset."""
        self.end = self.high = max(self.end, end)
        self._first = min(self._blocks.begin, self.end)
        self.start = max(start, self._first)
        if self.start == self.end:
            self._durable = Known()
            self._now = Known()

    def _forget(self, first: int, gone: int) -> None:
        """Drop the batches below ``first``, the base offset of the first batch that is left. ``gone``: the bytes of all
        batches before it."""
        if gone > self._gone:
            self.size -= gone - self._gone
            self._gone = gone
        while self._tail.base is not None and self._tail.base < first:
            self._tail.drop_first()
        self._blocks.drop_before(first)
        self._now.forget(self.start)
        self._durable.forget(self.start)


async def durably(log: PartitionLog, last: int) -> bool:
    """Wait until the record at an offset is durable or was removed, at most ``_LONGEST_WRITE_S`` seconds. Returns
    whether it is durable."""
    await wait_for_any([log], _LONGEST_WRITE_S, lambda: log.high > last or log.end <= last)
    return log.high > last


async def wait_for_any(logs: list[PartitionLog], seconds: float, enough: Callable[[], bool]) -> None:
    """Wait for changes of the logs until ``enough`` returns True, at most ``seconds``."""
    changed = asyncio.Event()
    for each in logs:
        each.watch(changed.set)
    loop = asyncio.get_running_loop()
    deadline = loop.time() + seconds
    try:
        while not enough():
            left = deadline - loop.time()
            if left <= 0:
                return
            changed.clear()
            try:
                await asyncio.wait_for(changed.wait(), left)
            except TimeoutError:
                return
    finally:
        for each in logs:
            each.unwatch(changed.set)
