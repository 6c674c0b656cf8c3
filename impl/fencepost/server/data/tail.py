"""The last batches of partitions, in memory: what is being written, and what most readers ask for.

All partitions share one budget. What is not durable yet is never forgotten; of the rest, what was written first is
forgotten first, and read from the store from then on."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Sequence
from typing import Final

from .batches import Batch

#: so many forgotten places of a list are given back at once
_SLACK: Final = 256
#: about what a batch takes beside its bytes
_EACH: Final = 500


class Tail:
    """The last batches of one partition, in order and without gaps."""

    def __init__(self) -> None:
        self._batches: list[Batch | None] = []
        self._bases: list[int] = []
        self._sums: list[int] = [0]  #: bytes before each batch, and behind the last
        self._first = 0  #: of the lists; what is before was forgotten

    def __len__(self) -> int:
        return len(self._bases) - self._first

    @property
    def base(self) -> int | None:
        """The first offset that it has."""
        return self._bases[self._first] if len(self) else None

    def put(self, batch: Batch) -> None:
        """Behind the others."""
        self._batches.append(batch)
        self._bases.append(batch.base)
        self._sums.append(self._sums[-1] + len(batch.data))

    def drop_first(self) -> None:
        """Forget the first."""
        self._batches[self._first] = None
        self._first += 1
        if self._first >= _SLACK and self._first >= len(self):
            del self._batches[: self._first], self._bases[: self._first], self._sums[: self._first]
            self._first = 0

    def drop_last(self) -> Batch:
        """Forget the last, and say which it was."""
        batch = self._batches.pop()
        assert batch is not None
        self._bases.pop()
        self._sums.pop()
        return batch

    def since(self, offset: int, most: int) -> Sequence[Batch]:
        """Those from the one that has that offset on, of at most so many bytes, one at least."""
        begin = max(bisect_right(self._bases, offset, self._first) - 1, self._first)
        end = max(bisect_right(self._sums, self._sums[begin] + most) - 1, begin + 1)
        return [batch for batch in self._batches[begin:end] if batch is not None]

    def bytes_between(self, offset: int, limit: int) -> int:
        """How many bytes the batches have from that offset up to the limit."""
        begin = max(bisect_right(self._bases, offset, self._first) - 1, self._first)
        end = bisect_left(self._bases, limit, self._first)
        return max(self._sums[end] - self._sums[begin], 0)


class Budget:
    """What the batches of all partitions may take in memory together, in bytes."""

    def __init__(self, most: int) -> None:
        self.used = 0
        self._most = most
        self._order: deque[tuple[Tail, int, int]] = deque()

    def took(self, tail: Tail, batch: Batch) -> None:
        """The batch was put there and is durable. Others are forgotten if that is too much."""
        size = len(batch.data) + _EACH
        self._order.append((tail, batch.base, size))
        self.used += size
        while self.used > self._most and self._order:
            oldest, base, taken = self._order.popleft()
            self.used -= taken
            if oldest.base == base:  # else it is gone already
                oldest.drop_first()
