"""Rows of ListGroups fit the request and each other; metadata that is too long is rejected where it must be
(O-COMMIT-08)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from fencepost.protocol.profiles import KAFKA_4_4
from fencepost_conformance.judge.checker.check import check_trace
from fencepost_conformance.judge.checker.verdict import Verdict
from fencepost_conformance.traces.files import WireTrace
from fencepost_conformance.traces.lines import ReceivedLine, SentLine

from .test_scala import COMMIT, SETTINGS, TXN_COMMIT, Classic

#: A row of a group that the trace does not show elsewhere.
STABLE = {"group_id": "h", "protocol_type": "consumer", "group_state": "Stable", "group_type": "classic"}
KIP_848 = {**STABLE, "group_state": "Reconciling", "group_type": "consumer"}


def verdict(wire: Classic, assumed: tuple[str, ...] = ()) -> Verdict:
    return check_trace(WireTrace(wire.settings, KAFKA_4_4, tuple(wire.lines), assumed=assumed))


def listing(version: int, asked: dict[str, Any], *rows: dict[str, Any]) -> Classic:
    wire = Classic()
    wire.alone()
    wire.asked += 1
    wire._line(SentLine, 20, 6, 16, version, asked)
    wire._line(ReceivedLine, 25, 6, 16, version, {"error_code": 0, "groups": list(rows)})
    return wire


@pytest.mark.parametrize(
    ("version", "asked", "row", "field"),
    [
        (5, {}, STABLE, ""),
        (5, {}, KIP_848, ""),
        (5, {"states_filter": [" stable "], "types_filter": ["CLASSIC"]}, STABLE, ""),
        (5, {"states_filter": ["Empty", "Dead"]}, STABLE, "group_state"),
        (4, {"states_filter": ["Empty"]}, STABLE, "group_state"),
        (3, {"states_filter": ["Empty"]}, STABLE, ""),  # this version has no filter
        (5, {"types_filter": ["consumer"]}, STABLE, "group_type"),
        (4, {"types_filter": ["consumer"]}, STABLE, ""),
        (5, {}, {**STABLE, "group_state": "Assigning"}, "group_state"),
        (5, {}, {**KIP_848, "group_state": "PreparingRebalance"}, "group_state"),
        (4, {}, {**STABLE, "group_state": "Gone", "group_type": ""}, "group_state"),
        (4, {}, {**KIP_848, "group_type": ""}, ""),
        (5, {}, {**KIP_848, "protocol_type": ""}, "protocol_type"),
        (5, {}, {**STABLE, "protocol_type": ""}, ""),
        (5, {}, {**STABLE, "group_state": "Whatever", "group_type": "share"}, ""),
    ],
)
def test_a_row_fits_the_filters_and_itself(version: int, asked: Any, row: Any, field: str) -> None:
    found = verdict(listing(version, asked, row))
    assert found.outcome == ("refused" if field else "accepted")
    if field:
        assert found.refusals[0].difference is not None
        assert found.refusals[0].difference.field == field
        assert found.refusals[0].line == 9


def test_an_answer_with_an_error_lists_nothing() -> None:
    wire = listing(5, {"types_filter": ["consumer"]}, STABLE)
    wire.lines[-1].body["error_code"] = 14
    assert verdict(wire).outcome == "accepted"


NONE, TOO_LONG, UNKNOWN_TOPIC = 0, 12, 3


def committing(key: int, metadata: str | None, code: int, limit: int = 4) -> Classic:
    wire = Classic()
    wire.settings = replace(SETTINGS, offset_metadata_max_bytes=limit)
    wire.commit(0, None, key=key)
    wire.lines[-1].body["topics"][0]["partitions"][0]["committed_metadata"] = metadata
    row = {"partition_index": 0, "error_code": code}
    wire._line(ReceivedLine, 5, 7, key, wire.lines[-1].api_version, {"topics": [{"name": "t", "partitions": [row]}]})
    return wire


@pytest.mark.parametrize("key", [COMMIT, TXN_COMMIT])
@pytest.mark.parametrize(
    ("metadata", "limit", "too_long"),
    [
        ("aaaa", 4, False),
        ("aaaaa", 4, True),
        ("éééé", 4, False),  # 8 bytes
        ("😀😀", 4, False),  # two characters, four units
        ("😀😀😀", 4, True),
        ("", 0, False),
        ("", -1, True),
        (None, -2, False),
    ],
)
def test_metadata_is_too_long_by_its_utf_16_units(
    key: int, metadata: str | None, limit: int, *, too_long: bool
) -> None:
    right, wrong = (TOO_LONG, NONE) if too_long else (NONE, TOO_LONG)
    assert verdict(committing(key, metadata, right, limit)).outcome != "refused"
    (refusal,) = verdict(committing(key, metadata, wrong, limit)).refusals
    assert refusal.rules == ("O-COMMIT-08",)
    assert not refusal.hint
    assert verdict(committing(key, metadata, UNKNOWN_TOPIC, limit)).outcome != "refused"


def test_a_limit_that_was_assumed_may_be_another() -> None:
    (refusal,) = verdict(committing(COMMIT, "aaaaaa", NONE), ("offset_metadata_max_bytes",)).refusals
    assert "offset.metadata.max.bytes=6" in refusal.hint
    (refusal,) = verdict(committing(COMMIT, "aaa", TOO_LONG), ("offset_metadata_max_bytes",)).refusals
    assert "offset.metadata.max.bytes=2" in refusal.hint
