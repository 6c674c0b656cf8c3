"""Whose claim to a partition counts, where members say what they held (A-STICKY-03, A-STICKY-04).

In most groups nobody claims what is not there or what another claims. That is asked first, of all claims at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import dropwhile, filterfalse

from fencepost.protocol.events import Topic

from ..partitions import TopicPartition
from .base import GroupMember
from .sticky_data import Claim

#: Partitions in the order in which they came to a member.
Held = dict[TopicPartition, None]


@dataclass(frozen=True, slots=True)
class Claims:
    """``held``: what each member is believed to hold, members in map order (A-STICKY-06). ``void``: claimed twice in
    one generation. ``unreal``: held, and not there (A-STICKY-27).
    ``alike``: all subscribe to the same (A-STICKY-07). ``newest``: the highest generation ever met (A-STICKY-05)."""

    held: dict[str, Held]
    void: frozenset[TopicPartition]
    alike: bool
    newest: int
    unreal: frozenset[TopicPartition] = frozenset()


def settle(
    order: Sequence[str],
    members: Mapping[str, GroupMember],
    claims: Mapping[str, Claim],
    topics: Mapping[str, Topic],
    newest: int,
    *,
    every: Sequence[TopicPartition],
    faults: bool,
) -> Claims:
    """Go through the claims in map order. A number that its topic does not have is no claim. ``every``: all partitions
    of ``topics``.

    With ``faults`` it is one (A-STICKY-27), and a member that subscribes to nothing is like everybody who comes after
    it (A-STICKY-26).
    """
    alike = _alike([members[name].subscription.topics for name in order], faults=faults)
    newest = max(newest, *(claims[name].age for name in order))
    undisputed = {name: dict.fromkeys(claims[name].partitions) for name in order}
    together = frozenset().union(*undisputed.values())
    if len(together) == sum(len(claims[name].partitions) for name in order) and together.issubset(every):
        return Claims(undisputed, frozenset(), alike, newest)
    held, void, unreal = _disputed(order, members, claims, topics, faults=faults)
    return Claims(held, frozenset(void), alike, newest, frozenset(unreal))


def _alike(rows: Sequence[tuple[str, ...]], *, faults: bool) -> bool:
    """Whether all subscribe to the same topics."""
    counting = dropwhile(lambda row: not row, rows) if faults else rows  # A-STICKY-26
    return len({frozenset(row) for row in frozenset(counting)}) <= 1


def _disputed(
    order: Sequence[str],
    members: Mapping[str, GroupMember],
    claims: Mapping[str, Claim],
    topics: Mapping[str, Topic],
    *,
    faults: bool,
) -> tuple[dict[str, Held], set[TopicPartition], set[TopicPartition]]:
    """What is held, void and unreal, claim by claim."""
    held: dict[str, Held] = {}
    void: set[TopicPartition] = set()
    unreal: set[TopicPartition] = set()
    holder: dict[TopicPartition, str] = {}
    for name in order:
        claim = claims[name]
        mine = held[name] = {}
        for partition in claim.partitions:
            topic = topics.get(partition.topic)
            if topic is None:
                continue
            if not 0 <= partition.partition < topic.partitions:
                if not faults:
                    continue
                unreal.add(partition)
            other = holder.get(partition)
            # Of the other member the subscription's own generation counts, not that in its user data (A-STICKY-04).
            told = None if other is None else members[other].subscription.generation_id
            if other is not None and told is not None:
                if claim.age < told:
                    continue
                held[other].pop(partition, None)
                if claim.age == told:
                    void.add(partition)
            if other is None or claim.age != told:
                mine[partition] = None
            holder[partition] = name
    return held, void, unreal


def missing(every: Sequence[TopicPartition], kept: Iterable[Iterable[TopicPartition]]) -> list[TopicPartition]:
    """The partitions that nobody keeps."""
    taken = frozenset().union(*kept)
    return list(filterfalse(taken.__contains__, every))
