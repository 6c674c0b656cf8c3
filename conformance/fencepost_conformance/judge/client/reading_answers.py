"""Random answers of brokers to a consumer that reads and commits: as messages, and in the schedule's format."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any

from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.offset_messages import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponseTopic,
)
from fencepost.protocol.partitions import TopicPartition
from fencepost_consumer.broker import (
    EpochEnd,
    FetchedPartition,
    FetchRequest,
    FetchResponse,
    ListedOffset,
    ListOffsetsResponse,
    OffsetForLeaderEpochResponse,
    Record,
)

_E = ErrorCode
_COMMIT = (
    _E.COORDINATOR_LOAD_IN_PROGRESS, _E.UNKNOWN_TOPIC_OR_PARTITION, _E.COORDINATOR_NOT_AVAILABLE, _E.NOT_COORDINATOR,
    _E.REQUEST_TIMED_OUT, _E.REBALANCE_IN_PROGRESS, _E.UNKNOWN_MEMBER_ID, _E.ILLEGAL_GENERATION,
    _E.FENCED_INSTANCE_ID, _E.OFFSET_METADATA_TOO_LARGE, _E.INVALID_COMMIT_OFFSET_SIZE, _E.GROUP_AUTHORIZATION_FAILED,
    _E.TOPIC_AUTHORIZATION_FAILED, _E.GROUP_ID_NOT_FOUND, _E.STALE_MEMBER_EPOCH, _E.UNKNOWN_SERVER_ERROR,
)  # fmt: skip
ELSEWHERE = frozenset({_E.COORDINATOR_NOT_AVAILABLE, _E.NOT_COORDINATOR, _E.REQUEST_TIMED_OUT})
_GROUP = (
    _E.COORDINATOR_LOAD_IN_PROGRESS, _E.COORDINATOR_NOT_AVAILABLE, _E.NOT_COORDINATOR, _E.GROUP_AUTHORIZATION_FAILED,
    _E.UNKNOWN_MEMBER_ID, _E.STALE_MEMBER_EPOCH, _E.REQUEST_TIMED_OUT, _E.UNKNOWN_SERVER_ERROR,
)  # fmt: skip
_OFFSETS = (_E.UNSTABLE_OFFSET_COMMIT, _E.TOPIC_AUTHORIZATION_FAILED, _E.UNKNOWN_TOPIC_OR_PARTITION)
_LEADER = (
    _E.NOT_LEADER_OR_FOLLOWER, _E.REPLICA_NOT_AVAILABLE, _E.KAFKA_STORAGE_ERROR, _E.OFFSET_NOT_AVAILABLE,
    _E.LEADER_NOT_AVAILABLE, _E.FENCED_LEADER_EPOCH, _E.UNKNOWN_LEADER_EPOCH, _E.UNKNOWN_TOPIC_OR_PARTITION,
    _E.TOPIC_AUTHORIZATION_FAILED, _E.UNKNOWN_SERVER_ERROR,
)  # fmt: skip
_FETCH = (
    _E.NOT_LEADER_OR_FOLLOWER, _E.REPLICA_NOT_AVAILABLE, _E.KAFKA_STORAGE_ERROR, _E.FENCED_LEADER_EPOCH,
    _E.OFFSET_NOT_AVAILABLE, _E.UNKNOWN_TOPIC_OR_PARTITION, _E.UNKNOWN_TOPIC_ID, _E.INCONSISTENT_TOPIC_ID,
    _E.OFFSET_OUT_OF_RANGE, _E.OFFSET_OUT_OF_RANGE, _E.OFFSET_OUT_OF_RANGE, _E.UNKNOWN_LEADER_EPOCH,
    _E.UNKNOWN_SERVER_ERROR, _E.TOPIC_AUTHORIZATION_FAILED, _E.CORRUPT_MESSAGE, _E.INVALID_TOPIC_EXCEPTION,
)  # fmt: skip


def name(partition: TopicPartition) -> str:
    """Return the partition's name in a schedule."""
    return f"{partition.topic}-{partition.partition}"


