"""The sticky algorithm for different subscriptions (A-STICKY-20…24).

Members keep what they hold. The least loaded subscribers get the free partitions. Then the algorithm improves: while
the owner of a partition has at least two more than another subscriber of its topic, the partition moves. Each move
makes two loads more equal, so this ends. The result need not be the most even assignment. But no single move makes it
more even, and "balanced" means exactly that (A-STICKY-24).

The algorithm checks the balance before each partition, but only a move changes it. So the result is cached until the
next move, and computed from topics and their owners instead of from partitions.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import accumulate

from fencepost.protocol.events import Topic

from ..partitions import TopicPartition, java_order
from .base import GroupMember
from .claims import Claims, Held, missing
from .movements import Movements
from .rack_info import RackInfo
from .sticky_data import Claim


def assign(
    topics: Mapping[str, Topic],
    members: Mapping[str, GroupMember],
    claims: Claims,
    reported_claims: Mapping[str, Claim],
    rack_info: RackInfo,
    *,
    faults: bool,
) -> dict[str, list[TopicPartition]]:
    """Return the shares. ``topics``: sorted by name. With ``faults`` a partition may return to a previous owner that
    has unsubscribed, and ``KeyError`` is raised if that owner no longer takes part (A-STICKY-25). Claims to partitions
    that do not exist are always dropped: Kafka's effect of them here (A-STICKY-27) is not reproduced."""
    for partition in claims.unreal:
        for share in claims.held.values():
            share.pop(partition, None)
    wants = {name: [topic for topic in members[name].subscription.topics if topic in topics] for name in claims.held}
    work = _Work(topics, wants, claims.held, rack_info)
    revoked = work.keep({name: frozenset(members[name].subscription.topics) for name in wants})
    former = _former_owners(claims, reported_claims)
    if not faults:
        former = {each: name for each, name in former.items() if each.topic in wants[name]}
    work.balance(former, only_new_first=not revoked)
    return {name: list(share) for name, share in work.held.items()}


def _former_owners(claims: Claims, reported_claims: Mapping[str, Claim]) -> dict[TopicPartition, str]:
    """Return who last held each partition, according to claims older than the newest generation."""
    last: dict[TopicPartition, tuple[int, str]] = {}
    for name in claims.held:
        claim = reported_claims[name]
        if claim.age < claims.newest:
            for partition in claim.partitions:
                if partition not in last or claim.age > last[partition][0]:
                    last[partition] = (claim.age, name)
    return {partition: name for partition, (_, name) in last.items()}


