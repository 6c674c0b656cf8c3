"""Uniform where subscriptions differ (A-UHET-01…05).

Every topic has a different circle of possible owners, and the circles overlap, so one distribution cannot be even. To
get an assignment that is even in each circle: keep what is held, give each free partition to the member with the lowest
load, and then iterate over the topics, moving partitions from the members with the highest load to those with the
lowest, until a whole pass moves nothing. With overlapping circles the result need not be the best one (A-UHET-04), and
it may take long: sixteen passes are the limit.

Within a topic the members are sorted once, by load. Both ends of that order are treated like water levels: the lowest
members are raised one by one to the next level, the highest are lowered, and when the levels meet, the topic is done.
No sorting is needed in between.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from fencepost.protocol.server_assignor import AssignorError, GroupSpec, Target

from .hash_order import partitions_of

PASSES = 16
NOBODY = -1


def assign(spec: GroupSpec) -> Target:
    """Raises ``AssignorError``. Members are ordered by their place in ``spec.members``, which breaks ties."""
    work = _Work(spec)
    work.deal()
    work.balance()
    return work.target()


class _Work:
    """The assignment while it is computed: the owner of each partition, the load of each member."""

    def __init__(self, spec: GroupSpec) -> None:
        self.members = list(spec.members)
        self.loads = [0] * len(self.members)
        self.subscribers: defaultdict[bytes, list[int]] = defaultdict(list)
        for place, member in enumerate(spec.members.values()):
            for topic_id in member.topic_ids:
                self.subscribers[topic_id].append(place)
        self.owners = {topic_id: [NOBODY] * partitions_of(spec, topic_id) for topic_id in self.subscribers}
        for place, member in enumerate(spec.members.values()):
            for topic_id, numbers in member.assigned.items():
                if topic_id in member.topic_ids:  # A-UHET-01
                    owners = self.owners[topic_id]
                    for number in numbers:
                        if not 0 <= number < len(owners):  # the topic was created again, smaller (X-UP-05)
                            raise AssignorError("a member has a partition that does not exist")
                        owners[number] = place
                    self.loads[place] += len(numbers)

    def _by_difficulty(self, topic_ids: list[bytes]) -> list[bytes]:
        """A-UHET-02: most partitions a subscriber first, then fewest subscribers, then by id as two signed halves."""

        def key(topic_id: bytes) -> tuple[float, int, int, int]:
            takers = len(self.subscribers[topic_id])
            upper, lower = (int.from_bytes(half, "big", signed=True) for half in (topic_id[:8], topic_id[8:]))
            return -len(self.owners[topic_id]) / takers, takers, upper, lower

        return sorted(topic_ids, key=key)

    def deal(self) -> None:
        """Give each free partition to the subscriber with the lowest load (A-UHET-02)."""
        for topic_id in self._by_difficulty([each for each, owners in self.owners.items() if NOBODY in owners]):
            owners = self.owners[topic_id]
            lowest = _Levels(self.subscribers[topic_id], self.loads).raised()
            for number, owner in enumerate(owners):
                if owner == NOBODY:
                    owners[number] = place = next(lowest)
                    self.loads[place] += 1

    def balance(self) -> None:
        """A-UHET-03. The work ends with a topic if nothing has been moved since the last pass ended there."""
        shared = self._by_difficulty([each for each, takers in self.subscribers.items() if len(takers) > 1])
        last = None
        for _ in range(PASSES):
            for topic_id in shared:
                if topic_id == last:
                    return
                if self._level(topic_id) or last is None:
                    last = topic_id

    def _level(self, topic_id: bytes) -> int:
        """Move partitions of one topic from the highest loads to the lowest; return how many."""
        levels = _Levels(self.subscribers[topic_id], self.loads)
        if levels.gap <= 1:
            return 0
        owners = self.owners[topic_id]
        held: dict[int, list[int]] = {}
        for number, owner in enumerate(owners):
            held.setdefault(owner, []).append(number)
        moved = 0
        lowest = levels.raised()
        while (giver := levels.lowered(held)) is not None:
            number = held[giver].pop()  # the highest; partitions received here are not given away again
            taker = next(lowest)
            if levels.balanced:
                break
            owners[number] = taker
            self.loads[giver] -= 1
            self.loads[taker] += 1
            moved += 1
        return moved

    def target(self) -> Target:
        shares: list[dict[bytes, list[int]]] = [{} for _ in self.members]
        for topic_id, owners in sorted(self.owners.items()):
            for number, owner in enumerate(owners):
                shares[owner].setdefault(topic_id, []).append(number)
        return {
            name: {topic_id: tuple(numbers) for topic_id, numbers in share.items()}
            for name, share in zip(self.members, shares, strict=True)
        }


class _Levels:
    """The subscribers of one topic by load, then by place, and how far both ends have been processed.

    While this is used, ``loads`` must change only by the partitions that the two methods hand out.
    """

    def __init__(self, takers: list[int], loads: list[int]) -> None:
        self._loads = loads
        self._order = sorted(takers, key=loads.__getitem__)  # takers are given by place
        self._low = loads[self._order[0]] - 1
        self._high = loads[self._order[-1]] + 1
        self.gap = self._high - self._low - 2
        self._from = self._to = len(takers)  # the highest level; the members above it have nothing to give
        self._next = self._to - 1

    @property
    def balanced(self) -> bool:
        return self._high - self._low <= 1

    def raised(self) -> Iterator[int]:
        """The members to get the next partitions: all of the lowest level in turn, then those on the new level."""
        below = 0
        while True:
            self._low += 1
            while below < len(self._order) and self._loads[self._order[below]] == self._low:
                below += 1
            for at in range(below):
                yield self._order[at]

    def lowered(self, held: dict[int, list[int]]) -> int | None:
        """The member to give the next partition, of those that hold any; None if none is left. A member without any is
        skipped from then on."""
        while True:
            if self._next < self._from:
                self._descend()
            if self._next < 0:
                return None
            at, self._next = self._next, self._next - 1
            place = self._order[at]
            if held.get(place):
                return place
            self._to -= 1
            self._order[at], self._order[self._to] = self._order[self._to], place

    def _descend(self) -> None:
        if self._to <= self._from and self._from > 0:
            self._high = self._loads[self._order[self._from - 1]]  # all members of this level were skipped
        else:
            self._high -= 1
        while self._from > 0 and self._loads[self._order[self._from - 1]] == self._high:
            self._from -= 1
        self._next = self._to - 1
