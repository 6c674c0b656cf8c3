"""What Kafka releases do differently with offsets (the table in ``switches``)."""

from __future__ import annotations

from collections.abc import Callable

from fencepost.protocol.events import Topic

from .state import Place, Stored


def has_partition(otherwise: Callable[[Topic, Place, Stored], bool], topic: Topic, place: Place, entry: Stored) -> bool:
    """Return whether the topic has the partition, whatever topic id the offset has (V-57)."""
    return place.partition < topic.partitions
