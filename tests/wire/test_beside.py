"""Differences that the comparison of a server with Kafka finds, and those that it ignores."""

from __future__ import annotations

from typing import Any

import pytest
from beside import Transcript
from kio.index import load_entity_schema
from kio.static.constants import EntityType
from test_serve_beside_kafka import differences

from fencepost.wire.fill import fill


def answer_of(api: str, version: int, **values: Any) -> Any:
    one = Transcript("one")
    one.add(f"{api} v{version}", fill(load_entity_schema(api, version, EntityType.response), values))
    return one.answers


def parted(api: str, version: int, *indexes: int) -> Any:
    """Return an answer with rows of these partitions of one topic."""
    rows = [{"partition_index": index, "error_code": 0} for index in indexes]
    return answer_of(api, version, topics=[{"name": "t", "partitions": rows}])


@pytest.mark.parametrize(("api", "version"), [("offset_commit", 8), ("add_offsets_to_txn", 3)])
def test_another_value_is_seen(api: str, version: int) -> None:
    if api == "offset_commit":
        one, other = parted(api, version, 0), parted(api, version, 1)
    else:
        one, other = (answer_of(api, version, error_code=code) for code in (0, 51))
    assert differences(one[0][1], other[0][1])


def test_another_order_of_rows_is_seen() -> None:
    one, other = parted("offset_commit", 8, 0, 1), parted("offset_commit", 8, 1, 0)
    assert differences(one[0][1], other[0][1])


def test_the_order_of_a_hash_table_is_not() -> None:
    one, other = parted("list_offsets", 1, 0, 1), parted("list_offsets", 1, 1, 0)
    assert differences(one[0][1], other[0][1]) == []


def test_ids_that_a_broker_draws_are_distinguished() -> None:
    """Two members that are exchanged are a difference, whatever their names."""
    one = Transcript("one")
    for name in ("ada", "bob"):
        one.add("join_group v5", fill(load_entity_schema("join_group", 5, EntityType.response), {"member_id": name}))
    two = Transcript("two")
    for name in ("eve", "eve"):
        two.add("join_group v5", fill(load_entity_schema("join_group", 5, EntityType.response), {"member_id": name}))
    assert not differences(one.answers[0][1], two.answers[0][1])
    assert differences(one.answers[1][1], two.answers[1][1])
