"""Range: each topic cut into contiguous ranges, one a member (10.3).

With racks the assignor first places partitions where a replica is near, within the room that the plain split leaves
each member, and fills up by ranges afterwards. Co-partitioning goes before racks (A-RANGE-06): topics with the same
subscribers and the same number of partitions are placed together or not at all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from fencepost.protocol.events import Topic

from ..consumer_protocol import Assignment
from ..partitions import TopicPartition, partition_order, partitions_of
from .base import Assigned, GroupMember, RebalanceProtocol, in_order, racks_matter, subscribed

Shares = dict[str, list[TopicPartition]]


@dataclass(frozen=True, slots=True)
class RangeAssignor:
    """Balanced per topic, co-partitioned, not sticky (A-RANGE-01…03)."""

    name: str = "range"
    version: int = 0
    protocols: frozenset[RebalanceProtocol] = frozenset({RebalanceProtocol.EAGER})  # A-PROTO-01

    def user_data(self, topics: frozenset[str]) -> bytes | None:
        return None

    def assign(self, topics: Mapping[str, Topic], members: Mapping[str, GroupMember]) -> Assigned:
        takers = _takers(members, topics)
        shares: Shares = {member: [] for member in members}  # A-COM-03
        if any(member.subscription.rack_id is not None for member in members.values()):
            _share_near([_Split(topics[name], found, members) for name, found in takers.items()], shares)
        else:
            for name, found in takers.items():
                _cut(topics[name], found, shares)
        return Assigned({member: Assignment(tuple(share)) for member, share in shares.items()}, self)

    def on_assignment(self, assignment: Assignment, generation_id: int) -> RangeAssignor:
        return self


def _takers(members: Mapping[str, GroupMember], topics: Mapping[str, Topic]) -> dict[str, Sequence[str]]:
    """Who subscribes to each topic, in the order in which they take. Members mostly subscribe to the same, and then it
    is the same list for each topic."""
    order = in_order(members)
    sets = {names: frozenset(names) for names in {member.subscription.topics for member in members.values()}}
    wanted = [(member, sets[members[member].subscription.topics]) for member in order]
    of_all = frozenset.intersection(*sets.values()) if sets else frozenset[str]()
    return {
        name: order if name in of_all else [member for member, names in wanted if name in names]
        for name in subscribed(topics, members)
    }


def _cut(topic: Topic, takers: Sequence[str], shares: Shares) -> None:
    """Contiguous ranges for the takers in order, of which the first are one longer (A-RANGE-01)."""
    quota, longer = divmod(topic.partitions, len(takers))
    every = partitions_of(topic.name, range(topic.partitions))
    at = 0
    for taker in takers if quota else takers[:longer]:
        end = at + quota + (longer > 0)
        shares[taker].extend(every[at:end])
        at = end
        longer -= 1


class _Split:
    """One topic while it is being cut: who takes part, what is left, how much room each has (A-RANGE-05)."""

    def __init__(self, topic: Topic, takers: Sequence[str], members: Mapping[str, GroupMember]) -> None:
        self.topic = topic
        self.racks = {taker: members[taker].subscription.rack_id for taker in takers}
        self.every = partitions_of(topic.name, range(topic.partitions))
        self.left: Sequence[int] = range(topic.partitions)
        self.taken = dict.fromkeys(takers, 0)
        self.quota, self.extras = divmod(topic.partitions, len(takers))
        known = [rack for rack in self.racks.values() if rack is not None]
        # Replica racks are looked at only if some taker has one.
        self.near = topic.racks if known and topic.racks else (frozenset[str](),) * topic.partitions
        self.knows_racks = bool(known)
        self.racks_matter = racks_matter(known, self.near)

    def room(self, taker: str) -> int:
        """How many partitions it may take yet."""
        return max(0, self.quota + (1 if self.extras > 0 else 0) - self.taken[taker])

    def matches(self, taker: str, partition: int) -> bool:
        """Whether a replica of the partition is on the taker's rack."""
        rack = self.racks[taker]
        return rack is None or rack in self.near[partition]  # without a rack anything matches (A-RANGE-04)

    def give(self, taker: str, partitions: Sequence[int], shares: Shares) -> None:
        """The taker has these partitions."""
        shares[taker].extend(map(self.every.__getitem__, partitions))
        self.taken[taker] += len(partitions)
        if self.taken[taker] > self.quota:
            self.extras -= 1  # A-RANGE-05

    def fill(self, shares: Shares) -> None:
        """Each taker in order takes up to its room of what is left."""
        at = 0
        for taker in self.taken:
            if at == len(self.left):
                return
            chosen = self.left[at : at + self.room(taker)]
            if chosen:
                self.give(taker, chosen, shares)
                at += len(chosen)

    def fill_near(self, shares: Shares) -> None:
        """Each taker in order takes up to its room of what is left and matches its rack."""
        for taker in self.taken:
            fitting = (partition for partition in self.left if self.matches(taker, partition))
            chosen = tuple(islice(fitting, self.room(taker)))
            if chosen:
                self.take_out(taker, chosen, shares)

    def take_out(self, taker: str, partitions: Sequence[int], shares: Shares) -> None:
        """Give what may stand anywhere in ``left``."""
        self.give(taker, partitions, shares)
        given = frozenset(partitions)
        self.left = [partition for partition in self.left if partition not in given]


def _share_near(splits: Sequence[_Split], shares: Shares) -> None:
    """Where racks matter to some topic, what is near goes first; the rest is filled up (A-RANGE-04)."""
    near = any(split.racks_matter for split in splits)
    if near:
        _place_near(splits, shares)
    for split in splits:
        split.fill(shares)
    if near:
        for share in shares.values():
            share.sort(key=partition_order)


def _place_near(splits: Sequence[_Split], shares: Shares) -> None:
    """Place what is near its owner: of topics with the same takers and size all at once (A-RANGE-04).

    Groups share nothing, so their order does not matter (A-RANGE-07)."""
    together: dict[tuple[tuple[tuple[str, str | None], ...], int], list[_Split]] = {}
    for split in splits:
        size = split.topic.partitions if split.knows_racks else 0
        together.setdefault((tuple(split.racks.items()), size), []).append(split)
    for (_, size), group in together.items():
        if len(group) > 1:
            _place_together(group, size, shares)
        elif group[0].racks_matter:
            group[0].fill_near(shares)


def _place_together(group: Sequence[_Split], size: int, shares: Shares) -> None:
    """Partition number by number, in all topics at once: to the first taker that is near and has room in each."""
    takers = list(group[0].taken)
    for partition in range(size):
        for taker in takers:
            if all(split.matches(taker, partition) and split.room(taker) > 0 for split in group):
                for split in group:
                    split.take_out(taker, (partition,), shares)
                if not any(split.room(taker) > 0 for split in group):
                    takers.remove(taker)
                break