class Answers:
    """Draws answers with ``dice``; each method adds to ``entry`` what the JVM must know."""

    dice: random.Random

    def _error(self, chance: float, errors: Iterable[ErrorCode]) -> ErrorCode:
        return self.dice.choice(list(errors)) if self.dice.random() < chance else _E.NONE

    def _committed(self, asked: OffsetCommitRequest, entry: dict[str, Any]) -> OffsetCommitResponse:
        bad = self.dice.random() < 0.3
        topics, rows = [], []
        for topic in sorted(asked.topics, key=lambda each: (each.name or "", each.topic_id)):
            parts = []
            for each in topic.partitions:
                error = self._error(0.6 if bad else 0, _COMMIT)
                parts.append(OffsetCommitResponsePartition(each.partition_index, error_code=error))
                shown = topic.name or f"#{topic.topic_id[0]}"
                rows.append([f"{shown}-{each.partition_index}", int(error.value)])
            topics.append(OffsetCommitResponseTopic(name=topic.name, topic_id=topic.topic_id, partitions=tuple(parts)))
        entry["rows"] = rows
        return OffsetCommitResponse(tuple(topics))

    def _offsets(self, asked: OffsetFetchRequest, entry: dict[str, Any]) -> OffsetFetchResponse:
        dice = self.dice
        error = self._error(0.15, _GROUP)
        bad = dice.random() < 0.2
        topics, rows = [], []
        for topic in sorted(asked.groups[0].topics or (), key=lambda each: (each.name or "", each.topic_id)):
            parts = []
            for index in topic.partition_indexes:
                code = self._error(0.5 if bad else 0, _OFFSETS)
                offset = dice.randrange(20) if code is _E.NONE and dice.random() < 0.6 else -1
                epoch = dice.choice((-1, 0, 1, 2, 3, 4)) if offset >= 0 else -1
                metadata = dice.choice(("", "m")) if offset >= 0 else ""
                parts.append(
                    OffsetFetchResponsePartition(
                        index, committed_offset=offset, committed_leader_epoch=epoch, metadata=metadata, error_code=code
                    )
                )
                shown = topic.name or f"#{topic.topic_id[0]}"
                rows.append([f"{shown}-{index}", offset, epoch, metadata, int(code.value)])
            topics.append(OffsetFetchResponseTopic(name=topic.name, topic_id=topic.topic_id, partitions=tuple(parts)))
        ended = error is not _E.NONE
        entry |= {"error": int(error.value), "rows": [] if ended else rows}
        group = OffsetFetchResponseGroup("g", error_code=error, topics=() if ended else tuple(topics))
        return OffsetFetchResponse((group,))

    def _listed(self, partitions: list[TopicPartition], entry: dict[str, Any], *, end: bool) -> ListOffsetsResponse:
        """``end``: the request is for a lag. A log always has an end. If an answer denied it, Kafka would throw at the
        next network use, so schedules contain no such answer."""
        dice = self.dice
        bad = dice.random() < 0.2
        found, rows = [], []
        for each in sorted(partitions, key=name):
            error = self._error(0.6 if bad else 0, _LEADER)
            if error is _E.TOPIC_AUTHORIZATION_FAILED and end:
                error = _E.UNKNOWN_SERVER_ERROR
            nothing = error is not _E.NONE or (not end and dice.random() < 0.05)
            offset = -1 if nothing else dice.randrange(20)
            epoch = dice.choice((-1, 0, 1, 2, 3)) if offset >= 0 else -1
            known = None if epoch < 0 else epoch
            found.append(ListedOffset(each, offset=offset, leader_epoch=known, error_code=error))
            rows.append([name(each), offset, epoch, int(error.value)])
        entry["rows"] = rows
        return ListOffsetsResponse(tuple(found))

    def _ends(self, partitions: list[TopicPartition], entry: dict[str, Any]) -> OffsetForLeaderEpochResponse:
        dice = self.dice
        bad = dice.random() < 0.2
        found, rows = [], []
        for each in sorted(partitions, key=name):
            error = self._error(0.6 if bad else 0, _LEADER)
            undefined = error is not _E.NONE or dice.random() < 0.1
            end, epoch = (-1, -1) if undefined else (dice.choice((5, 15, 100)), dice.randrange(4))
            found.append(EpochEnd(each, leader_epoch=epoch, end_offset=end, error_code=error))
            rows.append([name(each), epoch, end, int(error.value)])
        entry["rows"] = rows
        return OffsetForLeaderEpochResponse(tuple(found))

    def _fetched(self, asked: FetchRequest, entry: dict[str, Any]) -> FetchResponse:
        dice = self.dice
        bad = dice.random() < 0.2
        found, rows = [], []
        for each in asked.partitions:
            error = self._error(0.5 if bad else 0, _FETCH)
            batches = [] if error is not _E.NONE else self._batches(each.offset)
            records = tuple(
                Record(offset, leader_epoch=None if epoch < 0 else epoch)
                for epoch, _, offsets in batches
                for offset in offsets
            )
            high = dice.choice((-1, 30, 40))
            stable, start = dice.choice((-1, 25)), dice.choice((-1, 0))
            replica = dice.randrange(2) if error is _E.NONE and dice.random() < 0.08 else -1
            found.append(
                FetchedPartition(
                    each.partition, records=records, next_offset=batches[-1][1] + 1 if batches else None,
                    high_watermark=high, last_stable_offset=stable, log_start_offset=start,
                    preferred_replica=None if replica < 0 else replica, error_code=error,
                )
            )  # fmt: skip
            rows.append([name(each.partition), int(error.value), high, stable, start, replica, batches])
        entry |= {"error": 0, "rows": rows}
        return FetchResponse(tuple(found))

    def _batches(self, offset: int) -> list[Any]:
        """Draw batches: the epoch, the last offset and the remaining records of each. The first may begin before the
        requested offset."""
        dice = self.dice
        batches: list[Any] = []
        at = max(0, offset - dice.choice((0, 0, 0, 2)))
        for _ in range(dice.choice((0, 1, 1, 2))):
            offsets = []
            for _ in range(dice.randrange(1, 4)):
                at += dice.choice((0, 0, 0, 1))
                offsets.append(at)
                at += 1
            last = max(at - 1 + dice.choice((0, 0, 0, 1)), offset)  # no batch ends before the requested offset
            batches.append([dice.choice((-1, 0, 1, 1, 2)), last, offsets])
            at = last + 1
        return batches
