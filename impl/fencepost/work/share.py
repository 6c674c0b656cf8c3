"""The partitions that a worker has, until it gives them up or loses them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from typing import Any, Final, Protocol

from fencepost.protocol.partitions import TopicPartition

from .problems import ShareLost

_GREATEST: Final = (1 << 63) - 1


class Offsets(Protocol):
    """Commits and fetches for a share."""

    async def commit(self, share: Share, offsets: Mapping[TopicPartition, int], metadata: str) -> None: ...

    async def committed(self, share: Share) -> dict[TopicPartition, int]: ...


class Share:
    """Partitions of this worker. ``gained``: those that are new in this share.

    A share ends when the worker must give up partitions, gets more, or has lost them. Work on it while it is ``held``;
    then return to the loop, which gives up partitions and waits for the next share. No other worker gets them before
    the loop is back, unless the worker takes longer than its rebalance timeout: then it is fenced, and the share is
    ``lost``.
    """

    def __init__(self, offsets: Offsets, partitions: frozenset[TopicPartition], gained: frozenset[TopicPartition]):
        self.partitions = partitions
        self.gained = gained
        self.lost = False
        self._offsets = offsets
        self._over = asyncio.Event()

    def __iter__(self) -> Iterator[TopicPartition]:
        return iter(sorted(self.partitions))

    def __contains__(self, partition: object) -> bool:
        return partition in self.partitions

    def __len__(self) -> int:
        return len(self.partitions)

    def __repr__(self) -> str:
        named = ", ".join(f"{each.topic}-{each.partition}" for each in self)
        return f"Share({named or 'nothing'}{', lost' if self.lost else '' if self.held else ', over'})"

    @property
    def held(self) -> bool:
        """Whether the program may continue to work on it."""
        return not self._over.is_set()

    def numbers(self, topic: str) -> list[int]:
        """Return the numbers of its partitions of this topic, in order."""
        return [each.partition for each in self if each.topic == topic]

    async def rest(self, seconds: float) -> bool:
        """Wait for ``seconds``, but only while the share is held. Return whether it still is."""
        try:
            async with asyncio.timeout(seconds):  # in Python 3.11, wait_for may swallow a cancellation
                await self._over.wait()
        except TimeoutError:
            return True
        return False

    async def over(self) -> None:
        """Wait until the share is no longer held."""
        await self._over.wait()

    async def commit(self, offsets: Mapping[TopicPartition, int], *, metadata: str = "") -> None:
        """Commit how far the work has come: each offset is that of the next item. Returns when the coordinator has it
        in its log. Commits are fenced: one of a worker that has lost the share is rejected (O-COMMIT-25, O-COMMIT-32).

        Raises ``ShareLost``, ``CommitFailed``; ``ValueError`` for a partition that is not in this share, and for an
        offset that is negative or exceeds 64 bits; ``TypeError`` for one that is not an integer."""
        strange = sorted(offsets.keys() - self.partitions)
        if strange:
            raise ValueError(f"{strange[0].topic}-{strange[0].partition} is not a partition of this share")
        for partition, offset in offsets.items():
            _require_offset(partition, offset)
        if self.lost:
            raise ShareLost("the share is lost: the worker no longer owns its partitions")
        if offsets:
            await self._offsets.commit(self, offsets, metadata)

    async def committed(self) -> dict[TopicPartition, int]:
        """Return the committed offsets of the share's partitions, by any worker; a partition without one is omitted."""
        return await self._offsets.committed(self)

    def end(self, *, lost: bool = False) -> None:
        """End the share; only the worker calls it."""
        self.lost = self.lost or lost
        self._over.set()


def _require_offset(partition: TopicPartition, offset: Any) -> None:
    """Raise ``ValueError`` or ``TypeError`` for a bad offset. Kafka's coordinator stores negative offsets, but its
    consumer rejects them, as this does."""
    where = f"the offset of {partition.topic}-{partition.partition}"
    if type(offset) is not int:
        raise TypeError(f"{where} must be an int (got {offset!r})")
    if not 0 <= offset <= _GREATEST:
        raise ValueError(f"{where} must be from 0 to {_GREATEST} (got {offset})")
