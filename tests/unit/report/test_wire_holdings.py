"""Owners of partitions in a recorded trace: red marks appear only where a partition has two owners."""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fencepost.member.consumer_protocol import Assignment, decode_assignment, encode_assignment
from fencepost.member.partitions import TopicPartition
from fencepost_conformance.show.report.chart import holders
from fencepost_conformance.show.report.holdings import after_each
from fencepost_conformance.show.report.wire_words import wire_steps
from fencepost_conformance.traces.files import WireTrace, read_traces
from fencepost_conformance.traces.lines import ReceivedLine

CORPUS = Path(__file__).parents[2] / "corpus"
SYNC_GROUP, CONSUMER_HEARTBEAT = 14, 68


def clashes(trace: WireTrace) -> list[tuple[int, str, tuple[str, int]]]:
    """Return step, group and partition wherever a partition has two owners."""
    steps = wire_steps(trace)
    found = []
    for step, groups in zip(steps, after_each([step.groups for step in steps]), strict=True):
        for name, group in groups.items():
            held = {partition for member in group.members for partition in (*member.holds, *member.giving_up)}
            found += [(step.index, name, partition) for partition in held if len(holders(group, partition)) > 1]
    return found


def recorded(path: Path) -> WireTrace:
    (trace,) = read_traces(path)
    assert isinstance(trace, WireTrace)
    return trace


@pytest.mark.parametrize("family", sorted({path.name.rpartition("-")[2] for path in CORPUS.glob("*.gz")}))
def test_no_recorded_trace_shows_two_holders(family: str) -> None:
    """The checker accepts all these traces: crashes, freezes, eager and cooperative rebalances, static members,
    conversions."""
    traces = {path.name: clashes(recorded(path)) for path in CORPUS.glob(f"*-{family}")}
    assert traces
    assert {name: found[:1] for name, found in traces.items() if found} == {}


def altered(trace: WireTrace, api_key: int, change: Callable[[list[dict[str, Any]]], dict[str, Any]]) -> WireTrace:
    """Change the last answer of that API with an assignment while another member owns partitions too. The new body is
    made from all such answers up to it."""
    steps = wire_steps(trace)
    standing = after_each([step.groups for step in steps])
    several = [sum(bool(row.holds) for group in groups.values() for row in group.members) > 1 for groups in standing]
    answers = [
        (at, line)
        for at, line in enumerate(trace.lines)
        if isinstance(line, ReceivedLine) and line.api_key == api_key and line.body.get("assignment")
    ]
    place, last = max(((at, line) for at, line in answers if several[at]), key=lambda pair: pair[0])
    other = last.model_copy(update={"body": change([dict(line.body) for at, line in answers if at <= place])})
    return replace(trace, lines=(*trace.lines[:place], other, *trace.lines[place + 1 :]))


@pytest.mark.parametrize("name", ["three-at-once-java", "cooperative-java", "cooperative-confluent-kafka"])
def test_a_leader_that_gives_a_partition_twice_shows_red(name: str) -> None:
    def everything(bodies: list[dict[str, Any]]) -> dict[str, Any]:
        given: set[TopicPartition] = set()
        for body in bodies:
            given |= set(decode_assignment(base64.urlsafe_b64decode(body["assignment"])).partitions)
        written = encode_assignment(Assignment(tuple(sorted(given))))
        return {**bodies[-1], "assignment": base64.urlsafe_b64encode(written).decode()}

    assert clashes(altered(recorded(CORPUS / f"{name}.jsonl.gz"), SYNC_GROUP, everything))


@pytest.mark.parametrize("name", ["consumer-three-at-once-java", "consumer-crash-confluent-kafka", "mixed-crash-java"])
def test_a_broker_that_gives_a_partition_twice_shows_red(name: str) -> None:
    """INV-KIP-01."""

    def everything(bodies: list[dict[str, Any]]) -> dict[str, Any]:
        given: dict[str, set[int]] = {}
        for body in bodies:
            for row in body["assignment"]:
                given.setdefault(row["topic_id"], set()).update(row["partitions"])
        rows = [{"topic_id": topic, "partitions": sorted(numbers)} for topic, numbers in given.items()]
        return {**bodies[-1], "assignment": rows}

    assert clashes(altered(recorded(CORPUS / f"{name}.jsonl.gz"), CONSUMER_HEARTBEAT, everything))
