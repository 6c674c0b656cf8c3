"""A rejection names the field that differs, with both values: one field of one answer is changed at a time."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fencepost.protocol.errors import ErrorCode as E
from fencepost_conformance.judge.checker.check import check_trace
from fencepost_conformance.judge.checker.search import Limits
from fencepost_conformance.judge.checker.verdict import Refusal
from fencepost_conformance.traces.files import WireTrace, read_traces
from fencepost_conformance.traces.lines import API_OF_KEY, ReceivedLine

CORPUS = Path(__file__).parents[2] / "corpus"
LIMITS = Limits(steps=50_000, second_look=200, detail=5_000)
NOBODY = "nobody-00000000-0000-0000-0000-000000000000"
#: By API and field: a value that no coordinator sends there, and its text in a rejection.
FIELDS: list[tuple[str, str, Any, str]] = [
    ("JoinGroup", "error_code", 26, "INVALID_SESSION_TIMEOUT"),
    ("JoinGroup", "generation_id", 77, "77"),
    ("JoinGroup", "protocol_type", "connect", '"connect"'),
    ("JoinGroup", "protocol_name", "nobodys", '"nobodys"'),
    ("JoinGroup", "leader", NOBODY, f'"{NOBODY}"'),
    ("JoinGroup", "skip_assignment", True, "true"),
    ("JoinGroup", "member_id", NOBODY, f'"{NOBODY}"'),
    ("SyncGroup", "error_code", 22, "ILLEGAL_GENERATION"),
    ("SyncGroup", "protocol_type", "connect", '"connect"'),
    ("SyncGroup", "protocol_name", "nobodys", '"nobodys"'),
    ("SyncGroup", "assignment", "AAAAAAABAANmb28AAAABAAAABwAAAAA=", "foo 7"),
    ("Heartbeat", "error_code", 82, "FENCED_INSTANCE_ID"),
    ("LeaveGroup", "error_code", 25, "UNKNOWN_MEMBER_ID"),
    ("ConsumerGroupHeartbeat", "error_code", 110, "FENCED_MEMBER_EPOCH"),
    ("ConsumerGroupHeartbeat", "error_code", 42, "INVALID_REQUEST"),
    ("ConsumerGroupHeartbeat", "member_id", NOBODY, f'"{NOBODY}"'),
    ("ConsumerGroupHeartbeat", "member_epoch", 7_777, "7777"),
    ("ConsumerGroupHeartbeat", "heartbeat_interval_ms", 501, "501"),
    ("ConsumerGroupHeartbeat", "assignment",
     [{"topic_id": base64.b64encode(bytes(16)).decode(), "partitions": [3]}], f"{bytes(16).hex()} 3"),
]  # fmt: skip


def read(name: str) -> WireTrace:
    (trace,) = read_traces(CORPUS / f"{name}.jsonl.gz")
    assert isinstance(trace, WireTrace)
    return trace


def changed(trace: WireTrace, api: str, field: str, value: Any) -> Iterator[WireTrace]:
    """Return the rejected copies, each with one changed answer of that API."""
    for at, line in enumerate(trace.lines):
        if not isinstance(line, ReceivedLine) or API_OF_KEY.get(line.api_key) != api or field not in line.body:
            continue
        if line.body.get("error_code") or line.body[field] in (None, value):
            continue
        lines = list(trace.lines)
        lines[at] = line.model_copy(update={"body": {**line.body, field: value}})
        yield replace(trace, lines=tuple(lines), numbers=())


def refusals(trace: WireTrace) -> tuple[Refusal, ...]:
    verdict = check_trace(trace, limits=LIMITS)
    assert verdict.outcome == "refused"
    return verdict.refusals


@pytest.mark.parametrize(("api", "field", "value", "seen"), FIELDS, ids=lambda each: str(each)[:24])
def test_a_differing_field_is_named_with_both_values(api: str, field: str, value: Any, seen: str) -> None:
    trace = read("consumer-join-and-leave-java" if api.startswith("Consumer") else "join-and-leave-java")
    copies = list(changed(trace, api, field, value))[-2:]
    assert copies
    for copy in copies:
        refusal = refusals(copy)[0]
        difference = refusal.difference
        assert difference is not None
        assert (difference.api, difference.field.rpartition(".")[2], difference.seen) == (api, field, seen)
        assert difference.expected not in ("", seen)
        assert f"{field} is {seen}; expected {difference.expected}" in refusal.sentence
        assert refusal.rules
        assert refusal.sentence.endswith(f"({', '.join(refusal.rules)})")


def test_assignments_are_decoded() -> None:
    trace = read("join-and-leave-java")
    syncs = [at for at, line in enumerate(trace.lines) if isinstance(line, ReceivedLine) and line.api_key == 14]
    full = {str(trace.lines[at].body["assignment"]): at for at in syncs if trace.lines[at].body["assignment"]}  # type: ignore[union-attr]
    (one, first), (two, _) = list(full.items())[:2]
    lines = list(trace.lines)
    lines[first] = lines[first].model_copy(update={"body": {**lines[first].body, "assignment": two}})  # type: ignore[union-attr]
    refusal = refusals(replace(trace, lines=tuple(lines), numbers=()))[0]
    assert refusal.difference is not None
    assert one != two
    assert refusal.difference.seen == "join-and-leave-java-a 4,5,6,7"
    assert refusal.difference.expected == "join-and-leave-java-a 0,1,2,3,4,5,6,7"


def test_a_refused_join_has_no_protocol_type() -> None:
    trace = read("join-and-leave-java")
    asked = next(
        at
        for at, line in enumerate(trace.lines)
        if isinstance(line, ReceivedLine) and line.api_key == 11 and line.body["error_code"] == E.MEMBER_ID_REQUIRED
    )
    lines = list(trace.lines)
    body = {**lines[asked].body, "protocol_type": "consumer"}  # type: ignore[union-attr]
    lines[asked] = lines[asked].model_copy(update={"body": body})
    sentence = refusals(replace(trace, lines=tuple(lines), numbers=()))[0].sentence
    assert 'protocol_type is "consumer"; expected null, because the request was rejected (' in sentence


@pytest.mark.parametrize(("field", "value", "seen"), [
    ("committed_offset", 1_000_000, "1000000"), ("committed_leader_epoch", 7, "7"), ("metadata", "x", '"x"'),
])  # fmt: skip
def test_of_a_committed_offset_too(field: str, value: Any, seen: str) -> None:
    trace = read("commit-and-resume-java")
    at, line = next(
        (at, line)
        for at, line in reversed(list(enumerate(trace.lines)))
        if isinstance(line, ReceivedLine) and line.api_key == 9 and "'committed_offset': 5" in str(line.body)
    )
    groups: Any = [dict(each) for each in line.body["groups"]]  # type: ignore[union-attr]
    rows = [dict(row) for row in groups[0]["topics"][0]["partitions"]]
    for row in rows:
        if row["committed_offset"] >= 0:
            row[field] = value
    groups[0]["topics"] = [{**groups[0]["topics"][0], "partitions": rows}]
    lines = list(trace.lines)
    lines[at] = line.model_copy(update={"body": {**line.body, "groups": groups}})
    found = [each.difference for each in refusals(replace(trace, lines=tuple(lines), numbers=())) if each.difference]
    assert (found[0].api, found[0].field, found[0].seen) == ("OffsetFetch", field, seen)
    assert found[0].expected not in ("", seen)
