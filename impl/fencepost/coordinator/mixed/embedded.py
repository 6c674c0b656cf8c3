"""Between the topic names of the embedded consumer protocol and the topic ids of consumer groups (X-UP-05, X-SYNC-06).

Topics that do not exist are dropped both ways.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from fencepost.protocol.consumer_messages import TopicPartitions
from fencepost.protocol.embedded import Assignment, encode_assignment, version_of
from fencepost.protocol.partitions import TopicPartition

from ..consumer.records import share_rows
from ..consumer.state import Share
from ..consumer.topics import TopicImage


def share_of(partitions: Iterable[TopicPartition], topics: TopicImage) -> Share:
    found: dict[bytes, set[int]] = {}
    for name, number in partitions:
        if name in topics.by_name:
            found.setdefault(topics.by_name[name].topic_id, set()).add(number)
    return {topic_id: tuple(sorted(numbers)) for topic_id, numbers in found.items()}


def owned_rows(partitions: Iterable[TopicPartition], topics: TopicImage) -> tuple[TopicPartitions, ...]:
    return share_rows(share_of(partitions, topics))


def encoded(share: Mapping[bytes, Collection[int]], topics: TopicImage, subscription: bytes) -> bytes:
    """The share as an assignment, in the version of the member's subscription. Raises ``SchemaError``."""
    partitions = [
        TopicPartition(topics.by_id[topic_id].name, number)
        for topic_id in sorted(share)
        if topic_id in topics.by_id
        for number in sorted(share[topic_id])
    ]
    return encode_assignment(Assignment(tuple(partitions)), version_of(subscription))
