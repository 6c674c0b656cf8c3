"""The iteration order of Java's maps, and the choices that Kafka makes by it.

Kafka keeps the members of a group in maps. The next leader is the first key of a ``HashMap`` (C-JOIN-45, C-JOIN-76). A
tie in the protocol vote goes to the first name of another one (C-JOIN-63). A server assignor visits members in the
order of a third map, which was filled from a ``TimelineHashMap`` (A-UHOM-01). Kafka promises none of this (NOT-10), but
the suite guesses it to follow Kafka step by step; ``fencepost.hash_order`` implements the hash table.

The guess can be wrong where a map was once larger, since it never shrinks. For an assignor it can also be wrong where
several members share a bucket of both maps, or the newest member shares one with others. The order of topics in one
bucket is unknown: it depends on the maps of earlier assignments (A-UHOM-07). The comparison then passes in Kafka's
choice.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from fencepost.hash_order import grown, of_text, texts
from fencepost.protocol.choices import Choices
from fencepost.sharding import java_hash

_GOLDEN = -7_046_029_254_386_353_131  #: Knuth's multiplier, as a signed 64-bit number


def buckets_for(size: int) -> int:
    """Return the number of buckets of a map that grew to ``size`` entries."""
    return grown(size)


def java_order(keys: Sequence[str], size: int | None = None) -> list[str]:
    """Return the keys, given in insertion order, in the map's order. ``size``: the most entries it ever held."""
    return texts(keys, size or 0)


def timeline_order(keys: Sequence[str]) -> list[str]:
    """Return the order of Kafka's ``TimelineHashMap``. Its table has a power of two slots, and doubles before it holds
    more than four thirds of that. Slots are chosen by multiplication; within a slot the newest key is first."""
    slots = 2
    while len(keys) * 3 > slots * 4:
        slots *= 2
    shift = 64 - (slots.bit_length() - 1)

    def slot(place: int) -> tuple[int, int]:
        return (java_hash(keys[place]) * _GOLDEN & 0xFFFF_FFFF_FFFF_FFFF) >> shift, -place

    return [keys[place] for place in sorted(range(len(keys)), key=slot)]


class Ids(Protocol):
    """Draws fresh member ids."""

    def __call__(self, prefix: str) -> str:
        """Return an id of the classic protocol: the prefix and a UUID (G-WIRE-28)."""

    def uuid(self) -> str:
        """Return a UUID alone, in Kafka's own text form (G-WIRE-28)."""


class JavaOrder:
    """Makes choices as Kafka does; ``ids`` draws member ids."""

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

    def standing(self, group_id: str, tied: Sequence[str]) -> str:
        """M-HB-15. The copy with the votes of two has four buckets; the caller's vote is inserted last."""
        one, *others = timeline_order(tied)
        shared = len({of_text(name) & 3 for name in tied}) < len(tied)
        return others[-1] if shared else one

    def shown(self, group_id: str, *, least: int, most: int) -> int:
        return most

    def order(self, group_id: str, keys: Sequence[str]) -> Sequence[str]:
        return java_order(timeline_order(keys))

    def topics(self, group_id: str, topic_ids: Sequence[bytes]) -> Sequence[bytes]:
        return topic_ids

    def table(self, group_id: str, keys: Sequence[str]) -> Sequence[str]:
        return timeline_order(keys)


#: every second random UUID in Kafka's text form has a hyphen, so this many in a row do not occur
MOST_DRAWS = 1_000


class WithoutHyphens(Choices):
    """Choices of another object, but a UUID is drawn again while its text has a hyphen (G-WIRE-28, V-126)."""

    def __init__(self, inner: Choices) -> None:
        self._inner = inner

    def uuid(self) -> str:
        for _ in range(MOST_DRAWS):
            drawn = self._inner.uuid()
            if "-" not in drawn:
                return drawn
        raise ValueError(
            f"{type(self._inner).__name__}.uuid: {MOST_DRAWS} UUIDs in a row have a hyphen (last: {drawn!r})"
        )

    def member_id(self, prefix: str) -> str:
        return self._inner.member_id(prefix)

    def leader(self, group_id: str, candidates: Sequence[str]) -> str:
        return self._inner.leader(group_id, candidates)

    def protocol(self, group_id: str, tied: Sequence[str]) -> str:
        return self._inner.protocol(group_id, tied)

    def assignor(self, group_id: str, tied: Sequence[str]) -> str:
        return self._inner.assignor(group_id, tied)

    def standing(self, group_id: str, tied: Sequence[str]) -> str:
        return self._inner.standing(group_id, tied)

    def shown(self, group_id: str, *, least: int, most: int) -> int:
        return self._inner.shown(group_id, least=least, most=most)

    def order(self, group_id: str, keys: Sequence[str]) -> Sequence[str]:
        return self._inner.order(group_id, keys)

    def topics(self, group_id: str, topic_ids: Sequence[bytes]) -> Sequence[bytes]:
        return self._inner.topics(group_id, topic_ids)

    def table(self, group_id: str, keys: Sequence[str]) -> Sequence[str]:
        return self._inner.table(group_id, keys)
