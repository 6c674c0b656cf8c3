"""What a worker has of the work, until it is given up or lost."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from typing import Any, Final, Protocol

from fencepost.protocol.partitions import TopicPartition

from .problems import ShareLost

_GREATEST: Final = (1 << 63) - 1


class Offsets(Protocol):
    """Who commits for a share."""

    async def commit(self, share: Share, offsets: Mapping[TopicPartition, int], metadata: str) -> None: ...

    async def committed(self, share: Share) -> dict[TopicPartition, int]: ...


class Share:
    """Partitions that are this worker's. ``gained``: those that came with it.

    It ends when the worker is to give partitions up, when it gets more, or when it has lost them. Work on it while it
    is ``held``; then return to the loop, which gives up what is to be given up and waits for the next share. Until the
    loop is back, nobody else gets what is to be given up, unless the worker takes longer than its rebalance timeout: it
    is fenced then, and the share ``lost``.
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
        """Whether to go on with it."""
        return not self._over.is_set()

    def numbers(self, topic: str) -> list[int]:
        """The numbers of its partitions of this topic, in order."""
        return [each.partition for each in self if each.topic == topic]

    async def rest(self, seconds: float) -> bool:
        """Wait so long, but no longer than the share is held. Whether it still is."""
        try:
            async with asyncio.timeout(seconds):  # of Python 3.11 wait_for may swallow a cancellation
                await self._over.wait()
        except TimeoutError:
            return True
        return False

    async def over(self) -> None:
        """Wait until the share is not held any more."""
        await self._over.wait()

    async def commit(self, offsets: Mapping[TopicPartition, int], *, metadata: str = "") -> None:
        """Say how far the work has come: the offset is that of the next thing to do. Returns when the coordinator has
        it in its log. Fenced: of a worker that has lost the share none is accepted (O-COMMIT-25, O-COMMIT-32).

        Raises ``ShareLost``, ``CommitFailed``; ``ValueError`` for a partition that is not of this share, and for an
        offset that is negative or beyond 64 bits; ``TypeError`` for one that is not an integer."""
        strange = sorted(offsets.keys() - self.partitions)
        if strange:
            raise ValueError(f"{strange[0].topic}-{strange[0].partition} is not of this share")
        for partition, offset in offsets.items():
            _require_offset(partition, offset)
        if self.lost:
            raise ShareLost("the share is lost")
        if offsets:
            await self._offsets.commit(self, offsets, metadata)

    async def committed(self) -> dict[TopicPartition, int]:
        """How far the work has come, by whomever: what is committed of each partition that has anything."""
        return await self._offsets.committed(self)

    def end(self, *, lost: bool = False) -> None:
        """The worker's: it is over."""
        self.lost = self.lost or lost
        self._over.set()


def _require_offset(partition: TopicPartition, offset: Any) -> None:
    """Kafka's coordinator stores negative offsets, and its consumer refuses them, as here. Raises ``ValueError``,
    ``TypeError``."""
    where = f"the offset of {partition.topic}-{partition.partition}"
    if type(offset) is not int:
        raise TypeError(f"{where} must be an int (got {offset!r})")
    if not 0 <= offset <= _GREATEST:
        raise ValueError(f"{where} must be from 0 to {_GREATEST} (got {offset})")
