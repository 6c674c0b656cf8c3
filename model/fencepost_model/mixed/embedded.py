"""Subscriptions and assignments of classic members, with topic ids instead of names (X-UP-05, X-JOIN-10, X-DOWN-04)."""

from __future__ import annotations

from typing import NamedTuple

from .. import embedded
from ..consumer.derive import by_id, topics_by_name
from ..consumer.state import Image, Partition, Target


class Wanted(NamedTuple):
    """The contents of a subscription. ``names`` ascending; ``owned``: of existing topics; ``generation``: None if
    absent (A-EMB-02, A-EMB-09)."""

    names: tuple[str, ...]
    owned: frozenset[Partition]
    rack: str | None
    generation: int | None


def read_subscription(data: bytes, image: Image) -> Wanted:
    """Read a subscription. Raises embedded.BadBytes."""
    found = embedded.read_subscription(data)
    topics = topics_by_name(image)
    owned = {(topics[name].topic_id, each) for name, numbers in found.owned if name in topics for each in numbers}
    return Wanted(tuple(sorted(set(found.topics))), frozenset(owned), found.rack, found.generation)


def in_order(data: bytes) -> bytes:
    """Return an encoded assignment with its topics and partitions ascending: a coordinator that encodes one takes them
    from a hash map (X-SYNC-06, X-DOWN-04). Other bytes stay as they are."""
    try:
        found, user_data = embedded.read_assignment(data)
        version = embedded.version_of(data)
    except embedded.BadBytes:
        return data
    rows: dict[str, list[int]] = {}
    for name, numbers in found:
        if numbers:
            rows.setdefault(name, []).extend(numbers)
    if embedded.write_assignment(rows.items(), version, user_data) != data:
        return data
    ascending = [(name, sorted(numbers)) for name, numbers in sorted(rows.items())]
    return embedded.write_assignment(ascending, version, user_data)


def read_assignment(data: bytes, image: Image) -> tuple[Target, bool]:
    """Return the partitions of existing topics, and whether there is user data. Raises embedded.BadBytes (X-UP-06)."""
    if not data:
        return (), False
    rows, user_data = embedded.read_assignment(data)
    topics = topics_by_name(image)
    # the last row of a topic counts
    of_topic = {topics[name].topic_id: numbers for name, numbers in rows if name in topics}
    found = {(topic_id, number) for topic_id, numbers in of_topic.items() for number in numbers}
    return tuple(sorted(found)), bool(user_data)


def write_assignment(target: Target, metadata: bytes, image: Image) -> bytes:
    """Encode an assignment in the version of the member's metadata. Raises embedded.BadBytes."""
    topics = by_id(image)
    rows: dict[str, list[int]] = {}
    for topic_id, number in target:
        if topic_id in topics:
            rows.setdefault(topics[topic_id].name, []).append(number)
    return embedded.write_assignment(rows.items(), embedded.version_of(metadata))
