"""An answer has one row for each item of the request: none is missing, repeated or extra."""

from __future__ import annotations

from typing import Any

import pytest

from fencepost.protocol.profiles import KAFKA_4_4
from fencepost.protocol.settings import Settings
from fencepost_conformance.judge.checker.check import check_trace
from fencepost_conformance.judge.checker.rows import wrong_rows
from fencepost_conformance.traces.files import WireTrace
from fencepost_conformance.traces.lines import ConnectedLine, ReceivedLine, SentLine

FETCHED = {"committed_offset": -1, "committed_leader_epoch": -1, "metadata": "", "error_code": 0}


def trace(key: int, version: int, ask: dict[str, Any], answer: dict[str, Any]) -> WireTrace:
    about: dict[str, Any] = {"connection": 1, "correlation_id": 1, "api_key": key, "api_version": version}
    lines = (ConnectedLine(at_ms=0, connection=1), SentLine(at_ms=1, body=ask, **about))
    return WireTrace(Settings(), KAFKA_4_4, (*lines, ReceivedLine(at_ms=2, body=answer, **about)))


def topics(*numbers: int, **row: Any) -> list[dict[str, Any]]:
    return [{"name": "orders", "partitions": [{"partition_index": number, **row} for number in numbers]}]


def groups(*names: str) -> list[dict[str, Any]]:
    return [{"group_id": name, "error_code": 0} for name in names]


def fetched(*numbers: int) -> list[dict[str, Any]]:
    return [{"group_id": "g", "error_code": 0, "topics": topics(*numbers, **FETCHED)}]


ASKED: list[tuple[str, int, int, dict[str, Any], dict[str, Any]]] = [
    ("topics", 8, 8, {"group_id": "g", "topics": topics(0, 1)}, {"topics": topics(error_code=0)}),
    ("topics", 28, 3, {"group_id": "g", "topics": topics(0, 1)}, {"topics": topics(error_code=0)}),
    ("topics", 47, 0, {"group_id": "g", "topics": topics(0, 1)}, {"error_code": 0, "topics": topics(error_code=0)}),
    ("topics", 9, 5, {"group_id": "g", "topics": [{"name": "orders", "partition_indexes": [0, 1]}]},
     {"error_code": 0, "topics": topics(**FETCHED)}),
]  # fmt: skip


@pytest.mark.parametrize(("field", "key", "version", "ask", "answer"), ASKED)
@pytest.mark.parametrize(("numbers", "what"), [
    ((0, 1), ""), ((1, 0), ""), ((0,), "without a row for orders-1"),
    ((0, 1, 1), "with 2 rows for orders-1"), ((0, 1, 2), "with a row for orders-2, which was not asked for"),
])  # fmt: skip
def test_partitions(  # noqa: PLR0917
    field: str, key: int, version: int, ask: dict[str, Any], answer: dict[str, Any], numbers: tuple[int, ...], what: str
) -> None:
    row = FETCHED if key == 9 else {"error_code": 0}
    found = list(wrong_rows(trace(key, version, ask, {**answer, "topics": topics(*numbers, **row)})))
    assert [(each.group_id, each.difference.field, each.difference.seen) for each in found if each.difference] == [
        ("g", field, what)
    ] * bool(what)


@pytest.mark.parametrize(("key", "version", "name", "field"), [
    (15, 5, "groups", "groups"), (42, 2, "groups_names", "results"), (69, 1, "group_ids", "groups"),
])  # fmt: skip
def test_groups(key: int, version: int, name: str, field: str) -> None:
    def seen(*answered: str) -> list[tuple[str, str]]:
        found = wrong_rows(trace(key, version, {name: ["g", "h"]}, {field: groups(*answered)}))
        return [(each.group_id, each.difference.seen) for each in found if each.difference]

    assert seen("h", "g") == []
    assert seen("g") == [("h", "without a row for h")]
    assert seen("g", "h", "h") == [("h", "with 2 rows for h")]
    assert seen("g", "h", "i") == [("i", "with a row for i, which was not asked for")]


def test_members_that_leave() -> None:
    asked = [{"member_id": "a", "group_instance_id": None}, {"member_id": "", "group_instance_id": "i"}]

    def seen(version: int, error: int, *rows: dict[str, Any]) -> list[str]:
        ask = {"group_id": "g", "members": asked}
        found = wrong_rows(trace(13, version, ask, {"error_code": error, "members": list(rows)}))
        return [each.difference.seen for each in found if each.difference]

    assert seen(5, 0, *asked) == []
    assert seen(5, 0, asked[1]) == ["without a row for member id 'a'"]
    assert seen(5, 16) == []
    assert seen(2, 0) == []


def test_a_fetch_of_several_groups() -> None:
    one = {"group_id": "g", "topics": [{"name": "orders", "partition_indexes": [0, 1]}]}

    def seen(asked: list[Any], answered: list[Any]) -> list[str]:
        found = wrong_rows(trace(9, 8, {"groups": asked, "require_stable": False}, {"groups": answered}))
        return [each.difference.seen for each in found if each.difference]

    assert seen([one], fetched(0, 1)) == []
    assert seen([one], fetched(0)) == ["without a row for orders-1"]
    assert seen([{**one, "topics": None}], fetched(5)) == []
    assert seen([one, {"group_id": "h", "topics": None}], fetched(0, 1)) == ["without a row for h"]
    refused = [{**fetched()[0], "error_code": 30, "topics": []}]
    assert seen([one], refused) == []


def test_a_trace_is_refused_for_it() -> None:
    ask = {"group_id": "g", "topics": [{"name": "orders", "partition_indexes": [0, 1]}]}
    answer = {"error_code": 0, "topics": topics(0, **FETCHED)}
    verdict = check_trace(trace(9, 5, ask, answer))
    assert verdict.outcome == "refused"
    assert verdict.refusals[0].sentence == (
        "OffsetFetch v5 answer to group 'g' on connection 1: topics is without a row for orders-1; "
        "expected one row for each partition of the request (O-FETCH-06)"
    )
