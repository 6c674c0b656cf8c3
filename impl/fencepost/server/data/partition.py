"""The log of one partition: batches in order, and which of them belong to transactions that are open or aborted."""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from kio.schema.errors import ErrorCode as Code

from .batches import Batch, placed
from .producers import Producers

#: This server is the only leader that there ever was.
LEADER_EPOCH: Final = 0
#: a write that takes longer is told as failed
_LONGEST_WRITE_S: Final = 30.0


@dataclass(frozen=True, slots=True)
class Aborted:
    """A transaction that was aborted here: its first offset, and that of its marker."""

    producer_id: int
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Fetched:
    """What a fetch gets of a partition."""

    records: bytes = b""
    aborted: tuple[Aborted, ...] = ()


class PartitionLog:
    """Offsets: ``start`` the first that is kept, ``end`` the next to be given, ``high`` up to which all is durable."""

    def __init__(self, index: int) -> None:
        self.index = index
        self.start = 0
        self.end = 0
        self.high = 0
        self.size = 0
        self.batches: list[Batch] = []
        self.producers = Producers()
        self._bases: list[int] = []
        self._open: dict[int, int] = {}
        self._aborted: list[Aborted] = []
        self._watchers: set[Callable[[], None]] = set()

    @property
    def stable(self) -> int:
        """The last stable offset: before it all transactions are decided, and all is durable."""
        return min([self.high, *self._open.values()])

    @property
    def open_producers(self) -> tuple[int, ...]:
        """Those with a transaction that is not decided."""
        return tuple(self._open)

    def add(self, batch: Batch) -> tuple[Batch, bool]:
        """Puts the batch at the end: the batch at its place, and whether it is new. Raises ``Refused``."""
        known = None if batch.control else self.producers.again(batch)
        if known is not None:
            return placed(batch, known, LEADER_EPOCH), False
        put = placed(batch, self.end, LEADER_EPOCH)
        self.restore(put, committed=None)
        return put, True

    def end_transaction(self, marker: Batch, *, committed: bool) -> Batch:
        """Writes the marker that ends a transaction."""
        put = placed(marker, self.end, LEADER_EPOCH)
        self.restore(put, committed=committed)
        return put

    def restore(self, put: Batch, *, committed: bool | None) -> None:
        """Takes over a batch at its place, as when a log is read again. ``committed`` of a marker."""
        self.batches.append(put)
        self._bases.append(put.base)
        self.size += len(put.data)
        self.end = put.last + 1
        self.producers.wrote(put)
        if not put.transactional:
            return
        if not put.control:
            self._open.setdefault(put.producer_id, put.base)
            return
        first = self._open.pop(put.producer_id, None)
        if first is not None and not committed:
            self._aborted.append(Aborted(put.producer_id, first, put.last))

    def retract(self) -> None:
        """Take back what is not durable, and never will be."""
        left = [each for each in self.batches if each.last < self.high]
        if len(left) == len(self.batches):
            return
        decided = {each.last for each in self._aborted}
        self.batches, self._bases, self.size, self.end = [], [], 0, self.high
        self.producers, self._open, self._aborted = Producers(), {}, []
        for each in left:
            self.restore(each, committed=each.last not in decided if each.control else None)
        self.end = self.high
        self.tell()

    def durable(self, end: int) -> None:
        """All below that offset is durable; who waits for more is told."""
        if end > self.high:
            self.high = end
            self.tell()

    def tell(self) -> None:
        """Have those look again who wait for more."""
        for each in list(self._watchers):
            each()

    def watch(self, watcher: Callable[[], None]) -> None:
        """Have it called when there may be more to read."""
        self._watchers.add(watcher)

    def unwatch(self, watcher: Callable[[], None]) -> None:
        """The opposite."""
        self._watchers.discard(watcher)

    def check(self, offset: int, epoch: int) -> Code:
        """Whether a reader may read there that believes in that leader's epoch (-1: in none)."""
        if epoch > LEADER_EPOCH:
            return Code.unknown_leader_epoch
        return Code.none if self.start <= offset <= self.high else Code.offset_out_of_range

    def read(self, offset: int, most: int, *, committed: bool, one_at_least: bool) -> Fetched:
        """Whole batches from that offset on, as many as fit; the first in any case if ``one_at_least``."""
        limit = self.stable if committed else self.high
        found: list[bytes] = []
        size = 0
        last = offset
        for at in range(max(bisect_right(self._bases, offset) - 1, 0), len(self.batches)):
            batch = self.batches[at]
            if batch.last < offset:
                continue
            if batch.last >= limit or (size + len(batch.data) > most and not (one_at_least and not found)):
                break
            found.append(batch.data)
            size += len(batch.data)
            last = batch.last
        aborted: tuple[Aborted, ...] = ()
        if committed and found:
            aborted = tuple(each for each in self._aborted if each.last >= offset and each.first <= last)
        return Fetched(b"".join(found), aborted)

    def ready(self, offset: int, *, committed: bool) -> int:
        """How many bytes there are to read from that offset on, about."""
        limit = self.stable if committed else self.high
        if offset >= limit:
            return 0
        at = max(bisect_right(self._bases, offset) - 1, 0)
        return sum(len(batch.data) for batch in self.batches[at:] if offset <= batch.last < limit)

    def delete_before(self, offset: int) -> None:
        """Forget what is below that offset; whole batches only, though nobody reads below it."""
        self.start = max(self.start, offset)
        keep = next((at for at, each in enumerate(self.batches) if each.last >= self.start), len(self.batches))
        self.size -= sum(len(each.data) for each in self.batches[:keep])
        del self.batches[:keep], self._bases[:keep]
        self._aborted = [each for each in self._aborted if each.last >= self.start]


async def durably(log: PartitionLog, last: int) -> bool:
    """Waits until the record at that offset is durable; whether it is, for it may be taken back."""
    await wait_for_any([log], _LONGEST_WRITE_S, lambda: log.high > last or log.end <= last)
    return log.high > last


async def wait_for_any(logs: list[PartitionLog], seconds: float, enough: Callable[[], bool]) -> None:
    """Until there is enough, at most so long."""
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
