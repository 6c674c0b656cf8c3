"""The topics of a node."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final
from uuid import uuid4

from kio.schema.errors import ErrorCode as Code

from fencepost.protocol.events import Topic as TopicImage
from fencepost_server.data.partition import PartitionLog
from fencepost_server.data.producers import Refused

_LEGAL: Final = re.compile(r"[a-zA-Z0-9._-]{1,249}")
#: The limit of a topic's partitions, since each one uses memory from the start.
MOST_PARTITIONS: Final = 10_000
#: Kafka's internal topics, which clients must not create.
INTERNAL: Final = ("__consumer_offsets", "__transaction_state", "__share_group_state", "__cluster_metadata")


def name_fault(name: str) -> str:
    """Return what is wrong with a topic name; empty if it is valid."""
    if name in (".", ".."):
        return f"a topic name must not be '.' or '..' (got {name!r})"
    if not name:
        return "a topic name must not be empty"
    if len(name) > 249:
        return f"a topic name must have at most 249 characters (got {len(name)})"
    if not _LEGAL.fullmatch(name):
        return f"a topic name must consist of ASCII letters, digits, '.', '_' and '-' (got {name!r})"
    return ""


@dataclass(slots=True, eq=False)
class Topic:
    """A topic with its partitions. ``topic_id``: 16 bytes."""

    name: str
    topic_id: bytes
    logs: list[PartitionLog]
    config: dict[str, str]


class Topics:
    """Topics by name and by id. ``changed`` is called with all topics after every change; ``log`` creates the log of a
    partition from its topic id and its number."""

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
        """Raise ``Refused`` if no topic of this name can be created."""
        if fault := name_fault(name):
            raise Refused(Code.invalid_topic_exception, fault)
        if name in INTERNAL:
            raise Refused(Code.invalid_topic_exception, f"{name} is reserved for Kafka's internal topic")
        if name in self.by_name:
            raise Refused(Code.topic_already_exists, f"Topic '{name}' already exists.")

    def check(self, name: str, partitions: int) -> None:
        """Raise ``Refused`` if a topic cannot be created with this name and number of partitions."""
        self.check_name(name)
        if not 0 < partitions <= MOST_PARTITIONS:
            words = f"a topic must have 1 to {MOST_PARTITIONS} partitions (got {partitions})"
            raise Refused(Code.invalid_partitions, words)

    def create(
        self, name: str, partitions: int, config: Mapping[str, str] | None = None, topic_id: bytes | None = None
    ) -> Topic:
        """Create a topic, with a random id if none is given. Raises ``Refused``."""
        self.check(name, partitions)
        made = topic_id or uuid4().bytes
        topic = Topic(name, made, [self._log(made, index) for index in range(partitions)], dict(config or {}))
        self.by_name[name] = self.by_id[topic.topic_id] = topic
        self.publish_image()
        return topic

    def delete(self, topic: Topic) -> None:
        """Delete a topic with its data. Waiting readers look again."""
        del self.by_name[topic.name], self.by_id[topic.topic_id]
        for log in topic.logs:
            log.deleted = True
            log.notify_watchers()
        self.publish_image()

    @staticmethod
    def check_growth(topic: Topic, partitions: int) -> None:
        """Raise ``Refused`` if a topic cannot grow to this number of partitions."""
        if partitions <= len(topic.logs):
            raise Refused(
                Code.invalid_partitions,
                f"The topic {topic.name} currently has {len(topic.logs)} partition(s); {partitions} would not be an "
                "increase.",
            )
        if partitions > MOST_PARTITIONS:
            words = f"a topic must have at most {MOST_PARTITIONS} partitions (got {partitions})"
            raise Refused(Code.invalid_partitions, words)

    def grow(self, topic: Topic, partitions: int) -> None:
        """Add partitions, up to ``partitions`` in all. Raises ``Refused``."""
        self.check_growth(topic, partitions)
        topic.logs += [self._log(topic.topic_id, index) for index in range(len(topic.logs), partitions)]
        self.publish_image()

    def partition(self, name: str, index: int) -> PartitionLog | None:
        """Return the log of a partition; None if the partition does not exist."""
        topic = self.by_name.get(name)
        return topic.logs[index] if topic is not None and 0 <= index < len(topic.logs) else None

    def publish_image(self) -> None:
        """Call ``changed`` with all topics."""
        self.changed(TopicImage(each.name, each.topic_id, len(each.logs)) for each in self.by_name.values())
