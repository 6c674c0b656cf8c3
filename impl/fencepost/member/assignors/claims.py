"""Whose claim to a partition counts, where members say what they held (A-STICKY-03, A-STICKY-04)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

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
    faults: bool,
) -> Claims:
    """Go through the claims in map order. A number that its topic does not have is no claim.

    With ``faults`` it is one (A-STICKY-27), and a member that subscribes to nothing is like everybody who comes after
    it (A-STICKY-26).
    """
    held: dict[str, Held] = {}
    void: set[TopicPartition] = set()
    unreal: set[TopicPartition] = set()
    holder: dict[TopicPartition, str] = {}
    first: frozenset[str] | None = None
    alike = True
    for name in order:
        wanted = frozenset(members[name].subscription.topics)
        if first is None or (faults and not first):
            first = wanted
        alike = alike and wanted == first
        claim = claims[name]
        newest = max(newest, claim.age)
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
    return Claims(held, frozenset(void), alike, newest, frozenset(unreal))


def missing(every: Sequence[TopicPartition], kept: Mapping[str, Held]) -> list[TopicPartition]:
    """The partitions that nobody keeps."""
    taken = {partition for share in kept.values() for partition in share}
    return [partition for partition in every if partition not in taken]
