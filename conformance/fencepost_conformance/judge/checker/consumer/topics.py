"""The topics that clients created, grew or deleted through the recorder.

Topics that existed before are unknown, and the checker claims nothing about them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import UUID

from fencepost.member.consumer_protocol import decode_assignment
from fencepost.protocol.errors import ErrorCode

from ....traces.files import WireTrace
from ....traces.lines import ReceivedLine, SentLine
from ..history import NEVER

CREATE_TOPICS: Final = 19
DELETE_TOPICS: Final = 20
CREATE_PARTITIONS: Final = 37
#: Regexes that mean the same to RE2 and to Python.
_SIMPLE: Final = re.compile(r"[\w^$.*+\[\]-]*")
_APIS: Final = frozenset({CREATE_TOPICS, DELETE_TOPICS, CREATE_PARTITIONS})


@dataclass(frozen=True, slots=True)
class TopicEvent:
    """A request about topics (``answer`` None) or its answer; ``line`` as everywhere in the checker."""

    line: int
    at_ms: int
    names: tuple[str, ...]
    answer: Mapping[str, Any] | None
    api_key: int
    counts: Mapping[str, int]


def topic_events(trace: WireTrace) -> list[TopicEvent]:
    found: list[TopicEvent] = []
    asked: dict[tuple[int, int], TopicEvent] = {}
    for number, line in enumerate(trace.lines, 1):
        if not isinstance(line, SentLine | ReceivedLine) or line.api_key not in _APIS:
            continue
        key = line.connection, line.correlation_id
        if isinstance(line, SentLine):
            rows: Any = line.body.get("topics") or ()
            counts = {row["name"]: row.get("num_partitions", row.get("count", -1)) for row in rows if row.get("name")}
            event = asked[key] = TopicEvent(number, line.at_ms, tuple(counts), None, line.api_key, counts)
            found.append(event)
        elif key in asked:
            before = asked.pop(key)
            found.append(TopicEvent(number, line.at_ms, before.names, line.body, line.api_key, before.counts))
    return found


def topic_names(events: Iterable[TopicEvent]) -> dict[bytes, str]:
    """The names of the topics that were made, by their ids."""
    topics = Topics()
    for event in events:
        topics.take(event)
    return topics.names


@dataclass(slots=True)
class Topics:
    """What is known so far. ``counts``: the most partitions that a topic can have by now. ``gone``: ids of deleted
    topics. ``deleting``: DeleteTopics requests that are open, or that timed out in the broker."""

    ids: dict[str, bytes] = field(default_factory=dict)
    names: dict[bytes, str] = field(default_factory=dict)
    counts: dict[bytes, int] = field(default_factory=dict)
    wanted: dict[str, int] = field(default_factory=dict)  #: the most partitions that a request has asked for, by topic
    gone: set[bytes] = field(default_factory=set)
    deleting: int = 0
    deleted_ms: int = -NEVER  #: the last DeleteTopics, or answer to one
    grown_ms: int = -NEVER  #: when a topic was last created or grown
    odd_assignment: bool = False  #: a leader may have assigned a partition that its topic does not have

    def assigned(self, content: bytes) -> None:
        """Note the assignment of a leader, and whether the topics have all its partitions."""
        try:
            rows = decode_assignment(content).partitions
        except ValueError:
            return
        for row in rows:
            topic = self.ids.get(row.topic)
            if topic is None or not 0 <= row.partition < self.counts[topic]:
                self.odd_assignment = True

    def may_lack(self, sent_ms: int, slack_ms: int) -> bool:
        """Whether the coordinator may not know a partition that a classic leader has assigned.

        It learns of new topics and partitions a little later than the client that created them.
        """
        deleted = self.deleting > 0 or self.deleted_ms > -NEVER  # the target keeps what a leader has assigned
        return deleted or self.odd_assignment or sent_ms <= self.grown_ms + slack_ms

    def unsettled(self, at_ms: int, settle_ms: int) -> bool:
        """Whether groups may not know of a deletion yet; they learn of it within this time."""
        return self.deleting > 0 or at_ms <= self.deleted_ms + settle_ms

    def take(self, event: TopicEvent) -> None:
        if event.api_key != DELETE_TOPICS:
            self.grown_ms = max(self.grown_ms, event.at_ms)
        if event.api_key == DELETE_TOPICS:
            self._delete(event)
        elif event.answer is None:
            for name, count in event.counts.items():
                if event.api_key == CREATE_PARTITIONS:
                    self.wanted[name] = max(count, self.wanted.get(name, count))
                if name in self.ids:
                    topic = self.ids[name]
                    self.counts[topic] = max(self.counts[topic], count)
        elif event.api_key == CREATE_TOPICS:
            for row in event.answer.get("topics", ()):
                if row.get("error_code") == 0 and row.get("topic_id"):
                    topic = UUID(row["topic_id"]).bytes
                    self.ids[row["name"]] = topic
                    self.names[topic] = row["name"]
                    self.counts[topic] = max(event.counts[row["name"]], self.wanted.get(row["name"], 0))

    def _delete(self, event: TopicEvent) -> None:
        self.deleted_ms = event.at_ms
        if event.answer is None:
            self.deleting += 1
            return
        rows: Any = event.answer.get("responses")
        if rows is None:  # it could not be decoded
            return
        for row in rows:
            if row.get("error_code") != 0:
                continue
            topic_id = row.get("topic_id")
            topic = UUID(topic_id).bytes if topic_id else self.ids.get(row.get("name") or "")
            if topic is not None:
                self.gone.add(topic)
                self.counts.pop(topic, None)
                name = self.names.pop(topic, "")
                self.wanted.pop(name, None)
                if self.ids.get(name) == topic:
                    del self.ids[name]
        if not any(row.get("error_code") == ErrorCode.REQUEST_TIMED_OUT for row in rows):
            self.deleting -= 1

    def foreign(self, topic: bytes, names: frozenset[str], regex: str | None) -> bool:
        """Whether a member with this subscription certainly does not subscribe to this topic.

        The broker reads a regex as RE2 (M-RX-01). If Python might read it differently, the answer is False.
        """
        name = self.names.get(topic)
        if name is None:  # older than the trace: foreign if the trace shows the creation of all subscribed topics
            return not regex and names <= self.ids.keys()
        if name in names or not regex:
            return name not in names
        if not _SIMPLE.fullmatch(regex):
            return False
        try:
            return re.fullmatch(regex, name) is None
        except re.error:
            return False
