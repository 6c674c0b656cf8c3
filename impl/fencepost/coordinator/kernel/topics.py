"""The topics that exist, as the broker's metadata tells them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from fencepost.protocol.events import Topic
from fencepost.quirks import HasQuirks, varies

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


@varies
def no_topics(state: HasQuirks) -> TopicImage:
    """What is known before the first image: nothing, and its version counts as 0 (M-RX-04)."""
    return TopicImage()


def image(topics: Iterable[Topic], version: int, created: int) -> TopicImage:
    """The topics that there are, each under its id and its name."""
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
    """Whether there is a topic that was not there before."""
    return any(topic_id not in old.by_id for topic_id in new.by_id)


def changed_names(old: TopicImage, new: TopicImage) -> frozenset[str]:
    """Topics that came, went or changed (M-META-03)."""
    names = old.by_name.keys() | new.by_name.keys()
    return frozenset(name for name in names if old.by_name.get(name) != new.by_name.get(name))
