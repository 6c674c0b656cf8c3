"""User data of the sticky assignors, and what the leader takes from it (A-STICKY-01, A-STICKY-02).

sticky: an array of topics, each a name and an array of partition numbers, and then the generation, 4 bytes, which old
clients leave out. cooperative-sticky: the generation alone.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

from fencepost.hash_order import computed_texts

from ..consumer_protocol import NO_GENERATION, EmbeddedReader, SchemaError, Subscription, encode_partitions
from ..partitions import TopicPartition


@dataclass(frozen=True, slots=True)
class Claim:
    """The partitions that a member says it held, and in which generation; None: it does not say."""

    partitions: tuple[TopicPartition, ...]
    generation: int | None

    @property
    def age(self) -> int:
        """The generation for comparisons."""
        return NO_GENERATION if self.generation is None else self.generation


def write(partitions: Sequence[TopicPartition], generation: int) -> bytes:
    """Return the user data of sticky. Topics are in the order of the hash map in which Kafka groups them."""
    topics: dict[str, list[TopicPartition]] = {}
    for partition in partitions:
        topics.setdefault(partition.topic, []).append(partition)
    order = computed_texts([partition.topic for partition in partitions])
    return encode_partitions(partition for topic in order for partition in topics[topic]) + write_generation(generation)


def write_generation(generation: int) -> bytes:
    """Return the user data of cooperative-sticky."""
    return struct.pack(">i", generation)


def previous(subscription: Subscription) -> Claim:
    """Return what a member of sticky held. Its owned partitions do not count: it is eager and has given them up."""
    data = subscription.user_data
    if not data:
        return Claim((), None)
    try:
        return _read(data, aged=True)
    except SchemaError:
        pass
    try:
        return _read(data, aged=False)
    except SchemaError:
        return Claim((), NO_GENERATION)


def _read(data: bytes, *, aged: bool) -> Claim:
    reader = EmbeddedReader(data)
    rows = reader.topic_partitions()
    generation = reader.int32() if aged else None
    return Claim(tuple(TopicPartition(topic, number) for topic, numbers in rows for number in numbers), generation)


def owned(subscription: Subscription) -> Claim:
    """Return what a member of cooperative-sticky holds."""
    if subscription.generation_id != NO_GENERATION:
        return Claim(subscription.owned_partitions, subscription.generation_id)
    data, generation = subscription.user_data, None
    if data is not None:
        try:
            generation = EmbeddedReader(data).int32()
        except SchemaError:
            generation = NO_GENERATION
    return Claim(subscription.owned_partitions, generation)