class _Work:
    """The assignment in progress. ``queue``: members that take part, the least loaded first, ties by id."""

    def __init__(
        self, topics: Mapping[str, Topic], wants: Mapping[str, list[str]], held: dict[str, Held], rack_info: RackInfo
    ) -> None:
        self.topics = topics
        self.wants = wants
        self.held = held
        self.rack_info = rack_info
        self.wanted = {name: frozenset(names) for name, names in wants.items()}
        self.ids = {name: java_order(name) for name in held}
        self.takers: dict[str, list[str]] = {topic: [] for topic in topics}
        for name, names in wants.items():
            for topic in names:
                self.takers[topic].append(name)
        by_takers = sorted(topics, key=lambda topic: len(self.takers[topic]))  # then by name
        self.every = [TopicPartition(topic, n) for topic in by_takers for n in range(topics[topic].partitions)]
        self.owner = {partition: name for name, share in held.items() for partition in share}
        self.owners: dict[str, Counter[str]] = {topic: Counter() for topic in topics}
        self.queue: list[tuple[int, bytes, str]] = []
        self.movements = Movements()
        self._balanced: bool | None = None

    def keep(self, subscribed: Mapping[str, frozenset[str]]) -> bool:
        """Remove held partitions that a member may not keep. Return whether there were any (A-STICKY-20)."""
        revoked = False
        for name, share in self.held.items():
            for partition in list(share):
                if partition.topic not in subscribed[name] or self.rack_info.mismatch(name, partition):
                    del share[partition]
                    revoked = True
                else:
                    self.owners[partition.topic][name] += 1
        self.queue = sorted(self._entry(name) for name in self.held)
        return revoked

    def balance(self, former: Mapping[TopicPartition, str], *, only_new_first: bool) -> None:
        """Deal free partitions, then move partitions until no move makes the loads more even (A-STICKY-21…24)."""
        beginning = not self.held[self.queue[-1][2]]
        free = missing(self.every, self.held.values())
        left = [each for each in free if not self._place(each, match_racks=True)] if self.rack_info.used else free
        for partition in left:
            self._place(partition, match_racks=False)  # A-STICKY-21
        fixed = self._set_aside()
        before = {name: dict(share) for name, share in self.held.items()}
        if only_new_first:
            self._improve([each for each in free if len(self.takers[each.topic]) > 1], former)
        moved = self._improve([each for each in self.every if len(self.takers[each.topic]) > 1], former)
        if moved and not beginning and _score(self.held) >= _score(before):
            self.held.update(before)  # A-STICKY-23; no known group needs it
        self.held.update(fixed)

    def _place(self, partition: TopicPartition, *, match_racks: bool) -> bool:
        """Give the partition to the least loaded subscriber. Return false if there is none."""
        for at, (_, _, name) in enumerate(self.queue):
            if partition.topic in self.wanted[name] and not (match_racks and self.rack_info.mismatch(name, partition)):
                del self.queue[at]
                self._put(partition, name)
                insort(self.queue, self._entry(name))
                return True
        return False

    def _set_aside(self) -> dict[str, Held]:
        """Take out and return members that can neither get nor lose a partition."""
        fixed: dict[str, Held] = {}
        for name in self.wants:
            share = self.held[name]
            movable = any(len(self.takers[partition.topic]) > 1 for partition in share)
            if len(share) >= self._most(name) and not movable:
                self._leave_queue(name)
                fixed[name] = self.held.pop(name)
        return fixed

    def _most(self, name: str) -> int:
        """Return how many partitions the member's topics have."""
        return sum(self.topics[topic].partitions for topic in self.wants[name])

    def _improve(self, partitions: Sequence[TopicPartition], former: Mapping[TopicPartition, str]) -> bool:
        """Move partitions until a pass moves none. Return whether any moved (A-STICKY-22)."""
        moved, again = False, True
        while again:
            again = False
            for partition in partitions:
                if self._is_balanced():
                    break
                taker = self._better_owner(partition, former)
                if taker is not None:
                    self._move(self.movements.better(partition, self.owner[partition], taker), taker)
                    moved = again = True
        return moved

    def _better_owner(self, partition: TopicPartition, former: Mapping[TopicPartition, str]) -> str | None:
        """Return a member that would have fewer than the owner even with the partition: its former owner, or the least
        loaded subscriber. Return None if there is none."""
        load = len(self.held[self.owner[partition]])
        last = former.get(partition)
        if last is not None and load > len(self.held[last]) + 1:
            return last
        if not any(load > len(self.held[name]) + 1 for name in self.takers[partition.topic]):
            return None
        return next(name for _, _, name in self.queue if partition.topic in self.wanted[name])

    def _is_balanced(self) -> bool:
        if self._balanced is None:
            self._balanced = self._look()
        return self._balanced

    def _look(self) -> bool:
        """Return whether loads differ by at most one, or no member can take from one with two more (A-STICKY-24)."""
        if not self.queue or self.queue[0][0] >= self.queue[-1][0] - 1:
            return True
        highest = {
            topic: max((len(self.held[name]) for name in owners if name in self.held), default=0)
            for topic, owners in self.owners.items()
        }
        return not any(
            load != self._most(name) and any(highest[topic] > load + 1 for topic in self.wants[name])
            for load, _, name in self.queue
        )

    def _move(self, partition: TopicPartition, taker: str) -> None:
        owner = self.owner[partition]
        self._leave_queue(owner)
        if taker != owner:
            self._leave_queue(taker)
        self.movements.record(partition, owner, taker)
        del self.held[owner][partition]
        owners = self.owners[partition.topic]
        owners[owner] -= 1
        if not owners[owner]:
            del owners[owner]
        self._put(partition, taker)
        for name in {owner, taker}:
            insort(self.queue, self._entry(name))
        self._balanced = None

    def _put(self, partition: TopicPartition, name: str) -> None:
        self.held[name][partition] = None
        self.owner[partition] = name
        self.owners[partition.topic][name] += 1

    def _entry(self, name: str) -> tuple[int, bytes, str]:
        return len(self.held[name]), self.ids[name], name

    def _leave_queue(self, name: str) -> None:
        del self.queue[bisect_left(self.queue, self._entry(name))]


def _score(shares: Mapping[str, Held]) -> int:
    """Return the sum of the differences of all pairs of loads. In sorted order, each load adds its differences to all
    earlier ones."""
    loads = sorted(map(len, shares.values()))
    below = accumulate(loads, initial=0)
    return sum(load * at - sum_below for at, (load, sum_below) in enumerate(zip(loads, below, strict=False)))
