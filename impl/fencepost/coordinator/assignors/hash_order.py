"""The order in which Java's hash collections show topic ids and partition numbers.

Where ``uniform`` has to give something up or to hand something out, Kafka takes it in the order of a hash table. That
order is a function of the keys and of the size of the table: the bucket of each key, and within a bucket the order in
which the keys were put in. So it is computed here and needs no help from the host. Only the order of the members
depends on more than is known here; it is handed in (``Choices.order``).

Left out: a bucket of eight or more keys in a table of 64 or more, which Java turns into a tree. It takes topic ids made
to collide.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache

_FEWEST = 16


@lru_cache(maxsize=65_536)
def _spread(topic_id: bytes) -> int:
    """The hash of a topic id as Java's tables use it: the upper half folded into the lower."""
    both = int.from_bytes(topic_id[:8], "big") ^ int.from_bytes(topic_id[8:], "big")
    value = (both >> 32) ^ (both & 0xFFFFFFFF)
    return value ^ (value >> 16)


def _grown(size: int) -> int:
    """Buckets of a table that was filled entry by entry: it doubles when more than three quarters full."""
    buckets = _FEWEST
    while size * 4 > buckets * 3:
        buckets *= 2
    return buckets


def _made_for(size: int) -> int:
    """Buckets of a table that was made as a copy of ``size`` entries."""
    wanted = max(_FEWEST, size * 4 // 3 + 1)
    return 1 << (wanted - 1).bit_length()


def of_set(topic_ids: Iterable[bytes]) -> list[bytes]:
    """A set that is a copy of these ids, which come in the order in which they are copied."""
    ids = list(topic_ids)
    mask = _made_for(len(ids)) - 1
    return sorted(ids, key=lambda topic_id: _spread(topic_id) & mask)


def of_map(share: Mapping[bytes, frozenset[int]]) -> list[bytes]:
    """The keys of a map that was read row by row from a record, in the order of the rows."""
    if len(share) < 2:
        return list(share)
    mask = _grown(len(share)) - 1
    return sorted(share, key=lambda topic_id: _spread(topic_id) & mask)


def of_numbers(partitions: frozenset[int]) -> list[int]:
    """A set of partition numbers that was read from a record, whose numbers ascend."""
    mask = _made_for(len(partitions)) - 1
    return sorted(sorted(partitions), key=lambda number: (number ^ (number >> 16)) & mask)
