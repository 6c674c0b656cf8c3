"""Range: the assignor cuts each topic into contiguous ranges, one for each member (10.3).

With racks, it first places partitions on members near a replica, up to the count of the plain split. Then it fills up
by ranges. Co-partitioning has priority over racks (A-RANGE-06): topics with the same subscribers and the same number of
partitions are placed together or not at all.
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
    """An assignor that is balanced per topic and co-partitioned, but not sticky (A-RANGE-01…03)."""

    name: str = "range"
    version: int = 0
    protocols: frozenset[RebalanceProtocol] = frozenset({RebalanceProtocol.EAGER})  # A-PROTO-01

    def user_data(self, topics: frozenset[str]) -> bytes | None:
        return None

    def assign(self, topics: Mapping[str, Topic], members: Mapping[str, GroupMember]) -> Assigned:
        takers = _takers(members, topics)
        shares: Shares = {member: [] for member in members}  # A-COM-03
        if any(member.subscription.rack_id is not None for member in members.values()):
            _assign_with_racks([_Split(topics[name], found, members) for name, found in takers.items()], shares)
        else:
            for name, found in takers.items():
                _cut(topics[name], found, shares)
        return Assigned({member: Assignment(tuple(share)) for member, share in shares.items()}, self)

    def on_assignment(self, assignment: Assignment, generation_id: int) -> RangeAssignor:
        return self


def _takers(members: Mapping[str, GroupMember], topics: Mapping[str, Topic]) -> dict[str, Sequence[str]]:
    """Return the subscribers of each topic, in the order in which they take partitions. Most groups subscribe to the
    same topics; then all topics share one list."""
    order = in_order(members)
    sets = {names: frozenset(names) for names in {member.subscription.topics for member in members.values()}}
    wanted = [(member, sets[members[member].subscription.topics]) for member in order]
    of_all = frozenset.intersection(*sets.values()) if sets else frozenset[str]()
    return {
        name: order if name in of_all else [member for member, names in wanted if name in names]
        for name in subscribed(topics, members)
    }


def _cut(topic: Topic, takers: Sequence[str], shares: Shares) -> None:
    """Give the takers contiguous ranges in order; the first ranges are one longer (A-RANGE-01)."""
    quota, longer = divmod(topic.partitions, len(takers))
    every = partitions_of(topic.name, range(topic.partitions))
    at = 0
    for taker in takers if quota else takers[:longer]:
        end = at + quota + (longer > 0)
        shares[taker].extend(every[at:end])
        at = end
        longer -= 1


class _Split:
    """One topic in progress: its takers, the partitions left, and how many each taker has (A-RANGE-05)."""

    def __init__(self, topic: Topic, takers: Sequence[str], members: Mapping[str, GroupMember]) -> None:
        self.topic = topic
        self.racks = {taker: members[taker].subscription.rack_id for taker in takers}
        self.every = partitions_of(topic.name, range(topic.partitions))
        self.left: Sequence[int] = range(topic.partitions)
        self.counts = dict.fromkeys(takers, 0)
        self.quota, self.extras = divmod(topic.partitions, len(takers))
        known = [rack for rack in self.racks.values() if rack is not None]
        # Replica racks matter only if some taker has a rack.
        self.replica_racks = topic.racks if known and topic.racks else (frozenset[str](),) * topic.partitions
        self.knows_racks = bool(known)
        self.racks_matter = racks_matter(known, self.replica_racks)

    def remaining_quota(self, taker: str) -> int:
        """Return how many more partitions the taker may get."""
        return max(0, self.quota + (1 if self.extras > 0 else 0) - self.counts[taker])

    def matches(self, taker: str, partition: int) -> bool:
        """Return whether the taker has no rack, or a replica of the partition is on it."""
        rack = self.racks[taker]
        return rack is None or rack in self.replica_racks[partition]  # A-RANGE-04: without a rack, all match

    def give(self, taker: str, partitions: Sequence[int], shares: Shares) -> None:
        """Give the taker these partitions."""
        shares[taker].extend(map(self.every.__getitem__, partitions))
        self.counts[taker] += len(partitions)
        if self.counts[taker] > self.quota:
            self.extras -= 1  # A-RANGE-05

    def fill(self, shares: Shares) -> None:
        """Let each taker, in order, take from what is left up to its quota."""
        at = 0
        for taker in self.counts:
            if at == len(self.left):
                return
            chosen = self.left[at : at + self.remaining_quota(taker)]
            if chosen:
                self.give(taker, chosen, shares)
                at += len(chosen)

    def fill_by_rack(self, shares: Shares) -> None:
        """Let each taker, in order, take partitions on its rack up to its quota."""
        for taker in self.counts:
            fitting = (partition for partition in self.left if self.matches(taker, partition))
            chosen = tuple(islice(fitting, self.remaining_quota(taker)))
            if chosen:
                self.take_out(taker, chosen, shares)

    def take_out(self, taker: str, partitions: Sequence[int], shares: Shares) -> None:
        """Give partitions from any place in ``left``."""
        self.give(taker, partitions, shares)
        given = frozenset(partitions)
        self.left = [partition for partition in self.left if partition not in given]


def _assign_with_racks(splits: Sequence[_Split], shares: Shares) -> None:
    """Place partitions by rack if racks matter to some topic; then fill up by ranges (A-RANGE-04)."""
    with_racks = any(split.racks_matter for split in splits)
    if with_racks:
        _place_by_rack(splits, shares)
    for split in splits:
        split.fill(shares)
    if with_racks:
        for share in shares.values():
            share.sort(key=partition_order)


def _place_by_rack(splits: Sequence[_Split], shares: Shares) -> None:
    """Place partitions by rack; topics with the same takers and size are placed together (A-RANGE-04).

    The groups of topics are independent, so their order does not matter (A-RANGE-07)."""
    together: dict[tuple[tuple[tuple[str, str | None], ...], int], list[_Split]] = {}
    for split in splits:
        size = split.topic.partitions if split.knows_racks else 0
        together.setdefault((tuple(split.racks.items()), size), []).append(split)
    for (_, size), group in together.items():
        if len(group) > 1:
            _place_together(group, size, shares)
        elif group[0].racks_matter:
            group[0].fill_by_rack(shares)


def _place_together(group: Sequence[_Split], size: int, shares: Shares) -> None:
    """Place each partition number in all topics at the same time: on the first taker that matches and has room in
    each."""
    takers = list(group[0].counts)
    for partition in range(size):
        for taker in takers:
            if all(split.matches(taker, partition) and split.remaining_quota(taker) > 0 for split in group):
                for split in group:
                    split.take_out(taker, (partition,), shares)
                if not any(split.remaining_quota(taker) > 0 for split in group):
                    takers.remove(taker)
                break
