"""The order in which a Java hash map shows its keys, and the choices that Kafka makes by it.

Kafka keeps the members of a group in a ``HashMap``. Who leads next is the first key of that map (C-JOIN-45,
C-JOIN-76), and a tie of the protocol vote goes to the first name of another (C-JOIN-63). Neither is promised to
anybody (NOT-10), but to follow Kafka step by step the suite guesses it: a table of a power of two buckets that doubles
when it is three quarters full, keys spread by their hash, and within a bucket the order of insertion, which doubling
keeps.

The guess can be wrong where a map once held more than it does now, since it never shrinks; the comparison then hands in
what Kafka chose.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Protocol

from fencepost.sharding import java_hash

_FIRST_BUCKETS = 16


@lru_cache(maxsize=65_536)
def _hash(text: str) -> int:
    return java_hash(text) & 0xFFFFFFFF


def buckets_for(size: int) -> int:
    """Buckets of a map that grew to ``size`` entries."""
    buckets = _FIRST_BUCKETS
    while size > buckets * 3 // 4:
        buckets *= 2
    return buckets


def java_order(keys: Sequence[str], size: int | None = None) -> list[str]:
    """The keys, given in order of insertion, as the map shows them. ``size``: the most entries it ever held."""
    mask = buckets_for(len(keys) if size is None else max(size, len(keys))) - 1

    def bucket(key: str) -> int:
        spread = _hash(key)
        return (spread ^ (spread >> 16)) & mask

    return sorted(keys, key=bucket)


class Ids(Protocol):
    """Draws fresh member ids."""

    def __call__(self, prefix: str) -> str:
        """For the classic protocol: the prefix and a UUID (G-WIRE-28)."""

    def uuid(self) -> str:
        """A UUID alone, in Kafka's own text form (G-WIRE-28)."""


class JavaOrder:
    """Choices as Kafka makes them; ``ids`` draws member ids."""

    def __init__(self, ids: Ids) -> None:
        self._ids = ids

    def member_id(self, prefix: str) -> str:
        return self._ids(prefix)

    def leader(self, group_id: str, candidates: Sequence[str]) -> str:
        return java_order(candidates)[0]

    def protocol(self, group_id: str, tied: Sequence[str]) -> str:
        return java_order(tied)[0]

    def uuid(self) -> str:
        return self._ids.uuid()

    def assignor(self, group_id: str, tied: Sequence[str]) -> str:
        return java_order(tied)[0]

    def order(self, group_id: str, keys: Sequence[str]) -> Sequence[str]:
        return java_order(keys)
