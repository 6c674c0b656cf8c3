"""Names and ids of topics. A topic that was deleted and created again has the same name and another id.

Commits and fetches of version 10 name topics by id, older ones by name. Answers to CreateTopics and DeleteTopics show
both, and so do lines of type ``names``, which the recorder writes for other answers. If no line shows it, an id and a
name may belong to the same topic or not.
"""

from __future__ import annotations

import base64
import binascii
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import UUID

from fencepost.protocol.consumer_messages import JOIN_EPOCH

from ....traces.files import WireTrace
from ....traces.lines import NamesLine, ReceivedLine, SentLine

_FETCH: Final = 1
_CREATE_TOPICS: Final = 19
_DELETE_TOPICS: Final = 20
_JOIN_GROUP: Final = 11
_CONSUMER_GROUP_HEARTBEAT: Final = 68
_NO_TOPIC: Final = str(UUID(int=0))

#: A topic by its name or, if the trace does not show the name, by id; and a partition of it.
Place = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Names:
    """The names and ids that a trace shows. ``names``: names of topics by their ids. ``created``: topics that were
    created in the trace, with the line of the request. ``deleted``: topics in a DeleteTopics request."""

    names: Mapping[str, str]
    created: Mapping[str, int]
    deleted: frozenset[str]
    _ids: Counter[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_ids", Counter(self.names.values()))

    def place(self, topic: Mapping[str, Any], number: int) -> Place:
        """A partition of the topic in a row of a request or an answer."""
        return self.topic(topic), number

    def topic(self, topic: Mapping[str, Any]) -> str:
        """The topic in a row of a request or an answer."""
        topic_id = str(topic.get("topic_id") or "")
        if not topic_id or topic_id == _NO_TOPIC:
            return str(topic.get("name") or "")
        return self.names.get(topic_id, topic_id)

    def several_ids(self, name: str) -> bool:
        """Whether the topic has had several ids, or may have."""
        return name in self.deleted or self._ids[name] > 1

    def may_be_one(self, place: Place, other: Place) -> bool:
        """Whether these are, or may be, the same partition."""
        if place == other:
            return True
        if place[1] != other[1]:
            return False
        return (self._nameless(place[0]) and self._idless(other[0])) or (
            self._idless(place[0]) and self._nameless(other[0])
        )

    def _nameless(self, topic: str) -> bool:
        """Whether this is an id whose name the trace does not show."""
        try:
            return str(UUID(topic)) == topic
        except ValueError:
            return False

    def _idless(self, topic: str) -> bool:
        """Whether this is a name that may have had an id that the trace does not show."""
        if self._nameless(topic):
            return False
        return topic in self.deleted or not self._ids[topic]


def names_of(trace: WireTrace) -> Names:
    """The names and ids in the lines of a trace."""
    names: dict[str, str] = {}
    created: dict[str, int] = {}
    deleted: set[str] = set()
    asked: dict[tuple[int, int], tuple[int, Mapping[str, Any]]] = {}  #: requests with their lines
    named: Counter[tuple[str, str]] = Counter()  #: how many lines name a member, by group and member id
    concluded: dict[str, str] = {}
    for number, line in enumerate(trace.lines, 1):
        if isinstance(line, NamesLine):
            names.update(line.names)
        elif isinstance(line, SentLine) and "undecoded" not in line.body:
            asked[line.connection, line.correlation_id] = number, line.body
            if line.api_key in (_JOIN_GROUP, _CONSUMER_GROUP_HEARTBEAT):
                named[_member(line.body, line.body)] += 1
            if line.api_key == _FETCH:  # the recorder writes the name next to the id if it knows it
                names.update(_both(_rows(line.body, "topics")))
            elif line.api_key == _DELETE_TOPICS:
                deleted |= {str(row["name"]) for row in _rows(line.body, "topics") if row.get("name")}
                deleted |= set(line.body.get("topic_names") or ())  # type: ignore[arg-type]
        elif isinstance(line, ReceivedLine) and "undecoded" not in line.body:
            begin, request = asked.pop((line.connection, line.correlation_id), (0, {}))
            if line.api_key == _CREATE_TOPICS:
                done = [row for row in _rows(line.body, "topics") if not row.get("error_code")]
                names.update(_both(done))
                created.update({str(row["name"]): begin for row in done})
            elif line.api_key == _DELETE_TOPICS:
                ids = _both(_rows(line.body, "responses"))
                names.update(ids)
                deleted |= set(ids.values())
            elif line.api_key == _JOIN_GROUP:
                named[_member(request, line.body)] += 1
            # a member that may be in the group already may have a regex, which a join without one keeps (M-HB-01)
            elif line.api_key == _CONSUMER_GROUP_HEARTBEAT and (
                not request.get("member_id") or named[_member(request, request)] == 1
            ):
                concluded.update(_subscribed(request, line.body))
    return Names({**concluded, **names}, created, frozenset(deleted))


def _member(ask: Mapping[str, Any], named: Mapping[str, Any]) -> tuple[str, str]:
    """The group of a request, and the member that its body, or that of its answer, names."""
    return str(ask.get("group_id") or ""), str(named.get("member_id") or "")


def _rows(body: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    rows = body.get(name)
    return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []


def _both(rows: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Names by ids, from the rows that contain both."""
    pairs = ((str(row.get("topic_id") or _NO_TOPIC), str(row.get("name") or "")) for row in rows)
    return {topic_id: name for topic_id, name in pairs if topic_id != _NO_TOPIC and name}


def _subscribed(ask: Mapping[str, Any], answer: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The name of a topic id, as the join of a new member shows it.

    If the member subscribes to one topic and gets partitions of one, they are of that topic (A-PROP-03).
    """
    subscribed: Any = ask.get("subscribed_topic_names") or ()
    given: Any = answer.get("assignment") or ()
    joins = (
        ask.get("member_epoch") == JOIN_EPOCH and not ask.get("subscribed_topic_regex") and not ask.get("instance_id")
    )
    if joins and len(subscribed) == 1 and len(given) == 1:
        text = str(given[0]["topic_id"])
        try:
            decoded = base64.urlsafe_b64decode(text.replace("+", "-").replace("/", "_") + "=" * (-len(text) % 4))
            yield str(UUID(bytes=decoded)), str(subscribed[0])
        except (binascii.Error, ValueError):
            return
