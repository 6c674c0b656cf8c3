"""The topics that exist, and what a group remembers of those it subscribes to (M-META-*).

A group keeps one number for all of them (M-META-07): XXH3 over the hashes of its topics, which are XXH3 over the bytes
that Kafka feeds it: integers little-endian, texts as their UTF-16 units, little-endian, with their number behind. A
release before 4.1 keeps the topics' ids and partition counts themselves (V-34).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import NamedTuple

from fencepost.protocol.consumer_records import TopicMetadata
from fencepost.protocol.events import Topic
from fencepost.protocol.partitions import java_order
from fencepost.protocol.settings import Profile

_MAGIC = b"\0"
_NO_RACK: frozenset[str] = frozenset()


class TopicImage(NamedTuple):
    """All topics; ``version`` is that of the image, ``created`` that of the last one with a new topic that the loaded
    coordinator has seen (M-RX-03). Before the first image see ``no_topics``."""

    by_name: Mapping[str, Topic] = {}
    by_id: Mapping[bytes, Topic] = {}
    version: int = 0
    created: int = 0

    def ids(self, names: Iterable[str]) -> frozenset[bytes]:
        """Of the topics that exist (M-META-05)."""
        known = self.by_name
        return frozenset(known[name].topic_id for name in names if name in known)


def no_topics(profile: Profile) -> TopicImage:
    """What is known before the first image: nothing, and its version counts as 0 (M-RX-04)."""
    version = -1 if profile.old_no_image_is_minus_one else 0
    return TopicImage(version=version, created=version)


def image(topics: Iterable[Topic], version: int, created: int) -> TopicImage:
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
    return any(topic_id not in old.by_id for topic_id in new.by_id)


def changed_names(old: TopicImage, new: TopicImage) -> frozenset[str]:
    """Topics that came, went or changed (M-META-03)."""
    names = old.by_name.keys() | new.by_name.keys()
    return frozenset(name for name in names if old.by_name.get(name) != new.by_name.get(name))


def metadata_hash(hash64: Callable[[bytes], int], topics: TopicImage, names: Iterable[str]) -> int:
    """M-META-07, over those of the names that exist; 0 if none does."""
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


def metadata_rows(topics: TopicImage, names: Iterable[str]) -> tuple[TopicMetadata, ...]:
    """G-DATA-23: what 4.0 keeps instead of the hash."""
    known = topics.by_name
    return tuple(
        TopicMetadata(known[name].topic_id, name, known[name].partitions) for name in sorted(names) if name in known
    )
