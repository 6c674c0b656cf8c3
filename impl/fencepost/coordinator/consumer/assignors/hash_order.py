"""The partitions of topics, for the server assignors, and the order in which Kafka iterates over them (10.6).

Where ``uniform`` has to take partitions away or hand them out, Kafka uses the order of a hash table, which
``fencepost.hash_order`` computes. Orders that depend on more than is known here are passed in: the order of the
members, and the order of topics that share a bucket.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from fencepost.hash_order import grown, in_table, made_for, of_uuid, spread
from fencepost.protocol.server_assignor import AssignorError, GroupSpec


def partitions_of(spec: GroupSpec, topic_id: bytes) -> int:
    """The number of partitions of the topic. Raises ``AssignorError`` if it has no metadata."""
    try:
        return spec.topics[topic_id]
    except KeyError:
        raise AssignorError("a member is subscribed to a topic that does not exist") from None


def crowded(topic_ids: Collection[bytes]) -> bool:
    """Whether two of them share a bucket, so that the insertion order matters."""
    mask = grown(len(topic_ids)) - 1
    return len({of_uuid(topic_id) & mask for topic_id in topic_ids}) < len(topic_ids)


def of_set(topic_ids: Iterable[bytes]) -> list[bytes]:
    """The order of a set that is a copy of these ids; they are given in the order in which they are copied."""
    ids = list(topic_ids)
    return in_table(ids, of_uuid, made_for(len(ids)))


def of_map(share: Mapping[bytes, tuple[int, ...]]) -> list[bytes]:
    """The key order of a map that was read row by row from a record; the rows are given in order."""
    return in_table(share, of_uuid, grown(len(share)))


def of_numbers(numbers: tuple[int, ...]) -> Sequence[int]:
    """The order of a set of partition numbers that was read from a record, whose numbers ascend."""
    buckets = made_for(len(numbers))
    if not numbers or numbers[-1] < buckets:
        return numbers  # each has its own bucket
    return in_table(numbers, spread, buckets)
