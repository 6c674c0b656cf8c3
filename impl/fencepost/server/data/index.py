"""Where in a partition's log things are, about: an entry for each 64 KiB, so that it stays small beside the data."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterator
from typing import Final

from .batches import Batch

_BLOCK: Final = 64 * 1024
#: the latest time of a block without records
NEVER: Final = -(1 << 63)


class Index:
    """Blocks of a log: the first offset of each, the bytes before it, and the latest time in it."""

    def __init__(self) -> None:
        self._bases = array("q")
        self._sums = array("q")
        self._latest = array("q")
        self._size = 0  #: bytes of all batches that there ever were
        self.end = 0

    def add(self, batch: Batch) -> None:
        """A batch behind the others."""
        if not self._bases or self._size - self._sums[-1] >= _BLOCK:
            self._bases.append(batch.base)
            self._sums.append(self._size)
            self._latest.append(NEVER)
        self._latest[-1] = max(self._latest[-1], batch.max_timestamp)
        self._size += len(batch.data)
        self.end = batch.last + 1

    @property
    def begin(self) -> int:
        """The first offset; the end if there is none."""
        return self._bases[0] if self._bases else self.end

    def before(self, offset: int) -> tuple[int, int]:
        """The first offset of the block that it is in, and the bytes before that block."""
        at = bisect_right(self._bases, offset) - 1
        if at < 0:
            return (self._bases[0], self._sums[0]) if self._bases else (offset, self._size)
        return self._bases[at], self._sums[at]

    def bytes_between(self, offset: int, limit: int) -> int:
        """About how many bytes there are."""
        upper = self._size if limit >= self.end else self.before(limit)[1]
        return max(upper - self.before(offset)[1], 1)

    def blocks(self) -> Iterator[tuple[int, int, int]]:
        """First offset, end and latest time of each block."""
        for at, base in enumerate(self._bases):
            yield base, self._bases[at + 1] if at + 1 < len(self._bases) else self.end, self._latest[at]

    def drop_before(self, offset: int) -> None:
        """Forget the blocks that end there or before."""
        gone = bisect_right(self._bases, offset) - 1
        if offset >= self.end:
            gone = len(self._bases)
        if gone > 0:
            del self._bases[:gone], self._sums[:gone], self._latest[:gone]
