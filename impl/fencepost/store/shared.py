"""What a broker needs of a store that all its partitions share."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Final, Protocol

from fencepost.protocol.errors import MisuseError
from fencepost.protocol.records import Record
from fencepost.protocol.shapes import bounds, fault

from .kept import Change, DropBatches, Kept, PutBatch

#: As many partitions has Kafka's offsets topic.
PARTITIONS: Final = 50


class StoreError(Exception):
    """A store that cannot be used, or is in doubt; the message says where, and what to do."""


class OtherPartitions(StoreError, ValueError):
    """The store was made for another number of partitions, which never changes while groups exist (F-LOC-04)."""

    def __init__(self, asked: int, has: int) -> None:
        super().__init__(
            f"this store was made for {has} partitions of groups, not {asked}; which groups are in which follows from "
            f"that number, so it stays: open it with {has}, or without a number"
        )


class ClosedStore(MisuseError):
    """The store was closed, or never opened."""

    def __init__(self) -> None:
        super().__init__("the store is not open; use it within 'async with store:', or between open() and close()")


class NotInStore(MisuseError, ValueError):
    """A partition that the store does not have, or a number that no store can hold; the message says what fits."""


def require_partition(number: int, partitions: int) -> None:
    """Raises ``NotInStore`` for a partition of groups that the store does not have."""
    if not 0 <= number < partitions:
        raise NotInStore(f"the store has the partitions 0 to {partitions - 1} (got {number})")


def require_changes(changes: Iterable[Change]) -> None:
    """Raises ``NotInStore`` for a change with a number that no store can hold."""
    for change in changes:
        wrong = fault(change)
        if wrong is not None:
            raise NotInStore(wrong)
        if isinstance(change, PutBatch):
            require_place(change.partition, change.base)
        elif isinstance(change, DropBatches):
            require_place(change.partition or 0, change.below)


def require_place(partition: int, offset: int) -> None:
    """Raises ``NotInStore`` for a place that no batch of a topic can have."""
    for name, number, field in (("partition", partition, "partition"), ("offset", offset, "offset")):
        most = bounds(field)[1]
        if not 0 <= number <= most:
            raise NotInStore(f"the {name} of a batch must be from 0 to {most} (got {number})")


def unfit(records: Iterable[Record]) -> str | None:
    """The first number in these records that their bytes have no room for, in words; None if all fit."""
    return next((wrong for record in records if (wrong := fault(record)) is not None), None)


def partitions_of(asked: int | None, has: int | None) -> int:
    """How many partitions a store has that is opened with a number, or with none. Raises ``OtherPartitions``, and
    ``ValueError`` for less than one."""
    if asked is not None and asked < 1:
        raise ValueError(f"a store has at least one partition of groups, not {asked}")
    if asked is not None and has is not None and asked != has:
        raise OtherPartitions(asked, has)
    return has or asked or PARTITIONS


class SharedStore(Protocol):
    """The logs of the coordinators of one broker, by partition of the offsets topic, and what the broker keeps beside
    them. It is made for a number of partitions, 50 if none is named, and keeps it. Of each log one leader writes at a
    time: the one elected last (F-CONS-07). Every call raises ``ClosedStore`` while the store is closed, and
    ``NotInStore`` for a partition that it does not have."""

    async def open(self) -> int:
        """Open it, or make it; if it is open, nothing more. Says how many partitions it has. Raises ``StoreError`` for
        what cannot be used."""

    async def close(self) -> None:
        """Write what was asked for, then close it."""

    async def lead(self, partition: int) -> int:
        """Elect a leader, whose epoch is one above the last, durably. Who led before can write no more."""

    async def load(self, partition: int) -> Sequence[Record]:
        """Every record of a partition that is left, in log order. Raises ``StoreError`` if it cannot be trusted, rather
        than guess."""

    def append(self, partition: int, records: Sequence[Record], *, leader_epoch: int) -> asyncio.Future[None]:
        """Add records behind the others of the partition, all or none, in the order of the calls. Done once they are
        durable.

        It fails with ``AppendError`` if none of them was added, with ``FencedEpoch`` if none was, because another
        leads; any other exception leaves open what is in the log, until ``load`` tells. Once an append has failed,
        those of its partition fail too that were asked for before this one's failure was told: there are no gaps."""

    def due(self, partition: int) -> bool:
        """Whether a compaction is worth it now."""

    async def compact(self, partition: int) -> int:
        """Drop records that nobody needs, while others are appended; how many. Nobody may be loading the partition."""

    async def write(self, changes: Sequence[Change]) -> None:
        """Keep what is no record of groups, all or none, in the order of the calls; returns when it is durable. Raises
        as ``append`` fails."""

    async def kept(self) -> Kept:
        """All that was kept so, but for batches."""

    async def batches(
        self, topic_id: bytes, partition: int, offset: int, most: int, *, within: bool = True
    ) -> Sequence[bytes]:
        """Batches of a topic in order, from that offset on, of at most so many bytes together, one at least if there is
        one. ``within``: the one that the offset may lie in comes first, else those only that begin there or behind.
        Raises ``StoreError`` for one that is not as it was written."""


class OnePartition:
    """One partition of a shared store as the ``Store`` of one coordinator. Each load is a new leader epoch."""

    def __init__(self, store: SharedStore, partition: int = 0) -> None:
        self._store = store
        self._partition = partition
        self._epoch = 0

    async def load(self) -> Sequence[Record]:
        await self._store.open()
        self._epoch = await self._store.lead(self._partition)
        return await self._store.load(self._partition)

    async def append(self, records: Sequence[Record]) -> None:
        """Compacts too, when it is worth it."""
        await self._store.append(self._partition, records, leader_epoch=self._epoch)
        if self._store.due(self._partition):
            await self._store.compact(self._partition)
