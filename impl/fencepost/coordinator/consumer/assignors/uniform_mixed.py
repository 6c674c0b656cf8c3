"""Uniform where subscriptions differ (A-UHET-01…05).

Every topic has its own circle of possible owners, and the circles overlap, so that one deal cannot be even. The way to
an answer that is even in each circle: keep what is held, deal what is free to those who have least in all, and then go
over the topics again and again, moving partitions from those who have most to those who have least, until a whole pass
moves nothing. With overlapping circles that need not be the best there is (A-UHET-04), nor end soon: sixteen passes
are the limit.

Within a topic the members are sorted once, by load. Both ends of that order are worked from like water levels: the
lowest members are raised one by one to the next level, the highest are lowered, and when the levels meet, nothing is
left to do. No sorting is needed in between.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from .base import AssignorError, GroupSpec, Target, partitions_of

PASSES = 16
NOBODY = -1


def assign(spec: GroupSpec) -> Target:
    """Raises ``AssignorError``. Members go by their place in ``spec.members``, which breaks ties."""
    work = _Work(spec)
    work.deal()
    work.balance()
    return work.target()


class _Work:
    """The assignment while it is made: the owner of each partition, the load of each member."""

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
                        if not 0 <= number < len(owners):  # the topic was made anew, and smaller (X-UP-05)
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
        """Each free partition to the subscriber with the lowest load (A-UHET-02)."""
        for topic_id in self._by_difficulty([each for each, owners in self.owners.items() if NOBODY in owners]):
            owners = self.owners[topic_id]
            lowest = _Levels(self.subscribers[topic_id], self.loads).raised()
            for number, owner in enumerate(owners):
                if owner == NOBODY:
                    owners[number] = place = next(lowest)
                    self.loads[place] += 1

    def balance(self) -> None:
        """A-UHET-03. A topic that moved nothing since the last round ended there ends the work."""
        shared = self._by_difficulty([each for each, takers in self.subscribers.items() if len(takers) > 1])
        last = None
        for _ in range(PASSES):
            for topic_id in shared:
                if topic_id == last:
                    return
                if self._level(topic_id) or last is None:
                    last = topic_id

    def _level(self, topic_id: bytes) -> int:
        """Move partitions of one topic from the highest loads to the lowest; returns how many."""
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
            number = held[giver].pop()  # its highest; what it receives here it does not give away again
            taker = next(lowest)
            if levels.met:
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
    """Subscribers of one topic by load, ties by place, and how far both ends have been worked.

    ``loads`` changes while this is used, by what the two methods hand out and nothing else.
    """

    def __init__(self, takers: list[int], loads: list[int]) -> None:
        self._loads = loads
        self._order = sorted(takers, key=loads.__getitem__)  # takers come by place
        self._low = loads[self._order[0]] - 1
        self._high = loads[self._order[-1]] + 1
        self.gap = self._high - self._low - 2
        self._from = self._to = len(takers)  # the highest level; those above it have nothing to give
        self._next = self._to - 1

    @property
    def met(self) -> bool:
        return self._high - self._low <= 1

    def raised(self) -> Iterator[int]:
        """Who gets the next one: all of the lowest level in turn, then those who are now on the level with them."""
        below = 0
        while True:
            self._low += 1
            while below < len(self._order) and self._loads[self._order[below]] == self._low:
                below += 1
            for at in range(below):
                yield self._order[at]

    def lowered(self, held: dict[int, list[int]]) -> int | None:
        """Who gives the next one, of those who hold any; None when nobody is left. A member without is set aside."""
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
            self._high = self._loads[self._order[self._from - 1]]  # all of this level were set aside
        else:
            self._high -= 1
        while self._from > 0 and self._loads[self._order[self._from - 1]] == self._high:
            self._from -= 1
        self._next = self._to - 1
