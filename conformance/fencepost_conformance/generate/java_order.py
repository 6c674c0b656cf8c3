"""The order in which Java's maps show their keys, and the choices that Kafka makes by it.

Kafka keeps the members of a group in maps. Who leads next is the first key of a ``HashMap`` (C-JOIN-45, C-JOIN-76), a
tie of the protocol vote goes to the first name of another (C-JOIN-63), and a server assignor goes through the members
as a third shows them, which was filled from a ``TimelineHashMap`` (A-UHOM-01). None of this is promised to anybody
(NOT-10), but to follow Kafka step by step the suite guesses it; ``fencepost.hash_order`` knows how a hash table works.

The guess can be wrong where a map once held more than it does now, since it never shrinks, and, of an assignor's
members, where several share a bucket of both maps or the one who just came shares one with others. Of topics that
share a bucket nothing is known: which came first goes by the maps of assignments before (A-UHOM-07). The comparison
then hands in what Kafka chose.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from fencepost.hash_order import grown, of_text, texts
from fencepost.protocol.choices import Choices
from fencepost.sharding import java_hash

_GOLDEN = -7_046_029_254_386_353_131  #: Knuth's multiplier, as a signed 64-bit number


def buckets_for(size: int) -> int:
    """Buckets of a map that grew to ``size`` entries."""
    return grown(size)


def java_order(keys: Sequence[str], size: int | None = None) -> list[str]:
    """The keys, given in order of insertion, as the map shows them. ``size``: the most entries it ever held."""
    return texts(keys, size or 0)


def timeline_order(keys: Sequence[str]) -> list[str]:
    """The same for Kafka's ``TimelineHashMap``: a table of a power of two slots that doubles before it holds more than
    four thirds of that, slots by multiplication, and within a slot the newest first."""
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

    def standing(self, group_id: str, tied: Sequence[str]) -> str:
        """M-HB-15. The copy with the votes of two has four buckets; the vote of who asks is put in last."""
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


#: of a random UUID in Kafka's text every second has a hyphen, so that this many in a row do not occur
MOST_DRAWS = 1_000


class WithoutHyphens(Choices):
    """Choices of others, but a UUID is drawn again while there is a hyphen in its text (G-WIRE-28, V-126)."""

    def __init__(self, inner: Choices) -> None:
        self._inner = inner

    def uuid(self) -> str:
        for _ in range(MOST_DRAWS):
            drawn = self._inner.uuid()
            if "-" not in drawn:
                return drawn
        raise ValueError(f"{type(self._inner).__name__}.uuid: {MOST_DRAWS} in a row have a hyphen, {drawn!r} at last")

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
