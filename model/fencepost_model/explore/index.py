"""A set of 64-bit keys that numbers them densely and works on whole arrays.

Exploration spends most of its time on the question "was this seen before?". A Python dict answers in about a tenth of a
microsecond, but needs an object for each key and holds the interpreter. This table answers a whole batch at once, in
NumPy, and uses 8 bytes of key and 4 bytes of number per slot (at most two slots per key).

It uses open addressing with linear probing. A batch loops over the undecided probes, which are few after the first
round because the table is never more than half full. Numbers follow the order in which keys first occur in the batches,
so they depend on nothing else.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Keys: TypeAlias = NDArray[np.uint64]
Ids: TypeAlias = NDArray[np.int32]

#: 2^64 divided by the golden ratio; it spreads neighbouring keys (Fibonacci hashing).
_SPREAD = np.uint64(0x9E3779B97F4A7C15)
_EMPTY = np.int32(-1)


class Index:
    """Distinct 64-bit keys and their numbers 0, 1, 2, …"""

    __slots__ = ("_ids", "_keys", "_mask", "_shift", "count")

    def __init__(self, capacity: int = 1 << 10) -> None:
        bits = max(4, (capacity - 1).bit_length())
        self._allocate(bits)
        self.count = 0

    def _allocate(self, bits: int) -> None:
        self._keys: Keys = np.zeros(1 << bits, dtype=np.uint64)
        self._ids: Ids = np.full(1 << bits, _EMPTY, dtype=np.int32)
        self._shift = np.uint64(64 - bits)
        self._mask = np.int64((1 << bits) - 1)

    @property
    def nbytes(self) -> int:
        return self._keys.nbytes + self._ids.nbytes

    def _slots(self, keys: Keys) -> NDArray[np.int64]:
        mixed = keys ^ (keys >> np.uint64(32))
        return ((mixed * _SPREAD) >> self._shift).astype(np.int64)

    def find(self, keys: Keys) -> Ids:
        """Return the number of each key, or -1 if it is not in the set."""
        slots = self._slots(keys)
        ids = self._ids[slots]
        open_ = np.flatnonzero((ids >= 0) & (self._keys[slots] != keys))
        slots = slots[open_]
        while open_.size:
            slots = (slots + 1) & self._mask
            found = self._ids[slots]
            ids[open_] = found
            undecided = (found >= 0) & (self._keys[slots] != keys[open_])
            open_, slots = open_[undecided], slots[undecided]
        return ids

    def number(self, keys: Keys) -> tuple[Ids, NDArray[np.int64]]:
        """Return the number of each key, numbering new ones, and the first place in the batch of each new key."""
        ids = self.find(keys)
        absent = np.flatnonzero(ids < 0)
        if not absent.size:
            return ids, absent
        fresh, first, inverse = np.unique(keys[absent], return_index=True, return_inverse=True)
        order = np.argsort(first, kind="stable")
        numbers = np.empty(fresh.size, dtype=np.int32)
        numbers[order] = np.arange(self.count, self.count + fresh.size, dtype=np.int32)
        self._insert(fresh, numbers)
        ids[absent] = numbers[inverse]
        return ids, absent[first[order]]

    def _insert(self, keys: Keys, numbers: Ids) -> None:
        """Insert distinct keys that are absent."""
        self.count += keys.size
        bits = int(self._mask).bit_length()
        if 2 * self.count > 1 << bits:
            while 2 * self.count > 1 << bits:
                bits += 1
            used = self._ids >= 0
            old_keys, old_numbers = self._keys[used], self._ids[used]
            self._allocate(bits)
            self._place(old_keys, old_numbers)
        self._place(keys, numbers)

    def _place(self, keys: Keys, numbers: Ids) -> None:
        slots = self._slots(keys)
        while keys.size:
            free = self._ids[slots] < 0
            # Several keys may want one slot. The last writer gets it; reading back shows which one that is.
            self._ids[slots[free]] = numbers[free]
            mine = free & (self._ids[slots] == numbers)
            self._keys[slots[mine]] = keys[mine]
            rest = ~mine
            keys, numbers, slots = keys[rest], numbers[rest], (slots[rest] + 1) & self._mask


def pair(left: Ids, right: Ids) -> Keys:
    """Combine two columns of numbers to one column of keys."""
    return (left.astype(np.uint64) << np.uint64(32)) | right.astype(np.uint64)
