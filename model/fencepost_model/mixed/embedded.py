"""Subscriptions and assignments of classic members, in ids instead of names (X-UP-05, X-JOIN-10, X-DOWN-04)."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from fencepost.protocol.embedded import (
    NO_GENERATION,
    SchemaError,
    decode_assignment,
    decode_subscription,
    decode_topics,
    encode_assignment,
    encode_topics,
    version_of,
)

from ..consumer.derive import by_id, topics_by_name
from ..consumer.state import Image, Partition, Target


class Wanted(NamedTuple):
    """What a subscription says. ``names`` ascending; ``owned``: of topics that exist; ``generation``: None if it tells
    none (A-EMB-02, A-EMB-09)."""

    names: tuple[str, ...]
    owned: frozenset[Partition]
    rack: str | None
    generation: int | None


def read_subscription(data: bytes, image: Image) -> Wanted:
    """Raises SchemaError."""
    found = decode_subscription(data)
    topics = topics_by_name(image)
    owned = frozenset((topics[p.topic].topic_id, p.partition) for p in found.owned_partitions if p.topic in topics)
    told = None if found.generation_id == NO_GENERATION else found.generation_id
    return Wanted(tuple(sorted(set(found.topics))), owned, found.rack_id, told)


def in_order(data: bytes) -> bytes:
    """An encoded assignment with its topics and partitions ascending: a coordinator that encodes one takes them from a
    hash map (X-SYNC-06, X-DOWN-04). Bytes that nobody encoded like this stay as they are."""
    try:
        found, version = decode_assignment(data), version_of(data)
        if encode_assignment(found, version) != data:
            return data
        return encode_assignment(replace(found, partitions=tuple(sorted(found.partitions))), version)
    except SchemaError:
        return data


def read_assignment(data: bytes, image: Image) -> tuple[Target, bool]:
    """The partitions of topics that exist, and whether there is user data. Raises SchemaError (X-UP-06)."""
    if not data:
        return (), False
    rows, user_data = decode_topics(data)
    topics = topics_by_name(image)
    of_topic = {topics[name].topic_id: numbers for name, numbers in rows if name in topics}  # the last row of a topic
    found = {(topic_id, number) for topic_id, numbers in of_topic.items() for number in numbers}
    return tuple(sorted(found)), bool(user_data)


def write_assignment(target: Target, metadata: bytes, image: Image) -> bytes:
    """In the version of the member's metadata. Raises SchemaError."""
    topics = by_id(image)
    rows: dict[str, list[int]] = {}
    for topic_id, number in target:
        if topic_id in topics:
            rows.setdefault(topics[topic_id].name, []).append(number)
    return encode_topics(rows.items(), version_of(metadata))
