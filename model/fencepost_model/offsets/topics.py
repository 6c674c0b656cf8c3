"""The broker's checks of topics before the coordinator is asked (O-COMMIT-02, 03, O-FETCH-13, 14, O-DEL-01)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.offset_messages import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetDeleteRequest,
    TxnOffsetCommitRequest,
)

from ..consumer.derive import by_id, topics_by_name
from ..consumer.state import Image
from .rows import Row

#: The first version in which OffsetCommit and OffsetFetch name topics by id (G-WIRE-05, 06).
IDS_SINCE = 10
#: The same for TxnOffsetCommit (G-WIRE-08).
IDS_IN_TRANSACTIONS_SINCE = 6


class Asked(NamedTuple):
    """A partition of a request that reaches the coordinator: its topic as the request named it, and the real name and
    id."""

    row: Row
    name: str
    topic_id: bytes
    what: OffsetCommitRequestPartition


class Sifted(NamedTuple):
    """The partitions that the broker refuses, and those that reach the coordinator."""

    refused: tuple[Row, ...]
    asked: tuple[Asked, ...]


def known(image: Image, name: str, topic_id: bytes, *, with_ids: bool) -> tuple[str, bytes] | None:
    """Return name and id of the topic that the request names, or None if the broker does not know it."""
    found = by_id(image).get(topic_id) if with_ids else topics_by_name(image).get(name)
    return None if found is None else (found.name, found.topic_id)


def sifted(
    image: Image,
    body: OffsetCommitRequest | TxnOffsetCommitRequest | OffsetDeleteRequest,
    version: int,
    denied: frozenset[str],
) -> Sifted:
    """Split a commit or a deletion into refused partitions and those that reach the coordinator."""
    if isinstance(body, OffsetDeleteRequest):
        topics = tuple(
            OffsetCommitRequestTopic(
                name=topic.name,
                partitions=tuple(
                    OffsetCommitRequestPartition(index, committed_offset=-1) for index in topic.partition_indexes
                ),
            )
            for topic in body.topics
        )
        return _sift(image, topics, denied, with_ids=False)
    since = IDS_SINCE if isinstance(body, OffsetCommitRequest) else IDS_IN_TRANSACTIONS_SINCE
    return _sift(image, body.topics, denied, with_ids=version >= since)


def _sift(
    image: Image, topics: Iterable[OffsetCommitRequestTopic], denied: frozenset[str], *, with_ids: bool
) -> Sifted:
    """Check each partition in the order of the request (O-COMMIT-02, O-COMMIT-03, O-TXN-01, O-DEL-01)."""
    refused: list[Row] = []
    asked: list[Asked] = []
    for topic in topics:
        found = known(image, topic.name, topic.topic_id, with_ids=with_ids)
        error = _of_topic(topic.name, found, denied, with_ids=with_ids)
        count = topics_by_name(image)[found[0]].partitions if found is not None else 0
        for what in topic.partitions:
            row = Row(topic.name, topic.topic_id, what.partition_index, error)
            if found is None or error is not ErrorCode.NONE:
                refused.append(row)
            elif not 0 <= what.partition_index < count:
                refused.append(row._replace(error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
            else:
                asked.append(Asked(row, *found, what))
    return Sifted(tuple(refused), tuple(asked))


def _of_topic(name: str, found: tuple[str, bytes] | None, denied: frozenset[str], *, with_ids: bool) -> ErrorCode:
    """Return the error of a topic, in this order: unknown id, no right, unknown name."""
    if found is None and with_ids:
        return ErrorCode.UNKNOWN_TOPIC_ID
    if (name if found is None else found[0]) in denied:
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return ErrorCode.NONE if found is not None else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
