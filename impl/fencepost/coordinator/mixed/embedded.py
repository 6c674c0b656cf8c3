"""Conversion between topic names of the embedded consumer protocol and topic ids of groups (X-UP-05, X-SYNC-06).

Topics that do not exist are dropped both ways.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from fencepost.protocol.consumer_messages import TopicPartitions
from fencepost.protocol.embedded import decode_subscription, encode_topics, version_of
from fencepost.protocol.messages import Protocol
from fencepost.protocol.partitions import TopicPartition
from fencepost.quirks import varies

from ..consumer.group import Share
from ..consumer.records import share_rows
from ..kernel.step import Step
from ..kernel.topics import TopicImage


def assigned(rows: Iterable[tuple[str, Iterable[int]]], topics: TopicImage) -> Share:
    """The share in an assignment. If a topic is listed twice the last row counts; a row without partitions stays
    (X-UP-05)."""
    found: dict[bytes, tuple[int, ...]] = {}
    for name, numbers in rows:
        if name in topics.by_name:
            found[topics.by_name[name].topic_id] = tuple(sorted(set(numbers)))
    return found


@varies
def require_readable(step: Step, protocols: Iterable[Protocol]) -> None:
    """Check that the metadata of each protocol of a member can be read: a downgrade may need any of it, a SyncGroup
    that of the first one (X-DOWN-09, X-SYNC-07). Raises ``SchemaError``."""
    for protocol in protocols:
        decode_subscription(protocol.metadata)


def owned_rows(partitions: Iterable[TopicPartition], topics: TopicImage) -> tuple[TopicPartitions, ...]:
    """The partitions that a member claims to own, as rows by topic id."""
    found: dict[str, list[int]] = {}
    for name, number in partitions:
        found.setdefault(name, []).append(number)
    return share_rows(assigned(found.items(), topics))


def encoded(share: Mapping[bytes, Collection[int]], topics: TopicImage, subscription: bytes) -> bytes:
    """The share as an assignment, in the version of the member's subscription. Raises ``SchemaError``."""
    rows = [
        (topics.by_id[topic_id].name, sorted(share[topic_id])) for topic_id in sorted(share) if topic_id in topics.by_id
    ]
    return encode_topics(rows, version_of(subscription))
