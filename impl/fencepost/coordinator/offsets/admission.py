"""The checks of a commit before the coordinator: authorization, and topics that do not exist (O-COMMIT-01…04).

After them each topic has both name and id. An answer names topics as the request did, and contains each topic once,
with the refused ones first; if nothing was refused, it has the order of the request.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import Request, Topic
from fencepost.protocol.offset_messages import (
    ZERO_ID,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)

from ..kernel.topics import TopicImage

#: The result of each partition: its number and an error.
Results = list[tuple[int, ErrorCode]]


@dataclass(frozen=True, slots=True)
class Admitted:
    """The part of a commit that the coordinator handles: ``topics``, each with name and id. ``refused``: the results of
    the rest, as (name, id, results). ``by_id``: whether the request names topics by id."""

    topics: tuple[OffsetCommitRequestTopic, ...]
    refused: tuple[tuple[str, bytes, Results], ...]
    by_id: bool

    def answer(self, results: Sequence[Results]) -> tuple[OffsetCommitResponseTopic, ...]:
        """The rows of the whole request. ``results``: those of ``topics``."""
        asked = [(topic.name, topic.topic_id, each) for topic, each in zip(self.topics, results, strict=True)]
        if not self.refused:
            return tuple(self._row(*row) for row in asked)
        return tuple(self._row(*row) for row in merged([*self.refused, *asked], self.by_id))

    def failed(self, error: ErrorCode) -> tuple[OffsetCommitResponseTopic, ...]:
        """The rows if the coordinator gives this error for everything it handles (O-COMMIT-05…07)."""
        return self.answer([[(each.partition_index, error) for each in topic.partitions] for topic in self.topics])

    def _row(self, name: str, topic_id: bytes, results: Results) -> OffsetCommitResponseTopic:
        rows = tuple([_result(index, error) for index, error in results])
        if self.by_id:
            return OffsetCommitResponseTopic(topic_id=topic_id, partitions=rows)
        return OffsetCommitResponseTopic(name=name, partitions=rows)


@lru_cache(maxsize=4_096)
def _result(index: int, error: ErrorCode) -> OffsetCommitResponsePartition:
    """The row of one partition; nearly all commits have the same rows."""
    return OffsetCommitResponsePartition(index, error)


def admit(request: Request, image: TopicImage, topics: Iterable[OffsetCommitRequestTopic], *, by_id: bool) -> Admitted:
    """Split a commit, by names or, since 4.1, by ids (O-COMMIT-02, O-COMMIT-03, V-03, O-TXN-01)."""
    admitted = []
    refused: list[tuple[str, bytes, Results]] = []
    for topic in topics:
        known = resolved(image, topic.name, topic.topic_id, by_id=by_id)
        error = _refusal(request, known, topic.name, by_id=by_id)
        if known is None or error is not None:
            assert error is not None
            rows = [(each.partition_index, error) for each in topic.partitions]
            refused.append((topic.name, topic.topic_id, rows))
            continue
        there, missing = _parted(topic.partitions, known.partitions)
        if missing:
            refused.append((known.name, known.topic_id, missing))
        if there:
            admitted.append(OffsetCommitRequestTopic(name=known.name, topic_id=known.topic_id, partitions=there))
    return Admitted(tuple(admitted), tuple(merged(refused, by_id)), by_id)


def resolved(image: TopicImage, name: str, topic_id: bytes, *, by_id: bool) -> Topic | None:
    """The topic that a request names, by id or name; None if it does not exist."""
    if not by_id:
        return image.by_name.get(name)
    return None if topic_id == ZERO_ID else image.by_id.get(topic_id)


def _refusal(request: Request, known: Topic | None, name: str, *, by_id: bool) -> ErrorCode | None:
    """Why a whole topic is refused. The order of the checks: id, authorization, name (O-COMMIT-02)."""
    if by_id and known is None:
        return ErrorCode.UNKNOWN_TOPIC_ID
    if (name if known is None else known.name) in request.denied_topics:
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if known is None else None


def _parted(
    partitions: tuple[OffsetCommitRequestPartition, ...], count: int
) -> tuple[tuple[OffsetCommitRequestPartition, ...], Results]:
    """The partitions that the topic has, and the results for the others (O-COMMIT-03)."""
    if all(0 <= each.partition_index < count for each in partitions):
        return partitions, []
    there = tuple(each for each in partitions if 0 <= each.partition_index < count)
    missing = [
        (each.partition_index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        for each in partitions
        if not 0 <= each.partition_index < count
    ]
    return there, missing


def merged(rows: Iterable[tuple[str, bytes, Results]], by_id: bool) -> list[tuple[str, bytes, Results]]:
    """Each topic once, at the place of its first row."""
    found: dict[str | bytes, tuple[str, bytes, Results]] = {}
    for name, topic_id, results in rows:
        key = topic_id if by_id else name
        known = found.get(key)
        found[key] = (name, topic_id, results if known is None else known[2] + results)
    return list(found.values())
