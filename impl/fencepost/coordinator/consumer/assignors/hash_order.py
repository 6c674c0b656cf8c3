"""The order in which Kafka's server assignors meet topic ids and partition numbers.

Where ``uniform`` has to give something up or to hand something out, Kafka takes it in the order of a hash table, which
``fencepost.hash_order`` computes. What depends on more than is known here is handed in: the order of the members, and
of topics that share a bucket.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from fencepost.hash_order import grown, in_table, made_for, of_uuid, spread


def crowded(topic_ids: Collection[bytes]) -> bool:
    """Whether two of them share a bucket, so that the order in which they were put in shows."""
    mask = grown(len(topic_ids)) - 1
    return len({of_uuid(topic_id) & mask for topic_id in topic_ids}) < len(topic_ids)


def of_set(topic_ids: Iterable[bytes]) -> list[bytes]:
    """A set that is a copy of these ids, which come in the order in which they are copied."""
    ids = list(topic_ids)
    return in_table(ids, of_uuid, made_for(len(ids)))


def of_map(share: Mapping[bytes, tuple[int, ...]]) -> list[bytes]:
    """The keys of a map that was read row by row from a record, in the order of the rows."""
    return in_table(share, of_uuid, grown(len(share)))


def of_numbers(numbers: tuple[int, ...]) -> Sequence[int]:
    """A set of partition numbers that was read from a record, whose numbers ascend."""
    buckets = made_for(len(numbers))
    if not numbers or numbers[-1] < buckets:
        return numbers  # each has its own bucket
    return in_table(numbers, spread, buckets)
