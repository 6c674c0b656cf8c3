"""What a wire trace says about offsets, line by line: requests with their answers, bodies as the recorder writes
them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from ...trace.files import WireTrace
from ...trace.lines import ReceivedLine, SentLine
from .register import NEVER, Value

OFFSET_COMMIT: Final = 8
OFFSET_FETCH: Final = 9
CREATE_TOPICS: Final = 19
DELETE_TOPICS: Final = 20
INIT_PRODUCER_ID: Final = 22
END_TXN: Final = 26
TXN_OFFSET_COMMIT: Final = 28
DELETE_GROUPS: Final = 42
OFFSET_DELETE: Final = 47
OF_OFFSETS: Final = frozenset(
    {
        OFFSET_COMMIT,
        OFFSET_FETCH,
        CREATE_TOPICS,
        DELETE_TOPICS,
        INIT_PRODUCER_ID,
        END_TXN,
        TXN_OFFSET_COMMIT,
        DELETE_GROUPS,
        OFFSET_DELETE,
    }
)
#: From this version on OffsetFetch asks for several groups.
_MANY_GROUPS: Final = 8


@dataclass(slots=True, eq=False)
class Exchange:
    """One request and its answer; ``end`` is ``NEVER`` and ``answer`` empty if none was seen. Moments are lines."""

    api: int
    version: int
    begin: int
    begin_ms: int
    ask: Mapping[str, Any]
    end: int = NEVER
    end_ms: int = NEVER
    answer: Mapping[str, Any] | None = None


def exchanges(trace: WireTrace) -> list[Exchange]:
    """All that concerns offsets, in the order of the requests. What could not be decoded counts as not answered."""
    found: list[Exchange] = []
    asked: dict[tuple[int, int], Exchange] = {}
    for number, line in enumerate(trace.lines, 1):
        if not isinstance(line, SentLine | ReceivedLine) or line.api_key not in OF_OFFSETS:
            continue
        key = line.connection, line.correlation_id
        if isinstance(line, SentLine):
            if "undecoded" not in line.body:
                asked[key] = Exchange(line.api_key, line.api_version, number, line.at_ms, line.body)
                found.append(asked[key])
        elif key in asked and "undecoded" not in line.body:
            each = asked.pop(key)
            each.end, each.end_ms, each.answer = number, line.at_ms, line.body
    return found


#: A topic by its id or, where the trace does not tell the id, by name; and a partition of it.
Place = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Names:
    """What topics are called: those that were created in the trace by their ids, whatever a request calls them by."""

    names: Mapping[str, str]
    created: Mapping[str, int]  #: name to the line of the request

    def place(self, topic: Mapping[str, Any], number: int) -> Place:
        told = str(topic.get("topic_id") or topic.get("name") or "")
        return self.names.get(told, told), number


def names_of(every: list[Exchange]) -> Names:
    """The topics that the trace tells the creation of."""
    names: dict[str, str] = {}
    created: dict[str, int] = {}
    for each in every:
        if each.api == CREATE_TOPICS and each.answer is not None:
            for row in each.answer.get("topics") or ():
                if row.get("error_code") == 0 and row.get("topic_id"):
                    names[str(row["topic_id"])] = row["name"]
                    created[row["name"]] = each.begin
    return Names(names, created)


def committed(each: Exchange, names: Names) -> Iterator[tuple[Place, Value]]:
    """What a commit, plain or within a transaction, is about."""
    for topic in each.ask.get("topics") or ():
        for row in topic.get("partitions") or ():
            epoch = row.get("committed_leader_epoch", -1)
            value = Value(row["committed_offset"], epoch, row.get("committed_metadata") or "")
            yield names.place(topic, row["partition_index"]), value


def codes(each: Exchange, names: Names) -> dict[Place, int]:
    """The error code of each partition of an answer to a commit or a deletion."""
    rows = (each.answer or {}).get("topics") or ()
    return {
        names.place(topic, row["partition_index"]): row["error_code"]
        for topic in rows
        for row in topic.get("partitions") or ()
    }


@dataclass(frozen=True, slots=True)
class Asked:
    """What a fetch asked of one group and was told; ``places`` None: all. Rows that are errors have the code."""

    group_id: str
    places: tuple[Place, ...] | None
    error: int
    rows: Mapping[Place, tuple[Value, int]]


def fetched(each: Exchange, names: Names) -> Iterator[Asked]:
    """The groups of a fetch that was answered."""
    assert each.answer is not None
    if each.version >= _MANY_GROUPS:
        told = {group["group_id"]: group for group in each.answer.get("groups") or ()}
        for group in each.ask.get("groups") or ():
            if group["group_id"] in told:
                yield _asked(group, told[group["group_id"]], names)
    else:
        yield _asked(each.ask, each.answer, names)


def _asked(ask: Mapping[str, Any], told: Mapping[str, Any], names: Names) -> Asked:
    topics = ask.get("topics")
    places = None
    if topics is not None:
        places = tuple(names.place(topic, number) for topic in topics for number in topic["partition_indexes"])
    rows = {
        names.place(topic, row["partition_index"]): (_value(row), row["error_code"])
        for topic in told.get("topics") or ()
        for row in topic.get("partitions") or ()
    }
    return Asked(ask["group_id"], places, told.get("error_code", 0) or 0, rows)


def _value(row: Mapping[str, Any]) -> Value:
    return Value(row["committed_offset"], row.get("committed_leader_epoch"), row.get("metadata") or "")
