"""The last batches of partitions, in memory: those that are being written, and those that most readers fetch.

All partitions share one budget. Batches that are not durable yet always stay in memory. The oldest of the others are
dropped first; from then on they are read from the store."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Sequence
from typing import Final

from fencepost_server.data.batches import Batch

#: the lists are shortened only when they have so many dropped entries
_SLACK: Final = 256
#: the approximate memory of a batch beside its data, in bytes
_EACH: Final = 500


class Tail:
    """The last batches of one partition, in order and without gaps."""

    def __init__(self) -> None:
        self._batches: list[Batch | None] = []
        self._bases: list[int] = []
        self._sums: list[int] = [0]  #: bytes before each batch, and after the last one
        self._first = 0  #: the first valid index of the lists; earlier entries were dropped

    def __len__(self) -> int:
        return len(self._bases) - self._first

    @property
    def base(self) -> int | None:
        """The offset of the first batch; None if there is none."""
        return self._bases[self._first] if len(self) else None

    def put(self, batch: Batch) -> None:
        """Add a batch at the end."""
        self._batches.append(batch)
        self._bases.append(batch.base)
        self._sums.append(self._sums[-1] + len(batch.data))

    def drop_first(self) -> None:
        """Drop the first batch."""
        self._batches[self._first] = None
        self._first += 1
        if self._first >= _SLACK and self._first >= len(self):
            del self._batches[: self._first], self._bases[: self._first], self._sums[: self._first]
            self._first = 0

    def drop_last(self) -> Batch:
        """Drop the last batch and return it."""
        batch = self._batches.pop()
        assert batch is not None
        self._bases.pop()
        self._sums.pop()
        return batch

    def since(self, offset: int, most: int) -> Sequence[Batch]:
        """Return batches from the one with an offset on, at most ``most`` bytes, but at least one batch."""
        begin = max(bisect_right(self._bases, offset, self._first) - 1, self._first)
        end = max(bisect_right(self._sums, self._sums[begin] + most) - 1, begin + 1)
        return [batch for batch in self._batches[begin:end] if batch is not None]

    def bytes_between(self, offset: int, limit: int) -> int:
        """Return the size of the batches from an offset up to the limit."""
        begin = max(bisect_right(self._bases, offset, self._first) - 1, self._first)
        end = bisect_left(self._bases, limit, self._first)
        return max(self._sums[end] - self._sums[begin], 0)


class Budget:
    """The memory budget for the batches of all partitions together, in bytes."""

    def __init__(self, most: int) -> None:
        self.used = 0
        self._most = most
        self._order: deque[tuple[Tail, int, int]] = deque()

    def took(self, tail: Tail, batch: Batch) -> None:
        """Count a batch that has become durable, and drop the oldest batches while the budget is exceeded."""
        size = len(batch.data) + _EACH
        self._order.append((tail, batch.base, size))
        self.used += size
        while self.used > self._most and self._order:
            oldest, base, taken = self._order.popleft()
            self.used -= taken
            if oldest.base == base:  # else it was dropped before
                oldest.drop_first()
