"""The topic ``__consumer_offsets`` as clients read it: the records of the coordinators, as the batches that Kafka has.

The store of the coordinators keeps the records. The topic exists from the first request that names it: then it is
filled from the store, and follows the steps of the coordinators. So a server whose topic has no reader pays nothing.

A partition ends at the offset of its coordinator's log. The store may have compacted the log, so the first offset can
be above 0. Records from the store have the time in their value, or none; followed ones have the time of their step.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from typing import Final, NamedTuple, Protocol
from uuid import NAMESPACE_OID, uuid5

from fencepost.codec import NEWEST, Codec, Layout
from fencepost.host.broker import HostEvent, OnPartition, Served
from fencepost.protocol.consumer_records import ConsumerGroupTargetAssignmentMetadataValue
from fencepost.protocol.events import Appended, AppendFailed, Load, LoadFailed, LoadStarted, Unload
from fencepost.protocol.offset_records import ControlKey, OffsetCommitValue, Producer
from fencepost.protocol.records import GroupMetadataValue, Record
from fencepost.store import Store
from fencepost_server.data.batches import Batch, read_header
from fencepost_server.data.encoding import encode_batch
from fencepost_server.data.partition import PartitionLog
from fencepost_server.data.topics import Topic

NAME: Final = "__consumer_offsets"
TOPIC_ID: Final = uuid5(NAMESPACE_OID, NAME).bytes
CONFIG: Final = {"cleanup.policy": "compact", "compression.type": "producer", "segment.bytes": "104857600"}
_NO_TIME: Final = -1
#: records of a load in one batch
_TOGETHER: Final = 500
#: the size of a partition in memory, in bytes, from which it is filled from the store again, which compacts it
_MOST: Final = 16 << 20


class Coordinators(Protocol):
    """The host of the coordinators. ``fencepost.aio.GroupBroker`` is one."""

    @property
    def partitions(self) -> int:
        """The number of partitions of the offsets topic."""

    def log_end(self, partition: int) -> int:
        """Return the offset of the next record of a partition."""

    def watch(self, watcher: Callable[[HostEvent, Served], None]) -> None:
        """Call ``watcher`` after each step."""


class _Written(NamedTuple):
    """A batch. ``committed``: of a marker, whether it commits its transaction."""

    batch: Batch
    committed: bool | None


class _Partition:
    """A partition that follows its coordinator: the batches, and those that are not durable yet."""

    def __init__(self, index: int, leader_epoch: int) -> None:
        self.log = PartitionLog(index, self._read, leader_epoch=leader_epoch)
        self._bases: list[int] = []
        self._batches: list[bytes] = []
        self._pending: deque[_Written] = deque()
        self.filled = False  #: until then, what is followed waits
        self.end = 0  #: the offset after the last record, durable or not

    async def _read(self, offset: int, most: int) -> Sequence[bytes]:
        at = max(bisect_right(self._bases, offset) - 1, 0)
        found: list[bytes] = []
        size = 0
        for data in self._batches[at:]:
            size += len(data)
            if found and size > most:
                break
            found.append(data)
        return found

    def fill(self, batches: Iterable[_Written], base: int, end: int) -> None:
        """Begin with the batches of the store, which end at ``end``."""
        for each in batches:
            self._hold(each)
        self.log.restored(base, end)
        self.filled = True

    def follow(self, batches: Iterable[_Written], end: int) -> None:
        """Add batches of a step."""
        self._pending.extend(batches)
        self.end = end

    def durable(self, end: int) -> None:
        """Show the batches below ``end``."""
        shown = False
        while self.filled and self._pending and self._pending[0].batch.last < end:
            self._hold(self._pending.popleft())
            shown = True
        if shown:
            self.log.restored(self.log.start, self.log.end)
            self.log.notify_watchers()

    def _hold(self, written: _Written) -> None:
        batch = written.batch
        self._bases.append(batch.base)
        self._batches.append(batch.data)
        self.log.restore(batch, committed=written.committed)


class OffsetsTopic:
    """The topic of the coordinators ``groups``, whose records are in ``store``. ``layout``: of the release whose bytes
    the records have. ``topic`` is None until it is read."""

    def __init__(self, groups: Coordinators, store: Store, leader_epoch: int = 0, layout: Layout = NEWEST) -> None:
        self.topic: Topic | None = None
        self._codec = Codec(layout)
        self._groups = groups
        self._store = store
        self._leader_epoch = leader_epoch
        self._filling = asyncio.Lock()
        self._parts: list[_Partition] = []
        self._stale: set[int] = set()  #: partitions to fill from the store before they are read

    async def ready(self) -> Topic:
        """Fill what is missing, and return the topic. Raises ``StoreError``."""
        async with self._filling:
            if self.topic is None:
                self._parts = [_Partition(index, self._leader_epoch) for index in range(self._groups.partitions)]
                self._stale = {*range(len(self._parts))}
                self.topic = Topic(NAME, TOPIC_ID, [each.log for each in self._parts], dict(CONFIG))
                self._groups.watch(self._watch)
            for index in sorted(self._stale):
                await self._fill(self.topic, index)
            return self.topic

    async def _fill(self, topic: Topic, index: int) -> None:
        part = _Partition(index, self._leader_epoch)
        old, self._parts[index] = self._parts[index], part
        # The steps are followed from here on. The load sees exactly the appends that were queued before it.
        self._stale.discard(index)
        end = part.end = self._groups.log_end(index)
        try:
            records = await self._store.load(index)
        except BaseException:
            self._stale.add(index)
            raise
        base = max(end - len(records), 0)
        part.fill(self._encoded(records, base, None), base, base + len(records))
        topic.logs[index] = part.log
        old.log.notify_watchers()

    def _watch(self, event: HostEvent, served: Served) -> None:
        """Follow one step (``GroupBroker.watch``)."""
        one = event.event if isinstance(event, OnPartition) else event
        for index, outcome in served.parts:
            if index in self._stale:
                continue
            part = self._parts[index]
            if isinstance(one, AppendFailed | Load | LoadFailed | LoadStarted | Unload) or part.log.size > _MOST:
                self._stale.add(index)
                continue
            if outcome.written:
                records = outcome.records
                end = part.end + len(records)
                part.follow(self._encoded(records, part.end, one.at_ms), end)
            if isinstance(one, Appended):
                part.durable(one.offset)

    def _encoded(self, records: Iterable[Record], base: int, at_ms: int | None) -> Iterator[_Written]:
        """Encode records, those with equal headers together; with ``at_ms`` None, each has the time of its value."""
        for (producer, ends, time), some in groupby(enumerate(records, base), key=lambda row: _header(row[1], at_ms)):
            batch = [(offset, *self._codec.encode(record)) for offset, record in some]
            for first in range(0, len(batch), _TOGETHER):
                data = encode_batch(
                    batch[first : first + _TOGETHER],
                    time,
                    leader_epoch=self._leader_epoch,
                    producer=producer,
                    control=ends is not None,
                )
                yield _Written(read_header(data), ends)


def _header(record: Record, at_ms: int | None) -> tuple[Producer | None, bool | None, int]:
    """Return what the records of a batch share: the producer, how they end its transaction if they do, and the time."""
    ends = record.key.committed if isinstance(record.key, ControlKey) else None
    if at_ms is not None:
        return record.producer, ends, at_ms
    match record.value:
        case OffsetCommitValue(commit_timestamp=time) | GroupMetadataValue(current_state_timestamp=time):
            return record.producer, ends, time
        case ConsumerGroupTargetAssignmentMetadataValue(assignment_timestamp=time) if time > 0:
            return record.producer, ends, time
    return record.producer, ends, _NO_TIME
