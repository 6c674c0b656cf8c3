"""The topics that there are."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final
from uuid import uuid4

from kio.schema.errors import ErrorCode as Code

from fencepost.protocol.events import Topic as TopicImage

from .partition import PartitionLog
from .producers import Refused

_LEGAL: Final = re.compile(r"[a-zA-Z0-9._-]{1,249}")
#: More are not made at once: each costs memory from the beginning.
MOST_PARTITIONS: Final = 10_000
#: Kafka's own topics, which nobody may make.
INTERNAL: Final = ("__consumer_offsets", "__transaction_state", "__share_group_state", "__cluster_metadata")


def name_fault(name: str) -> str:
    """What is wrong with a topic's name; empty if nothing is."""
    if name in (".", ".."):
        return f"a topic cannot be called {name!r}"
    if not name:
        return "a topic's name cannot be empty"
    if len(name) > 249:
        return f"a topic's name has at most 249 characters, not {len(name)}"
    if not _LEGAL.fullmatch(name):
        return f"{name!r} has characters other than ASCII letters and digits, '.', '_' and '-'"
    return ""


@dataclass(slots=True, eq=False)
class Topic:
    """A topic with its partitions. ``topic_id``: 16 bytes."""

    name: str
    topic_id: bytes
    logs: list[PartitionLog]
    config: dict[str, str]


class Topics:
    """Topics by name and by id. ``changed`` is called with the image of all after every change; ``log`` makes the log
    of a partition, by the id of its topic."""

    def __init__(
        self,
        changed: Callable[[Iterable[TopicImage]], None] = lambda _: None,
        log: Callable[[bytes, int], PartitionLog] = lambda _, index: PartitionLog(index),
    ) -> None:
        self.by_name: dict[str, Topic] = {}
        self.by_id: dict[bytes, Topic] = {}
        self.changed = changed
        self._log = log

    def __iter__(self) -> Iterator[Topic]:
        return iter(list(self.by_name.values()))

    def check_name(self, name: str) -> None:
        """Whether a topic of that name could be made. Raises ``Refused``."""
        if fault := name_fault(name):
            raise Refused(Code.invalid_topic_exception, fault)
        if name in INTERNAL:
            raise Refused(Code.invalid_topic_exception, f"{name} is one of Kafka's own topics")
        if name in self.by_name:
            raise Refused(Code.topic_already_exists, f"Topic '{name}' already exists.")

    def check(self, name: str, partitions: int) -> None:
        """Whether such a topic could be made. Raises ``Refused``."""
        self.check_name(name)
        if not 0 < partitions <= MOST_PARTITIONS:
            raise Refused(Code.invalid_partitions, f"a topic has 1 to {MOST_PARTITIONS} partitions, not {partitions}")

    def create(
        self, name: str, partitions: int, config: Mapping[str, str] | None = None, topic_id: bytes | None = None
    ) -> Topic:
        """A new topic. Raises ``Refused``."""
        self.check(name, partitions)
        made = topic_id or uuid4().bytes
        topic = Topic(name, made, [self._log(made, index) for index in range(partitions)], dict(config or {}))
        self.by_name[name] = self.by_id[topic.topic_id] = topic
        self.tell()
        return topic

    def delete(self, topic: Topic) -> None:
        """The topic goes, with all that is in it; who waits for more of it is told."""
        del self.by_name[topic.name], self.by_id[topic.topic_id]
        for log in topic.logs:
            log.deleted = True
            log.tell()
        self.tell()

    @staticmethod
    def check_growth(topic: Topic, partitions: int) -> None:
        """Whether a topic can have so many partitions from now on. Raises ``Refused``."""
        if partitions <= len(topic.logs):
            raise Refused(
                Code.invalid_partitions,
                f"The topic {topic.name} currently has {len(topic.logs)} partition(s); {partitions} would not be an "
                "increase.",
            )
        if partitions > MOST_PARTITIONS:
            raise Refused(Code.invalid_partitions, f"a topic has at most {MOST_PARTITIONS} partitions")

    def grow(self, topic: Topic, partitions: int) -> None:
        """Further partitions. Raises ``Refused``."""
        self.check_growth(topic, partitions)
        topic.logs += [self._log(topic.topic_id, index) for index in range(len(topic.logs), partitions)]
        self.tell()

    def partition(self, name: str, index: int) -> PartitionLog | None:
        """The log of a partition, if there is one."""
        topic = self.by_name.get(name)
        return topic.logs[index] if topic is not None and 0 <= index < len(topic.logs) else None

    def tell(self) -> None:
        """Hand out the image of all topics."""
        self.changed(TopicImage(each.name, each.topic_id, len(each.logs)) for each in self.by_name.values())
