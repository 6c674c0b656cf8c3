"""The topics that exist, according to the metadata of the broker, and the hash of some of them.

A consumer group keeps one number for all topics that it subscribes to (M-META-07): XXH3 over the hashes of the topics,
each of which is XXH3 over the bytes that Kafka uses: integers little-endian, strings as their UTF-16 units,
little-endian, followed by their number.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import NamedTuple

from fencepost.protocol.events import Topic
from fencepost.protocol.partitions import java_order

_NO_RACK: frozenset[str] = frozenset()
#: The first byte of the bytes that are hashed for a topic.
_MAGIC = b"\0"


class TopicImage(NamedTuple):
    """All topics. ``version`` is the version of the image; ``created`` is the version of the last image with a new
    topic that the loaded coordinator has seen (M-RX-03). The version before the first image is in ``Rules``."""

    by_name: Mapping[str, Topic] = {}
    by_id: Mapping[bytes, Topic] = {}
    version: int = 0
    created: int = 0

    def ids(self, names: Iterable[str]) -> frozenset[bytes]:
        """The ids of those topics that exist (M-META-05)."""
        known = self.by_name
        return frozenset(known[name].topic_id for name in names if name in known)


def image(topics: Iterable[Topic], version: int, created: int) -> TopicImage:
    """The image of these topics, by id and by name."""
    rows = [_whole(topic) for topic in topics]
    by_name = {topic.name: topic for topic in rows}
    return TopicImage(by_name, {topic.topic_id: topic for topic in rows}, version, created)


def _whole(topic: Topic) -> Topic:
    """The topic with as many rows of racks as it has partitions."""
    missing = topic.partitions - len(topic.racks)
    if missing == 0:
        return topic
    return Topic(topic.name, topic.topic_id, topic.partitions, topic.racks + (_NO_RACK,) * missing)


def has_new(old: TopicImage, new: TopicImage) -> bool:
    """Whether the new image has a topic that the old one did not have."""
    return any(topic_id not in old.by_id for topic_id in new.by_id)


def changed_names(old: TopicImage, new: TopicImage) -> frozenset[str]:
    """The topics that were added, removed or changed (M-META-03)."""
    names = old.by_name.keys() | new.by_name.keys()
    return frozenset(name for name in names if old.by_name.get(name) != new.by_name.get(name))


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
