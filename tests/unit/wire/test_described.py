"""The answers of DescribeGroups agree with the certain state of the group."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fencepost_conformance.judge.checker.check import check_trace
from fencepost_conformance.judge.checker.search import Limits
from fencepost_conformance.judge.checker.verdict import Refusal
from fencepost_conformance.traces.files import WireTrace, read_traces
from fencepost_conformance.traces.lines import ReceivedLine

TRACES = Path(__file__).parents[2] / "wire" / "kafka-4.4.0.jsonl.gz"
LIMITS = Limits(steps=20_000, second_look=100, detail=2_000)
DESCRIBE_GROUPS = 15

Row = dict[str, Any]


def read(name: str) -> WireTrace:
    (trace,) = [each for each in read_traces(TRACES) if isinstance(each, WireTrace) and each.name == name]
    return trace


def falsified(trace: WireTrace, state: str, change: Callable[[Row], Row]) -> Iterator[WireTrace]:
    """Return copies in which each description of a group in this state is changed."""
    for at, line in enumerate(trace.lines):
        if not isinstance(line, ReceivedLine) or line.api_key != DESCRIBE_GROUPS:
            continue
        rows: Any = line.body["groups"]
        if rows and rows[0]["group_state"] == state:
            lines = list(trace.lines)
            lines[at] = line.model_copy(update={"body": {"groups": [change(dict(row)) for row in rows]}})
            yield replace(trace, lines=tuple(lines), numbers=())


def refusal(trace: WireTrace) -> Refusal:
    verdict = check_trace(trace, limits=LIMITS)
    assert verdict.outcome == "refused"
    return verdict.refusals[0]


def members(row: Row, **fields: str) -> Row:
    return {**row, "members": [{**each, **fields} for each in row["members"]]}


@pytest.mark.parametrize(("change", "field", "seen"), [
    (lambda row: {**row, "group_state": "Empty"}, "group_state", '"Empty"'),
    (lambda row: {**row, "protocol_type": "odd"}, "protocol_type", '"odd"'),
    (lambda row: {**row, "protocol_data": "nobodys"}, "protocol_data", '"nobodys"'),
    (lambda row: members(row, client_id="nobody"), "client_id", '"nobody"'),
    (lambda row: {**row, "members": []}, "members", "an empty list"),
])  # fmt: skip
def test_a_classic_group(change: Callable[[Row], Row], field: str, seen: str) -> None:
    copy = next(falsified(read("classic 7300100"), "Stable", change))
    difference = refusal(copy).difference
    assert difference is not None
    assert (difference.api, difference.field.rpartition(".")[2], difference.seen) == ("DescribeGroups", field, seen)


def test_a_host_is_not_judged() -> None:
    copy = next(
        falsified(read("classic 7300100"), "PreparingRebalance", lambda row: members(row, client_host="/10.0.0.1"))
    )
    assert check_trace(copy, limits=LIMITS).outcome == "accepted"


def test_a_group_that_is_absent() -> None:
    copies = falsified(read("classic 7300100"), "Dead", lambda row: {**row, "group_state": "Stable"})
    assert any(check_trace(copy, limits=LIMITS).outcome == "refused" for copy in copies)


def test_a_consumer_group_is_dead_to_it() -> None:
    copies = falsified(read("mixed 770045"), "Dead", lambda row: {**row, "group_state": "Stable"})
    outcomes = [check_trace(copy, limits=LIMITS) for copy in copies]
    refused = [each.refusals[0] for each in outcomes if each.refusals]
    assert any(each.rules == ("C-ADM-02",) for each in refused)


def test_of_a_group_that_is_only_described_nothing_is_known() -> None:
    trace = read("classic 7300100")
    kept = [each for each in trace.lines if getattr(each, "api_key", DESCRIBE_GROUPS) == DESCRIBE_GROUPS]
    verdict = check_trace(replace(trace, lines=tuple(kept), numbers=()))
    assert (verdict.outcome, verdict.reason) == (
        "undecided",
        "it has no request about a group: there is nothing to check",
    )
