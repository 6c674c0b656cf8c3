"""A sparse index of a partition's log: an entry for each 64 KiB, so that it stays small compared with the data."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterator
from typing import Final

from fencepost_server.data.batches import Batch

_BLOCK: Final = 64 * 1024
#: the latest time of a block without records
NEVER: Final = -(1 << 63)


class Index:
    """The blocks of a log: the first offset of each, the bytes before it, and its latest timestamp."""

    def __init__(self) -> None:
        self._bases = array("q")
        self._sums = array("q")
        self._latest = array("q")
        self._size = 0  #: bytes of all batches, deleted ones included
        self.end = 0

    def add(self, batch: Batch) -> None:
        """Add a batch at the end."""
        if not self._bases or self._size - self._sums[-1] >= _BLOCK:
            self._bases.append(batch.base)
            self._sums.append(self._size)
            self._latest.append(NEVER)
        self._latest[-1] = max(self._latest[-1], batch.max_timestamp)
        self._size += len(batch.data)
        self.end = batch.last + 1

    @property
    def begin(self) -> int:
        """The first offset; the end if the index is empty."""
        return self._bases[0] if self._bases else self.end

    def before(self, offset: int) -> tuple[int, int]:
        """Return the first offset of the block that contains an offset, and the bytes before that block."""
        at = bisect_right(self._bases, offset) - 1
        if at < 0:
            return (self._bases[0], self._sums[0]) if self._bases else (offset, self._size)
        return self._bases[at], self._sums[at]

    def bytes_between(self, offset: int, limit: int) -> int:
        """Return about how many bytes lie between two offsets; at least 1."""
        upper = self._size if limit >= self.end else self.before(limit)[1]
        return max(upper - self.before(offset)[1], 1)

    def blocks(self) -> Iterator[tuple[int, int, int]]:
        """Yield first offset, end and latest timestamp of each block."""
        for at, base in enumerate(self._bases):
            yield base, self._bases[at + 1] if at + 1 < len(self._bases) else self.end, self._latest[at]

    def drop_before(self, offset: int) -> None:
        """Drop the blocks that end at or before an offset."""
        gone = bisect_right(self._bases, offset) - 1
        if offset >= self.end:
            gone = len(self._bases)
        if gone > 0:
            del self._bases[:gone], self._sums[:gone], self._latest[:gone]
