"""Record of moves between members, so that no two members just swap partitions of a topic (A-STICKY-22)."""

from __future__ import annotations

from fencepost.hash_order import grown, in_table, of_partition

from ..partitions import TopicPartition


class _Moved:
    """Partitions of one topic that moved between two members, in the order of a hash set that never shrinks."""

    def __init__(self) -> None:
        self._most = 0
        self.partitions: dict[TopicPartition, None] = {}

    def add(self, partition: TopicPartition) -> None:
        """Add a partition."""
        self.partitions[partition] = None
        self._most = max(self._most, len(self.partitions))

    def first(self) -> TopicPartition:
        """Return the first partition in the order of the hash set."""
        return in_table(self.partitions, lambda each: of_partition(each.topic, each.partition), grown(self._most))[0]


class Movements:
    """Net movement of each partition since the start."""

    def __init__(self) -> None:
        self._ways: dict[TopicPartition, tuple[str, str]] = {}
        self._moved: dict[tuple[str, str, str], _Moved] = {}

    def better(self, partition: TopicPartition, owner: str, taker: str) -> TopicPartition:
        """Return the partition to move: preferably one of the same topic that moved in the opposite direction."""
        origin = self._ways[partition][0] if partition in self._ways else owner
        back = self._moved.get((partition.topic, taker, origin))
        return partition if back is None else back.first()

    def record(self, partition: TopicPartition, owner: str, taker: str) -> None:
        """Record a move from the owner to the taker. A move back cancels the earlier one."""
        origin = owner
        if partition in self._ways:
            way = self._ways.pop(partition)
            origin = way[0]
            moved = self._moved[partition.topic, *way]
            del moved.partitions[partition]
            if not moved.partitions:
                del self._moved[partition.topic, *way]
        if origin != taker:
            self._ways[partition] = (origin, taker)
            key = (partition.topic, origin, taker)
            if key not in self._moved:
                self._moved[key] = _Moved()
            self._moved[key].add(partition)
