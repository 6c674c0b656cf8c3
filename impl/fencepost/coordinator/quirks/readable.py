"""Whether Kafka can read the topics from a consumer's metadata (G-DATA-10, A-EMB-06).

Classic groups do not need the topics, but Kafka reads them whenever a generation begins and whenever a group is loaded:
as version 0 of the subscription, with a reader that reports *some* broken bytes as an internal error.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from fencepost.protocol.choices import Choices

from ..kernel.errors import InternalError


class _Read(Enum):
    TOPICS = "topics"
    TOO_SHORT = "too short"  #: detected: the topics count as unknown
    BROKEN = "broken"  #: not expected by Kafka


def read_topics(choices: Choices, group_id: str, metadata: Mapping[str, bytes | None], *, lengths_throw: bool) -> None:
    """Read as Kafka does, member by member up to the first one without topics; the order is drawn where it matters.
    ``metadata``: by member id, None for a member without the protocol, which raises (C-JOIN-72). ``lengths_throw``:
    an impossible length raises too (G-DATA-10); otherwise it counts as an end that comes too early (V-124). Raises
    where Kafka fails."""
    broken = _Read.BROKEN if lengths_throw else _Read.TOO_SHORT
    reads: dict[str, _Read] = {}
    for member_id, each in metadata.items():
        read = _Read.BROKEN if each is None else _read(each)
        reads[member_id] = broken if read is _Read.BROKEN and each is not None else read
    unread = {member_id: read for member_id, read in reads.items() if read is not _Read.TOPICS}
    ends = set(unread.values())
    if len(ends) > 1:
        first = next(member_id for member_id in choices.order(group_id, sorted(reads)) if member_id in unread)
        ends = {unread[first]}
    if _Read.BROKEN in ends:
        raise InternalError


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
