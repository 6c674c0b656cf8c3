"""The iteration order of Java's hash tables.

Kafka iterates over members, topics and partitions in the order of hash maps. This order is not specified, but results
depend on it: which of many members gets the odd partition, and which partition is given up first. It is a function of
the keys, the number of buckets, and, within a bucket, the order of insertion, which resizing keeps. If all three are
known, the order can be computed, and nothing is nondeterministic.

One case is missing: a bucket with eight or more keys in a table of 64 or more, which Java turns into a tree. Only keys
chosen to collide cause it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import TypeVar

from .sharding import java_hash

FEWEST = 16

Key = TypeVar("Key")


def grown(size: int) -> int:
    """Return the buckets of a table that grew to ``size`` entries one by one; it doubles when over 3/4 full."""
    buckets = FEWEST
    while size * 4 > buckets * 3:
        buckets *= 2
    return buckets


def made_for(size: int) -> int:
    """Return the buckets of a set that was created as a copy of ``size`` entries."""
    return 1 << (max(FEWEST, size * 4 // 3 + 1) - 1).bit_length()


def spread(value: int) -> int:
    """Return the bits of a 32-bit hash that choose the bucket: the upper half is folded into the lower."""
    value &= 0xFFFFFFFF
    return value ^ (value >> 16)


def in_table(keys: Iterable[Key], spread_of: Callable[[Key], int], buckets: int) -> list[Key]:
    """Sort keys, given in order of insertion, into the order of a table with that many buckets."""
    mask = buckets - 1
    return sorted(keys, key=lambda key: spread_of(key) & mask)


@lru_cache(maxsize=65_536)
def of_text(text: str) -> int:
    """Return the spread hash of a string."""
    return spread(java_hash(text))


def of_partition(topic: str, partition: int) -> int:
    """Return the spread hash of a TopicPartition."""
    return spread(31 * (31 + partition) + java_hash(topic))


@lru_cache(maxsize=65_536)
def of_uuid(data: bytes) -> int:
    """Return the spread hash of a topic id, 16 bytes."""
    both = int.from_bytes(data[:8], "big") ^ int.from_bytes(data[8:], "big")
    return spread((both >> 32) ^ both)


def texts(keys: Iterable[str], size: int = 0) -> list[str]:
    """Return strings in the order of a table that was filled one by one. ``size``: the most entries it ever held, if
    more than now."""
    listed = list(keys)
    return in_table(listed, of_text, grown(max(size, len(listed))))


def computed_texts(calls: Sequence[str]) -> list[str]:
    """Return strings in the order of a map that ``computeIfAbsent`` filled in this order of calls. A new key goes to
    the front of its bucket, and the table grows only at the next call."""
    keys = list(dict.fromkeys(calls))
    return in_table(reversed(keys), of_text, grown(len(frozenset(calls[:-1]))))
