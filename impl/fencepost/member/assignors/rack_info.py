"""Rack matches between members and partitions, for the sticky assignors (A-COM-04)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from fencepost.protocol.events import Topic

from ..partitions import TopicPartition
from .base import GroupMember, racks_matter


class RackInfo:
    """Racks of members and of partitions; ``used`` is false if racks decide nothing."""

    def __init__(self, topics: Mapping[str, Topic], members: Mapping[str, GroupMember]) -> None:
        racks = {name: rack for name, member in members.items() if (rack := member.subscription.rack_id)}
        rows = {
            TopicPartition(name, number): topic.racks[number] if topic.racks else frozenset[str]()
            for name, topic in (topics.items() if racks else ())
            for number in range(topic.partitions)
        }
        self.used = racks_matter(racks.values(), rows.values())
        self._racks = racks if self.used else {}
        self._rows = rows if self.used else {}
        self._members_on = Counter(racks.values())

    def mismatch(self, member: str, partition: TopicPartition) -> bool:
        """Return whether the member has a rack and no replica is on it. A member without a rack never mismatches."""
        rack = self._racks.get(member)
        return rack is not None and rack not in self._rows.get(partition, ())

    def match(self, member: str, partition: TopicPartition) -> bool:
        """Return whether a replica of the partition is on the member's rack."""
        rack = self._racks.get(member)
        return rack is not None and rack in self._rows.get(partition, ())

    def fewest_first(self, partitions: list[TopicPartition]) -> list[TopicPartition]:
        """Sort by the number of members on a replica's rack; equal ones keep their order."""
        if not self.used:
            return partitions
        return sorted(partitions, key=lambda each: sum(self._members_on[rack] for rack in self._rows[each]))

    def next_rack_member(self, partition: TopicPartition, members: Sequence[str], begin: int) -> int | None:
        """Return the index of the first member on a replica's rack, from ``begin`` on and around; None: no member."""
        if not self._rows.get(partition):
            return None
        count = len(members)
        places = ((begin + step) % count for step in range(count))
        return next((place for place in places if self.match(members[place], partition)), None)
