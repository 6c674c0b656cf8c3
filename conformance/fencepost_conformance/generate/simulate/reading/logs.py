"""The logs of a few partitions as their leaders have them: they grow, are truncated at either end, and change
leaders."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.partitions import TopicPartition
from fencepost_consumer.broker import (
    AskedEpoch,
    EpochEnd,
    FetchedPartition,
    FetchFrom,
    ListedOffset,
    Record,
)
from fencepost_consumer.partition import Leader

NODES = (1, 2)
_MOST = 5


@dataclass
class Log:
    """``records`` may have gaps; ``end`` is the next offset. No two records ever have the same value."""

    partition: TopicPartition
    leader: Leader
    start: int = 0
    end: int = 0
    records: list[Record] = field(default_factory=list)
    made: int = 0

    def append(self, count: int) -> None:
        """Append records in the leader's epoch."""
        for _ in range(count):
            self.made += 1
            self.records.append(Record(self.end, (self.partition, self.made), self.leader.epoch))
            self.end += 1

    def skip(self) -> None:
        """Add an offset without a record: a transaction's marker, or a record that was compacted away."""
        self.end += 1

    def move(self) -> None:
        """Let another broker lead, in a new epoch."""
        node = next(each for each in NODES if each != self.leader.node)
        self.leader = Leader(node, (self.leader.epoch or 0) + 1)

    def cut(self, count: int) -> None:
        """Lose the last offsets together with their leader."""
        self.end = max(self.start, self.end - count)
        self.records = [each for each in self.records if each.offset < self.end]
        self.move()

    def expire(self, count: int) -> None:
        """Delete the first offsets."""
        self.start = min(self.end, self.start + count)
        self.records = [each for each in self.records if each.offset >= self.start]

    # --- answers ---

    def fetch(self, asked: FetchFrom) -> FetchedPartition:
        """Return a few records from the requested offset on."""
        if not self.start <= asked.offset <= self.end:
            return FetchedPartition(self.partition, error_code=ErrorCode.OFFSET_OUT_OF_RANGE)
        rest = [each for each in self.records if each.offset >= asked.offset]
        some = tuple(rest[:_MOST])
        following = self.end if len(rest) <= _MOST else rest[_MOST].offset
        return FetchedPartition(
            self.partition,
            records=some,
            next_offset=following,
            high_watermark=self.end,
            last_stable_offset=self.end,
            log_start_offset=self.start,
        )

    def list(self, timestamp: int) -> ListedOffset:
        """Return an end of the log; any time stands for the beginning."""
        return ListedOffset(self.partition, offset=self.end if timestamp == -1 else self.start)

    def epoch_end(self, asked: AskedEpoch) -> EpochEnd:
        """Return where the log ends for the largest epoch up to the one in the request."""
        epochs = [each.leader_epoch or 0 for each in self.records] + [self.leader.epoch or 0]
        known = [each for each in epochs if each <= asked.leader_epoch]
        if not known:
            return EpochEnd(self.partition)
        later = [each.offset for each in self.records if (each.leader_epoch or 0) > max(known)]
        return EpochEnd(self.partition, leader_epoch=max(known), end_offset=later[0] if later else self.end)

    def wrong_leader(self, leader_epoch: int | None) -> ErrorCode:
        """Return the error for a request that names another leader epoch."""
        epoch = self.leader.epoch or 0
        if leader_epoch is None or leader_epoch == epoch:
            return ErrorCode.NONE
        return ErrorCode.FENCED_LEADER_EPOCH if leader_epoch < epoch else ErrorCode.UNKNOWN_LEADER_EPOCH


def failed(answer: FetchedPartition, error: ErrorCode) -> FetchedPartition:
    """Return the same partition with an error instead."""
    return replace(answer, records=(), next_offset=None, high_watermark=-1, last_stable_offset=-1, error_code=error)
