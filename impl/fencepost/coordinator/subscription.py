"""Whether Kafka can read the topics from a consumer's metadata (G-DATA-10, A-EMB-06).

Classic groups do without the topics, but Kafka reads them whenever a generation begins and whenever a group is loaded:
as version 0 of the subscription, with a reader that reports *some* broken bytes as an internal error.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

from .errors import InternalError

#: The protocol type whose metadata has a meaning for the broker.
CONSUMER = "consumer"


class _Read(Enum):
    TOPICS = "topics"
    TOO_SHORT = "too short"  #: noticed: the topics count as unknown
    BROKEN = "broken"  #: not foreseen


def read_topics(metadata: Iterable[bytes | None]) -> None:
    """Read as Kafka does, member by member up to the first that has no topics. Raises where Kafka fails."""
    for each in metadata:
        read = _Read.BROKEN if each is None else _read(each)
        if read is _Read.BROKEN:
            raise InternalError
        if read is _Read.TOO_SHORT:
            return


def _read(metadata: bytes) -> _Read:
    """version int16, topics [int16-counted string], user data (nullable bytes)."""
    size = len(metadata)
    if size < 6:
        return _Read.TOO_SHORT
    topics = int.from_bytes(metadata[2:6], signed=True)
    position = 6
    if not 0 <= topics <= size - position:
        return _Read.BROKEN
    for _ in range(topics):
        if size - position < 2:
            return _Read.TOO_SHORT
        length = int.from_bytes(metadata[position : position + 2], signed=True)
        position += 2
        if not 0 <= length <= size - position:
            return _Read.BROKEN
        position += length
    if size - position < 4:
        return _Read.TOO_SHORT
    length = int.from_bytes(metadata[position : position + 4], signed=True)
    return _Read.BROKEN if length > size - position - 4 else _Read.TOPICS
