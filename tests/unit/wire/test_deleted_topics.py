"""An answer that a group may give while a topic is deleted is wrong long after: the broker knows by then."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from fencepost.protocol.consumer_messages import TopicPartitions
from fencepost.protocol.errors import ErrorCode as E
from fencepost_conformance.traces.lines import ReceivedLine, SentLine

from .written import TOPIC, Wire, parts

DELETED_MS = 2_000
SLACK_MS, LONGEST_INTERVAL_MS = 3_000, 15_000
AGAIN = UUID(int=9)


def deleting(at: int, *, answered: bool = True, code: int = 0, by_id: bool = False) -> list[Any]:
    """Delete topic t, by name (v1) or by id (v6)."""
    about: dict[str, Any] = {"connection": 2, "correlation_id": 1, "api_key": 20, "api_version": 6 if by_id else 1}
    asked = {"topics": [{"name": None, "topic_id": str(TOPIC)}]} if by_id else {"topic_names": ["t"]}
    row = {"name": None if by_id else "t", "error_code": code, **({"topic_id": str(TOPIC)} if by_id else {})}
    lines = [SentLine(at_ms=at, body=asked, **about), ReceivedLine(at_ms=at, body={"responses": [row]}, **about)]
    return lines if answered else lines[:1]


def making_again(at: int) -> list[Any]:
    about: dict[str, Any] = {"connection": 2, "correlation_id": 2, "api_key": 19, "api_version": 7}
    made = {"name": "t", "topic_id": str(AGAIN), "error_code": 0}
    return [
        SentLine(at_ms=at, body={"topics": [{"name": "t", "num_partitions": 4}]}, **about),
        ReceivedLine(at_ms=at, body={"topics": [made]}, **about),
    ]


def after(deleted: list[Any]) -> Wire:
    wire = Wire()
    wire.beat(1_000, "a", 0, 2, parts(0, 1, 2, 3))
    wire.lines += deleted
    return wire


@pytest.mark.parametrize("by_id", [True, False])
def test_the_coordinator_may_fail_while_a_topic_is_deleted_and_not_later(*, by_id: bool) -> None:
    soon = after(deleting(DELETED_MS, by_id=by_id))
    soon.beat(DELETED_MS + SLACK_MS - 100, "a", 2, 2, error=E.UNKNOWN_SERVER_ERROR)
    assert soon.accepted()
    late = after(deleting(DELETED_MS, by_id=by_id))
    late.beat(DELETED_MS + SLACK_MS + 100, "a", 2, 2, error=E.UNKNOWN_SERVER_ERROR)
    assert "M-HB-12" in late.refusal().rules


@pytest.mark.parametrize("deleted", [deleting(DELETED_MS, answered=False), deleting(DELETED_MS, code=7)])
def test_a_deletion_of_which_the_end_is_not_known_may_last(deleted: list[Any]) -> None:
    wire = after(deleted)
    wire.beat(DELETED_MS + SLACK_MS + 100, "a", 2, 2, error=E.UNKNOWN_SERVER_ERROR)
    assert wire.accepted()


def joined_again(at: int, topic: UUID) -> Wire:
    """Let another member join at this time, and get a partition of a topic with this id."""
    wire = after([*deleting(DELETED_MS), *making_again(DELETED_MS + 100)])
    wire.beat(at, "b", 0, 3, (TopicPartitions(topic.bytes, (0,)),))
    return wire


def test_nothing_of_a_deleted_topic_is_assigned_when_the_group_has_heard_of_it() -> None:
    heard_ms = DELETED_MS + SLACK_MS + LONGEST_INTERVAL_MS
    assert joined_again(heard_ms + 200, AGAIN).accepted()
    assert "A-PROP-03" in joined_again(heard_ms + 200, TOPIC).refusal().rules
    assert joined_again(heard_ms - 100, AGAIN).accepted()
