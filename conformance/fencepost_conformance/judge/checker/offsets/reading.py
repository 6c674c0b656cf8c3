"""Read the requests of a wire trace about offsets with their answers, in the form in which the recorder writes them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from fencepost.protocol.errors import ErrorCode as E

from ....traces.files import WireTrace
from ....traces.lines import DisconnectedLine, ReceivedLine, SentLine
from .places import Names, Place
from .register import NEVER, NOTHING, Value

OFFSET_COMMIT: Final = 8
OFFSET_FETCH: Final = 9
CREATE_TOPICS: Final = 19
DELETE_TOPICS: Final = 20
INIT_PRODUCER_ID: Final = 22
ADD_OFFSETS_TO_TXN: Final = 25
END_TXN: Final = 26
TXN_OFFSET_COMMIT: Final = 28
DELETE_GROUPS: Final = 42
OFFSET_DELETE: Final = 47
_JOIN_GROUP, _CONSUMER_HEARTBEAT = 11, 68
OF_OFFSETS: Final = frozenset(
    {
        OFFSET_COMMIT,
        OFFSET_FETCH,
        CREATE_TOPICS,
        DELETE_TOPICS,
        INIT_PRODUCER_ID,
        ADD_OFFSETS_TO_TXN,
        END_TXN,
        TXN_OFFSET_COMMIT,
        DELETE_GROUPS,
        OFFSET_DELETE,
    }
)
#: The first version in which OffsetFetch asks for several groups.
_MANY_GROUPS: Final = 8


@dataclass(slots=True, eq=False)
class Exchange:
    """One request and its answer. ``begin`` and ``end`` are lines; ``end`` is ``NEVER`` and ``answer`` empty if the
    trace has no answer. ``over_ms``: when its answer arrived, or its connection closed; ``NEVER`` if neither did."""

    api: int
    version: int
    begin: int
    begin_ms: int
    ask: Mapping[str, Any]
    end: int = NEVER
    end_ms: int = NEVER
    over_ms: int = NEVER
    answer: Mapping[str, Any] | None = None


def exchanges(trace: WireTrace) -> list[Exchange]:
    """All exchanges about offsets, in the order of the requests. An answer that was not decoded counts as missing."""
    found: list[Exchange] = []
    asked: dict[tuple[int, int], Exchange] = {}
    for number, line in enumerate(trace.lines, 1):
        if isinstance(line, DisconnectedLine):
            for each in [asked.pop(key) for key in list(asked) if key[0] == line.connection]:
                each.over_ms = line.at_ms
        if not isinstance(line, SentLine | ReceivedLine) or line.api_key not in OF_OFFSETS:
            continue
        key = line.connection, line.correlation_id
        if isinstance(line, SentLine):
            if "undecoded" not in line.body:
                asked[key] = Exchange(line.api_key, line.api_version, number, line.at_ms, line.body)
                found.append(asked[key])
        elif key in asked:
            each = asked.pop(key)
            each.over_ms = line.at_ms
            if "undecoded" not in line.body:
                each.end, each.end_ms, each.answer = number, line.at_ms, line.body
    return found


@dataclass(frozen=True, slots=True)
class Committed:
    """One partition of a commit, plain or in a transaction; ``topic_id`` None: the commit names the topic."""

    place: Place
    topic_id: str | None
    value: Value


def committed(each: Exchange, names: Names) -> Iterator[Committed]:
    """The partitions of a commit, plain or in a transaction."""
    for topic in each.ask.get("topics") or ():
        for row in topic.get("partitions") or ():
            epoch = row.get("committed_leader_epoch", -1)
            value = Value(row["committed_offset"], epoch, row.get("committed_metadata") or "")
            yield Committed(names.place(topic, row["partition_index"]), topic.get("topic_id") or None, value)


def codes(each: Exchange, names: Names) -> dict[Place, int]:
    """The error code of each partition of an answer to a commit or a deletion."""
    rows = (each.answer or {}).get("topics") or ()
    return {
        names.place(topic, row["partition_index"]): row["error_code"]
        for topic in rows
        for row in topic.get("partitions") or ()
    }


def missing(trace: WireTrace) -> dict[str, list[tuple[int, int]]]:
    """By group, the lines between which Kafka may not have the group although offsets are committed for it.

    A JoinGroup with a member id to an empty consumer group removes the group, and is answered UNKNOWN_MEMBER_ID
    (C-JOIN-15). The first join or heartbeat that succeeds after it creates the group again; a leave does not.
    """
    consumers: set[str] = set()
    asked: dict[tuple[int, int], tuple[int, str, bool]] = {}
    # by group, the line of each such JoinGroup, and that of its answer
    begun: dict[str, dict[int, int]] = {}
    found: dict[str, list[tuple[int, int]]] = {}
    for number, line in enumerate(trace.lines, 1):
        if not isinstance(line, SentLine | ReceivedLine) or line.api_key not in (_JOIN_GROUP, _CONSUMER_HEARTBEAT):
            continue
        key = line.connection, line.correlation_id
        if isinstance(line, SentLine):
            group_id = line.body.get("group_id")
            if not isinstance(group_id, str):
                continue
            epoch = line.body.get("member_epoch", 0)
            asked[key] = number, group_id, isinstance(epoch, int) and epoch >= 0
            if line.api_key == _CONSUMER_HEARTBEAT:
                consumers.add(group_id)
            elif line.body.get("member_id") and group_id in consumers:
                begun.setdefault(group_id, {})[number] = NEVER
            continue
        sent, group_id, creates = asked.pop(key, (0, "", False))
        joins = begun.get(group_id, {})
        if line.body.get("error_code") not in (E.UNKNOWN_MEMBER_ID, None):
            joins.pop(sent, None)
        elif sent in joins:
            joins[sent] = number
        if line.body.get("error_code") == E.NONE and creates:
            for each in [each for each, answered in joins.items() if answered < sent]:
                found.setdefault(group_id, []).append((each, number))
                del joins[each]
    for group_id, lines in begun.items():
        found.setdefault(group_id, []).extend((each, NEVER) for each in lines)
    return found


@dataclass(frozen=True, slots=True)
class Asked:
    """A fetch of one group and its answer. ``places`` None: all partitions. ``rows``: the value and the error code of
    each. ``topic_ids``: the places that it names by a topic id."""

    group_id: str
    places: tuple[Place, ...] | None
    error: int
    rows: Mapping[Place, tuple[Value, int]]
    topic_ids: Mapping[Place, str] = field(default_factory=dict)

    @property
    def empty(self) -> bool:
        """Whether the answer contains no committed offset."""
        return all(value.shows(NOTHING) and not code for value, code in self.rows.values())


def fetched(each: Exchange, names: Names) -> Iterator[Asked]:
    """The groups of an answered fetch."""
    assert each.answer is not None
    if each.version >= _MANY_GROUPS:
        answered = {group["group_id"]: group for group in each.answer.get("groups") or ()}
        for group in each.ask.get("groups") or ():
            if group["group_id"] in answered:
                yield _asked(group, answered[group["group_id"]], names)
    else:
        yield _asked(each.ask, each.answer, names)


def _asked(ask: Mapping[str, Any], answer: Mapping[str, Any], names: Names) -> Asked:
    topics = ask.get("topics")
    places = None
    if topics is not None:
        places = tuple(names.place(topic, number) for topic in topics for number in topic["partition_indexes"])
    rows = {
        names.place(topic, row["partition_index"]): (_value(row), row["error_code"])
        for topic in answer.get("topics") or ()
        for row in topic.get("partitions") or ()
    }
    named = [topic for topic in (topics if topics is not None else answer.get("topics") or ()) if topic.get("topic_id")]
    ids = {
        names.place(topic, number): str(topic["topic_id"])
        for topic in named
        for number in topic.get("partition_indexes")
        or [row["partition_index"] for row in topic.get("partitions") or ()]
    }
    return Asked(ask["group_id"], places, answer.get("error_code", 0) or 0, rows, ids)


def _value(row: Mapping[str, Any]) -> Value:
    return Value(row["committed_offset"], row.get("committed_leader_epoch"), row.get("metadata") or "")
