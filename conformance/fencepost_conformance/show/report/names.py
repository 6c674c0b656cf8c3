"""Short names in a trace: member ids as far as they stay distinct, topics by name, ranges of partitions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Protocol, TypeAlias

from fencepost.member.consumer_protocol import SchemaError, decode_assignment
from fencepost.protocol import consumer_messages as cm
from fencepost.protocol import events as ev
from fencepost.protocol import messages as m
from fencepost.protocol.consumer_records import ConsumerGroupPartitionMetadataValue

from ...traces.observation import Observation

#: (topic name, partition)
Partition: TypeAlias = tuple[str, int]

_UUID = re.compile(r"(.*?-)?([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})", re.DOTALL)
_BASE64_UUID = re.compile(r"[A-Za-z0-9_-]{22}")
_ANY_UUID = re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b")
_LONG_BYTES = re.compile(r"b'(?:[^'\\]|\\.){24,}'")
_KEPT = 4  # digits of a random id that are shown


class TopicRow(Protocol):
    @property
    def topic_id(self) -> bytes: ...
    @property
    def partitions(self) -> tuple[int, ...]: ...


class Names:
    """The names of one trace. ``several``: it has more than one group, so groups must be named each time."""

    def __init__(self, members: Iterable[str], topics: Iterable[tuple[bytes, str]], *, several: bool = False) -> None:
        self.several = several
        self._short = _shortened(members)
        # the longest first, so that no id is replaced inside another
        self._pairs = sorted(self._short.items(), key=lambda pair: -len(pair[0]))
        self._topics: dict[bytes, str] = {}
        for topic_id, name in topics:
            if topic_id not in self._topics:
                again = name in self._topics.values()  # deleted and created again with the old name
                self._topics[topic_id] = f"{name}~{topic_id[-2:].hex()}" if again else name

    def short(self, text: str) -> str:
        """Return the text with member ids shortened."""
        for long, brief in self._pairs:
            text = text.replace(long, brief)
        return text

    def member(self, member_id: str) -> str:
        return self._short.get(member_id, member_id)

    def full(self) -> dict[str, str]:
        """Return the full form of each short name."""
        return {brief: long for long, brief in self._short.items()}

    def topic(self, topic_id: bytes) -> str:
        """Return the topic's name, or the end of its id if the trace does not contain the name."""
        return self._topics.get(topic_id) or f"id…{topic_id[-2:].hex()}"

    def of_rows(self, rows: Iterable[TopicRow]) -> tuple[Partition, ...]:
        """Return the partitions of rows by topic id, sorted by name."""
        return tuple(sorted((self.topic(row.topic_id), number) for row in rows for number in row.partitions))

    def rows(self, rows: Iterable[TopicRow]) -> str:
        return compact(self.of_rows(rows))


def learn(events: Sequence[ev.Event], observations: Sequence[Observation | None]) -> Names:
    """Collect the names in a trace of events."""
    members: dict[str, None] = {}
    groups: set[str] = set()
    topics: list[tuple[bytes, str]] = []
    for event in events:
        if isinstance(event, ev.TopicsChanged):
            topics += [(topic.topic_id, topic.name) for topic in event.topics]
        elif isinstance(event, ev.Load):
            for record in event.records:
                if isinstance(record.value, ConsumerGroupPartitionMetadataValue):
                    topics += [(topic.topic_id, topic.topic_name) for topic in record.value.topics]
    for seen in observations:
        if seen is None:
            continue
        groups |= {*seen.groups, *seen.consumer_groups}
        for view in (*seen.groups.values(), *seen.consumer_groups.values()):
            members.update((row.member_id, None) for row in (view.members if view else ()))
        for reply in seen.replies:
            members.update((name, None) for name in member_ids(reply.body))
            topics += topics_in(reply.body)
    return Names(members, topics, several=len(groups) > 1)


def member_ids(body: m.RequestBody | m.ResponseBody) -> Iterable[str]:
    """Yield the member ids that an answer hands out or lists, and the one in a request."""
    if isinstance(body, m.DescribeGroupsResponse):
        return [row.member_id for group in body.groups for row in group.members]
    if isinstance(body, cm.ConsumerGroupDescribeResponse):
        return [row.member_id for group in body.groups for row in group.members]
    member = getattr(body, "member_id", None)
    return [member] if member else []


def topics_in(body: m.ResponseBody) -> list[tuple[bytes, str]]:
    """Return topic ids and names in an answer."""
    if not isinstance(body, cm.ConsumerGroupDescribeResponse):
        return []
    return [
        (row.topic_id, row.topic_name)
        for group in body.groups
        for member in group.members
        for row in (*member.assignment, *member.target_assignment)
    ]


def compact(partitions: Iterable[Partition]) -> str:
    """Return ``t:0-2,5 u:1`` for sorted partitions; ``nothing`` for none."""
    parts = []
    for topic, group in groupby(sorted(partitions), key=lambda each: each[0]):
        numbers = [number for _, number in group]
        runs = [
            [number for _, number in run]
            for _, run in groupby(enumerate(numbers), key=lambda pair: pair[1] - pair[0])
        ]  # fmt: skip
        parts.append(f"{topic}:{','.join(str(run[0]) if len(run) == 1 else f'{run[0]}-{run[-1]}' for run in runs)}")
    return " ".join(parts) or "nothing"


def decoded(assignment: bytes) -> tuple[Partition, ...] | None:
    """Return the partitions of a classic assignment; None if the bytes are something else (A-EMB-05)."""
    if not assignment:
        return ()
    try:
        return tuple(sorted((each.topic, each.partition) for each in decode_assignment(assignment).partitions))
    except SchemaError:
        return None


def assignment_words(assignment: bytes) -> str:
    """Return a classic assignment in words: its partitions, or its text, or its length."""
    partitions = decoded(assignment)
    if partitions is not None:
        return compact(partitions)
    text = assignment.decode("ascii", "replace")
    return repr(text) if text.isprintable() and "�" not in text else f"{len(assignment)} B"


def short_ids(text: str) -> str:
    """Return the text with the first digits of each random id, and long byte strings as their length."""
    text = _ANY_UUID.sub(lambda found: f"{found[0][:_KEPT]}…", text)
    return _LONG_BYTES.sub(lambda found: f"{len(found[0]) - 3} characters of bytes", text)


def _shortened(members: Iterable[str]) -> Mapping[str, str]:
    found: dict[str, str] = {}
    taken: set[str] = set()
    for member_id in dict.fromkeys(members):
        match = _UUID.fullmatch(member_id)
        if match:
            brief = f"{match[1] or ''}{match[2][:_KEPT]}"
        elif _BASE64_UUID.fullmatch(member_id):
            brief = member_id[:_KEPT]
        else:
            continue
        if brief not in taken:
            taken.add(brief)
            found[member_id] = brief
    return found
