"""The order in which Java's hash tables show their keys.

Kafka goes through members, topics and partitions in the order of hash maps. Nobody is promised that order, but results
depend on it: which member of many gets the odd partition, what is given up first. It is a function of the keys, of the
number of buckets, and, within a bucket, of the order in which the keys were put in; growing keeps that order. So where
all three are known it can be computed, and nothing is left open.

Left out: a bucket of eight or more keys in a table of 64 or more, which Java turns into a tree. It takes keys made to
collide.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import TypeVar

from .sharding import java_hash

FEWEST = 16

Key = TypeVar("Key")


def grown(size: int) -> int:
    """Buckets of a table that grew to ``size`` entries one by one: it doubles when over three quarters full."""
    buckets = FEWEST
    while size * 4 > buckets * 3:
        buckets *= 2
    return buckets


def made_for(size: int) -> int:
    """Buckets of a set that was made as a copy of ``size`` entries."""
    return 1 << (max(FEWEST, size * 4 // 3 + 1) - 1).bit_length()


def spread(value: int) -> int:
    """The bits of a 32-bit hash that choose the bucket: the upper half is folded into the lower."""
    value &= 0xFFFFFFFF
    return value ^ (value >> 16)


def in_table(keys: Iterable[Key], spread_of: Callable[[Key], int], buckets: int) -> list[Key]:
    """The keys, given in the order in which they were put in, as a table of that many buckets shows them."""
    mask = buckets - 1
    return sorted(keys, key=lambda key: spread_of(key) & mask)


@lru_cache(maxsize=65_536)
def of_text(text: str) -> int:
    """The spread hash of a string."""
    return spread(java_hash(text))


def of_partition(topic: str, partition: int) -> int:
    """The spread hash of a TopicPartition."""
    return spread(31 * (31 + partition) + java_hash(topic))


@lru_cache(maxsize=65_536)
def of_uuid(data: bytes) -> int:
    """The spread hash of a topic id, 16 bytes."""
    both = int.from_bytes(data[:8], "big") ^ int.from_bytes(data[8:], "big")
    return spread((both >> 32) ^ both)


def texts(keys: Iterable[str], size: int = 0) -> list[str]:
    """Strings in a table that was filled one by one; ``size``: the most entries it ever held, if more than now."""
    listed = list(keys)
    return in_table(listed, of_text, grown(max(size, len(listed))))


def computed_texts(calls: Sequence[str]) -> list[str]:
    """Strings that ``computeIfAbsent`` put into a map, asked in this order: a new key goes to the front of its bucket,
    and the table grows only at the next call."""
    keys = list(dict.fromkeys(calls))
    return in_table(reversed(keys), of_text, grown(len(frozenset(calls[:-1]))))
