"""The judge of members: it accepts what real clients sent, and finds each request that breaks a promise."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fencepost_conformance.judge.members.judge import breaches, judged
from fencepost_conformance.judge.promises import PROMISES
from fencepost_conformance.traces.files import WireTrace, read_stream, read_traces

CORPUS = Path(__file__).parents[2] / "corpus"
Line = dict[str, Any]
JOIN, HEARTBEAT, LEAVE, SYNC, COMMIT, BEAT = 11, 12, 13, 14, 8, 68
#: recordings of clients that do break a promise, and which
BROKEN = {
    # kafka-python claims in JoinGroup a partition that the assignment 24 ms before took away
    "cooperative-kafka-python.jsonl.gz": {"owned partitions"},
    # Kafka 4.3.1 acknowledges at round-trip speed while it cannot resolve a topic (N-REC-03)
    "consumer-topic-to-come-java.jsonl.gz": {"pace"},
}


def recording(name: str) -> list[Line]:
    with gzip.open(CORPUS / f"{name}.jsonl.gz", "rt") as lines:
        return [json.loads(line) for line in lines]


def trace_of(lines: list[Line], folder: Path) -> WireTrace:
    path = folder / "trace.jsonl"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    with path.open("rb") as stream:
        (found,) = read_stream(str(path), stream)
    assert isinstance(found, WireTrace)
    return found


def sent(lines: list[Line], key: int, **wanted: Any) -> list[Line]:
    return [
        line
        for line in lines
        if line["type"] == "sent" and line["api_key"] == key and wanted.items() <= line["body"].items()
    ]


def test_real_clients_keep_their_promises() -> None:
    """Each recording of the corpus; the exceptions are faults of these clients."""
    found: dict[str, set[str]] = {}
    members = 0
    for path in sorted(CORPUS.glob("*.jsonl.gz")):
        for trace in read_traces(path):
            assert isinstance(trace, WireTrace)
            broken, count = judged(trace)
            members += count
            if broken:
                found[path.name] = {each.promise for each in broken}
    assert found == BROKEN
    assert members > 700


def _stale_generation(lines: list[Line]) -> None:
    sent(lines, HEARTBEAT)[-1]["body"]["generation_id"] -= 1


def _commit_after_leave(lines: list[Line]) -> None:
    commit = sent(lines, COMMIT)[-1]
    leave = next(line for line in sent(lines, LEAVE) if line["connection"] == commit["connection"])
    at = lines.index(leave)
    lines.insert(at + 1, {**commit, "at_ms": leave["at_ms"], "correlation_id": 9_999})


def _nameless_commit(lines: list[Line]) -> None:
    sent(lines, COMMIT)[-1]["body"]["member_id"] = ""


def _foreign_commit(lines: list[Line]) -> None:
    sent(lines, COMMIT)[-1]["body"]["topics"][0]["partitions"][0]["partition_index"] = 99


def _repeated(lines: list[Line]) -> None:
    beat = sent(lines, HEARTBEAT)[-1]
    at = lines.index(beat)
    lines[at:at] = [{**beat, "correlation_id": 10_000 + number} for number in range(60)]


def _fenced_and_silent(lines: list[Line]) -> None:
    """A Heartbeat long before others was answered UNKNOWN_MEMBER_ID."""
    first = sent(lines, HEARTBEAT)[0]
    for line in lines:
        same = line.get("correlation_id") == first["correlation_id"] and line["connection"] == first["connection"]
        if line["type"] == "received" and line.get("api_key") == HEARTBEAT and same:
            line["body"]["error_code"] = 25


@pytest.mark.parametrize(
    ("change", "promise"),
    [
        (_stale_generation, "identity"),
        (_commit_after_leave, "left"),
        (_nameless_commit, "commit identity"),
        (_foreign_commit, "commit of owned partitions"),
        (_repeated, "pace"),
        (_fenced_and_silent, "removed"),
    ],
)
def test_a_changed_request_of_a_classic_member_is_found(
    change: Callable[[list[Line]], None], promise: str, tmp_path: Path
) -> None:
    lines = recording("alone-java")
    assert breaches(trace_of(lines, tmp_path)) == []
    change(lines)
    found = breaches(trace_of(lines, tmp_path))
    assert {each.promise for each in found} == {promise}, found


def test_a_member_that_left_by_a_new_connection_sends_no_more_heartbeats(tmp_path: Path) -> None:
    """kafka-go leaves so, and waits before it joins again."""
    lines = recording("alone-java")
    leave = sent(lines, LEAVE)[-1]
    member = leave["body"]["members"][0]["member_id"]
    until_ms = lines[-1]["at_ms"] + 60_000

    def late() -> list[str]:
        found = breaches(trace_of(lines, tmp_path), heartbeats=True, until_ms=until_ms)
        return [each.member for each in found if each.promise == "heartbeats"]

    leave["connection"] = max(line.get("connection", 0) for line in lines) + 1
    lines = [line for line in lines if line is leave or line.get("correlation_id") != leave["correlation_id"]]
    assert member not in late()
    lines.remove(leave)
    assert member in late()


def _member(lines: list[Line]) -> list[Line]:
    return [line for line in sent(lines, BEAT) if line["body"]["member_epoch"] > 0]


def _stale_epoch(lines: list[Line]) -> None:
    _member(lines)[-1]["body"]["member_epoch"] += 1


def _foreign_claim(lines: list[Line]) -> None:
    claim = next(line for line in _member(lines) if line["body"]["topic_partitions"])
    claim["body"]["topic_partitions"][0]["partitions"].append(99)


def _claim_at_join(lines: list[Line]) -> None:
    claim = next(line for line in _member(lines) if line["body"]["topic_partitions"])["body"]["topic_partitions"]
    sent(lines, BEAT, member_epoch=0)[0]["body"]["topic_partitions"] = claim


def _two_at_once(lines: list[Line]) -> None:
    beat = _member(lines)[-1]
    lines.insert(lines.index(beat), {**beat, "correlation_id": 9_999})


@pytest.mark.parametrize(
    ("change", "promise"),
    [
        (_stale_epoch, "identity"),
        (_foreign_claim, "owned partitions"),
        (_claim_at_join, "owned partitions"),
        (_two_at_once, "one heartbeat"),
        (_nameless_commit, "commit identity"),
        (_foreign_commit, "commit of owned partitions"),
    ],
)
def test_a_changed_request_of_a_consumer_member_is_found(
    change: Callable[[list[Line]], None], promise: str, tmp_path: Path
) -> None:
    lines = recording("consumer-alone-java")
    assert breaches(trace_of(lines, tmp_path)) == []
    change(lines)
    found = breaches(trace_of(lines, tmp_path))
    assert {each.promise for each in found} == {promise}, found


def test_each_promise_cites_rules() -> None:
    assert all(each.rules and each.text.endswith(".") for each in PROMISES.values())


@pytest.mark.parametrize(("options", "status"), [((), 0), (("--clients",), 1)])
def test_validate_judges_both_halves(options: tuple[str, ...], status: int, tmp_path: Path) -> None:
    """The verdict about clients is always there; with ``--clients`` it decides as well."""
    path = CORPUS / "cooperative-kafka-python.jsonl.gz"
    command = [sys.executable, "-m", "fencepost_conformance.cli", "validate", str(path), "--json", *options]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, env=os.environ)
    (verdict,) = json.loads(ended.stdout)["verdicts"]
    assert ended.returncode == status, ended.stderr
    assert verdict["clients"]["verdict"] == "failed"
    (breach,) = verdict["clients"]["breaches"]
    assert breach["promise"] == "owned partitions"
    assert breach["line"] == 146
