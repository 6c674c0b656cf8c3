"""The hash of the topics that a group subscribes to (M-META-*).

A group keeps one number for all its topics (M-META-07): XXH3 over the hashes of the topics, each of which is XXH3 over
the bytes that Kafka uses: integers little-endian, strings as their UTF-16 units, little-endian, followed by their
number.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from functools import lru_cache

from fencepost.protocol.events import Topic
from fencepost.protocol.partitions import java_order

from ..kernel.topics import TopicImage

_MAGIC = b"\0"


def metadata_hash(hash64: Callable[[bytes], int], topics: TopicImage, names: Iterable[str]) -> int:
    """The hash of the topics that a group subscribes to (M-META-07), over those names that exist; 0 if none does."""
    known = topics.by_name
    hashes = [_topic_hash(hash64, known[name]) for name in sorted(names, key=java_order) if name in known]
    return hash64(b"".join(struct.pack("<q", value) for value in hashes)) if hashes else 0


@lru_cache(maxsize=4_096)
def _topic_hash(hash64: Callable[[bytes], int], topic: Topic) -> int:
    parts = [_MAGIC, topic.topic_id[7::-1], topic.topic_id[:7:-1], _text(topic.name), _int(topic.partitions)]
    for number, racks in enumerate(topic.racks):
        parts.append(_int(number))
        for rack in sorted(racks, key=java_order):
            parts += (_int(len(_units(rack)) // 2), _text(rack))
    return hash64(b"".join(parts))


def _int(value: int) -> bytes:
    return struct.pack("<i", value)


def _units(text: str) -> bytes:
    return text.encode("utf-16-le", "surrogatepass")


def _text(text: str) -> bytes:
    units = _units(text)
    return units + _int(len(units) // 2)
