"""Whether an answer has one row for each thing that its request names, and no other row.

The rows of OffsetCommit, TxnOffsetCommit, OffsetFetch and OffsetDelete are partitions, those of DescribeGroups,
ConsumerGroupDescribe, DeleteGroups and OffsetFetch are groups, and those of LeaveGroup are members. An answer with an
error at the top has no rows. If a request names a thing twice, the answer may have one row or two.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from ...traces.files import WireTrace
from ...traces.lines import API_OF_KEY, ReceivedLine, SentLine
from .difference import Difference
from .verdict import Refusal

_OFFSET_COMMIT: Final = 8
_OFFSET_FETCH: Final = 9
_LEAVE_GROUP: Final = 13
_DESCRIBE_GROUPS: Final = 15
_TXN_OFFSET_COMMIT: Final = 28
_DELETE_GROUPS: Final = 42
_OFFSET_DELETE: Final = 47
_CONSUMER_GROUP_DESCRIBE: Final = 69
_NAMES: Final = {
    _OFFSET_COMMIT: "OffsetCommit",
    _OFFSET_FETCH: "OffsetFetch",
    _TXN_OFFSET_COMMIT: "TxnOffsetCommit",
    _OFFSET_DELETE: "OffsetDelete",
}
_RULES: Final = {
    _OFFSET_COMMIT: "O-COMMIT-03",
    _OFFSET_FETCH: "O-FETCH-06",
    _LEAVE_GROUP: "C-LEAVE-03",
    _DESCRIBE_GROUPS: "C-ADM-02",
    _TXN_OFFSET_COMMIT: "O-TXN-01",
    _DELETE_GROUPS: "C-ADM-09",
    _OFFSET_DELETE: "O-DEL-06",
    _CONSUMER_GROUP_DESCRIBE: "C-ADM-06",
}
#: The first versions in which OffsetFetch asks for several groups, and LeaveGroup names several members.
_MANY_GROUPS: Final = 8
_MANY_MEMBERS: Final = 3

_Body = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class _Rows:
    """The things of a request and of the rows of its answer, in words. ``field``: the list of the answer. ``thing``:
    the kind of its rows. ``group_id`` None: the rows are groups."""

    group_id: str | None
    field: str
    thing: str
    asked: Counter[str]
    answered: Counter[str]


def wrong_rows(trace: WireTrace) -> Iterator[Refusal]:
    """For each answer whose rows do not fit its request, the refusal: a missing, doubled or extra row."""
    asked: dict[tuple[int, int], SentLine] = {}
    for number, line in enumerate(trace.lines, 1):
        if not isinstance(line, SentLine | ReceivedLine) or line.api_key not in _RULES or "undecoded" in line.body:
            continue
        if isinstance(line, SentLine):
            asked[line.connection, line.correlation_id] = line
            continue
        ask = asked.pop((line.connection, line.correlation_id), None)
        for rows in () if ask is None else _rows(line.api_key, line.api_version, ask.body, line.body):
            found = _difference(rows)
            if found is not None:
                yield _refusal(number, line, rows, *found)


def _refusal(number: int, line: ReceivedLine, rows: _Rows, key: str, what: str) -> Refusal:
    api = _NAMES.get(line.api_key) or API_OF_KEY[line.api_key]
    group_id = key if rows.group_id is None else rows.group_id
    difference = Difference(
        api,
        line.api_version,
        f"group {group_id!r} on connection {line.connection}",
        rows.field,
        what,
        f"one row for each {rows.thing} of the request",
    )
    seen = f"{api} v{line.api_version} on connection {line.connection} was answered {what}"
    return Refusal(
        group_id, number, line.at_ms, seen, (difference.expected,), (_RULES[line.api_key],), difference=difference
    )


def _difference(rows: _Rows) -> tuple[str, str] | None:
    """The first thing with wrong rows, and what is wrong."""
    for key, times in rows.answered.items():
        if key not in rows.asked:
            return key, f"with a row for {key}, which was not asked for"
        if times > rows.asked[key]:
            return key, f"with {times} rows for {key}"
    for key in rows.asked:
        if key not in rows.answered:
            return key, f"without a row for {key}"
    return None


def _rows(api: int, version: int, ask: _Body, answer: _Body) -> Iterator[_Rows]:
    if api in (_DESCRIBE_GROUPS, _CONSUMER_GROUP_DESCRIBE, _DELETE_GROUPS):
        names = ask.get("groups") or ask.get("group_ids") or ask.get("groups_names") or ()
        field = "results" if api == _DELETE_GROUPS else "groups"
        rows = Counter(str(row["group_id"]) for row in answer.get(field) or ())
        yield _Rows(None, field, "group", Counter(str(name or "") for name in names), rows)
    elif api == _OFFSET_FETCH and version >= _MANY_GROUPS:
        yield from _of_groups(ask, answer)
    elif answer.get("error_code"):
        return
    elif api == _LEAVE_GROUP:
        if version >= _MANY_MEMBERS:
            asked, rows = Counter(map(_member, ask["members"])), Counter(map(_member, answer.get("members") or ()))
            yield _Rows(ask["group_id"], "members", "member", asked, rows)
    elif ask.get("topics") is not None:
        yield _Rows(ask["group_id"], "topics", "partition", _partitions(ask), _partitions(answer))


def _of_groups(ask: _Body, answer: _Body) -> Iterator[_Rows]:
    groups, rows = ask.get("groups") or (), answer.get("groups") or ()
    names = Counter(str(each["group_id"]) for each in groups)
    yield _Rows(None, "groups", "group", names, Counter(str(row["group_id"]) for row in rows))
    for each in groups:
        found = [row for row in rows if row["group_id"] == each["group_id"]]
        if each.get("topics") is None or len(found) != 1 or names[each["group_id"]] != 1:
            continue  # a request for all partitions names none
        if not found[0].get("error_code"):
            yield _Rows(each["group_id"], "topics", "partition", _partitions(each), _partitions(found[0]))


def _member(row: _Body) -> str:
    instance = row.get("group_instance_id")
    return f"member id {row['member_id']!r}" + (f" (instance id {instance!r})" if instance is not None else "")


def _partitions(body: _Body) -> Counter[str]:
    found: Counter[str] = Counter()
    for topic in body.get("topics") or ():
        name = topic.get("topic_id") or topic.get("name")
        numbers = topic.get("partition_indexes")
        if numbers is None:
            numbers = [row["partition_index"] for row in topic.get("partitions") or ()]
        found.update(f"{name}-{number}" for number in numbers)
    return found
