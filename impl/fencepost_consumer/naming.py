"""How offset requests identify topics: by id if all ids are known, else by name (N-CMT-01, G-WIRE-30)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from fencepost.protocol.partitions import TopicPartition
from fencepost.quirks import varies
from fencepost_consumer.settings import Client
from fencepost_consumer.turn import Turn


@varies
def ids_of(turn: Turn, partitions: Iterable[TopicPartition]) -> Mapping[bytes, str]:
    """Return topic names by the ids to send; empty if the request sends names. A classic consumer always sends
    names."""
    known = turn.reader.topic_ids
    topics = {each.topic for each in partitions}
    if turn.client is not Client.CONSUMER or not topics <= known.keys():
        return {}
    return {known[name]: name for name in topics}
