"""How requests about offsets name their topics: by ids if all are known, else by names (N-CMT-01, G-WIRE-30)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from fencepost.protocol.partitions import TopicPartition
from fencepost.quirks import varies

from .settings import Client
from .turn import Turn


@varies
def ids_of(turn: Turn, partitions: Iterable[TopicPartition]) -> Mapping[bytes, str]:
    """The names by the ids that go out instead of them; empty if names go out. A classic consumer always sends
    names."""
    known = turn.reader.topic_ids
    topics = {each.topic for each in partitions}
    if turn.client is not Client.CONSUMER or not topics <= known.keys():
        return {}
    return {known[name]: name for name in topics}
