"""Which claims to partitions count, among those that members report (A-STICKY-03, A-STICKY-04).

In most groups, no claim is to a missing partition and no two claims overlap. The fast path checks this for all claims
at the same time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import dropwhile, filterfalse

from fencepost.protocol.events import Topic

from ..partitions import TopicPartition
from .base import GroupMember
from .sticky_data import Claim

#: Partitions in the order in which the member got them.
Held = dict[TopicPartition, None]


@dataclass(frozen=True, slots=True)
class Claims:
    """``held``: the partitions that each member is believed to hold, members in map order (A-STICKY-06). ``void``:
    claimed twice in one generation. ``unreal``: held, but missing in the cluster (A-STICKY-27). ``alike``: all
    subscriptions are equal (A-STICKY-07). ``newest``: the highest generation seen so far (A-STICKY-05)."""

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
    """Evaluate the claims in map order. A partition number that the topic does not have is not a claim. ``every``: all
    partitions of ``topics``.

    With ``faults`` it is a claim (A-STICKY-27). A member with an empty subscription then counts as equal to all members
    after it (A-STICKY-26).
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
    """Return whether all subscriptions are equal."""
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
    """Return the held, void and unreal partitions, evaluated claim by claim."""
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
            # The other member's generation is that of its subscription, not of its user data (A-STICKY-04).
            other_generation = None if other is None else members[other].subscription.generation_id
            if other is not None and other_generation is not None:
                if claim.age < other_generation:
                    continue
                held[other].pop(partition, None)
                if claim.age == other_generation:
                    void.add(partition)
            if other is None or claim.age != other_generation:
                mine[partition] = None
            holder[partition] = name
    return held, void, unreal


def missing(every: Sequence[TopicPartition], kept: Iterable[Iterable[TopicPartition]]) -> list[TopicPartition]:
    """Return the partitions that no member keeps."""
    assigned = frozenset().union(*kept)
    return list(filterfalse(assigned.__contains__, every))
