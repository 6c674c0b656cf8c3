"""Interface of a store: the logs of a host's coordinators, and the other data of the host."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Protocol

from fencepost.protocol.errors import ErrorCode, MisuseError
from fencepost.protocol.records import Record
from fencepost.protocol.shapes import bounds, fault

from .kept import Change, DropBatches, Kept, PutBatch


class AppendError(Exception):
    """No record of the append is in the log. ``error``: the reason for clients, mapped by C-SYNC-30 and F-RT-10."""

    def __init__(self, error: ErrorCode, reason: str = "") -> None:
        super().__init__(reason or error.name)
        self.error = error


class StoreError(Exception):
    """The store cannot be used, or its content is unknown; the message says where, and what to do."""


class OtherPartitions(StoreError, ValueError):
    """The store has another number of partitions, which never changes while groups exist (F-LOC-04)."""

    def __init__(self, asked: int, has: int) -> None:
        super().__init__(
            f"partitions must be {has}, as when the store was created (got {asked}); the number decides which group is "
            f"in which partition, so it cannot change: open the store with {has}, or without a number"
        )


class ClosedStore(MisuseError):
    """The store was closed, or not opened."""

    def __init__(self) -> None:
        super().__init__("the store is not open; use it within 'async with store:', or between open() and close()")


class NotInStore(MisuseError, ValueError):
    """The store does not have that partition, or cannot store that number; the message says what is allowed."""


def require_partition(number: int, partitions: int) -> None:
    """Raise ``NotInStore`` for a partition of groups that the store does not have."""
    if not 0 <= number < partitions:
        raise NotInStore(f"partition must be from 0 to {partitions - 1} (got {number})")


def require_changes(changes: Iterable[Change]) -> None:
    """Raise ``NotInStore`` for a change with a number that the store cannot hold."""
    for change in changes:
        wrong = fault(change)
        if wrong is not None:
            raise NotInStore(wrong)
        if isinstance(change, PutBatch):
            require_place(change.partition, change.base)
        elif isinstance(change, DropBatches):
            require_place(change.partition or 0, change.below)


def require_place(partition: int, offset: int) -> None:
    """Raise ``NotInStore`` for a partition or offset that no batch of a topic can have."""
    for name, number, field in (("partition", partition, "partition"), ("offset", offset, "offset")):
        most = bounds(field)[1]
        if not 0 <= number <= most:
            raise NotInStore(f"the {name} of a batch must be from 0 to {most} (got {number})")


def unfit(records: Iterable[Record]) -> str | None:
    """Return a message about the first number that does not fit into its bytes; None if all fit."""
    return next((wrong for record in records if (wrong := fault(record)) is not None), None)


def partitions_of(asked: int | None, has: int | None, new: int) -> int:
    """Return the number of partitions of a store that has ``has`` (None: it is new) and is opened with ``asked`` (None:
    any, and ``new`` in a new store). Raises ``OtherPartitions``, and ``ValueError`` for less than one."""
    if asked is not None and asked < 1:
        raise ValueError(f"partitions must be >= 1 (got {asked})")
    if asked is not None and has is not None and asked != has:
        raise OtherPartitions(asked, has)
    return has or asked or new


class Store(Protocol):
    """The logs of a host's coordinators, by partition of the offsets topic, and the host's other data.

    A new store has a number of partitions, one by default, and keeps it. Only the leader of a log that was elected last
    can write to it (F-CONS-07). Every call raises ``ClosedStore`` while the store is closed, and ``NotInStore`` for a
    partition that it does not have."""

    async def open(self) -> int:
        """Open or create the store, unless it is open; return the number of partitions. Raises ``StoreError`` for a
        store that cannot be used."""

    async def close(self) -> None:
        """Write queued data, then close the store."""

    async def lead(self, partition: int) -> int:
        """Elect a leader with the next epoch, durably, and return the epoch. The previous leader can no longer
        write."""

    async def load(self, partition: int) -> Sequence[Record]:
        """Return all remaining records of a partition, in log order. Raises ``StoreError`` if they may be wrong."""

    def append(self, partition: int, records: Sequence[Record], *, leader_epoch: int) -> asyncio.Future[None]:
        """Append all records or none to the partition, in the order of the calls. The future is done when they are
        durable.

        It fails with ``AppendError`` if none was added, and with ``FencedEpoch`` if none was, because another leads.
        After any other exception the log's content is unknown until ``load``. After a failed append, appends to the
        same partition that were queued before the failure was reported fail too, so there are no gaps."""

    def due(self, partition: int) -> bool:
        """Return whether a compaction is worthwhile now."""

    async def compact(self, partition: int) -> int:
        """Delete records that are no longer needed, while appends continue; return their number. The partition must not
        be loading."""

    async def write(self, changes: Sequence[Change]) -> None:
        """Store data other than group records, all or none, in the order of the calls; return when it is durable.
        Raises the same errors as ``append``."""

    async def kept(self) -> Kept:
        """Return all such data, except batches."""

    async def batches(
        self, topic_id: bytes, partition: int, offset: int, most: int, *, within: bool = True
    ) -> Sequence[bytes]:
        """Return batches of a topic in order, from that offset on: at most ``most`` bytes together, but at least one
        batch if there is one. ``within``: start with the batch that may contain the offset, instead of the first one
        that begins at or after it. Raises ``StoreError`` for a damaged batch."""
