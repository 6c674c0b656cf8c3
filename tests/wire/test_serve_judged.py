"""The suite checks the server: random traces over the wire, and recordings of a real client."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from random import SystemRandom
from typing import Any

import pytest
from served import Served

from fencepost.wire.frames import API_KEYS

COMMAND = [sys.executable, "-m", "fencepost_conformance.cli"]


def answered(*words: str) -> dict[str, Any]:
    """Return the output of a command under ``--json``."""
    ended = subprocess.run([*COMMAND, *words, "--json"], capture_output=True, text=True, timeout=300, check=False)
    found: dict[str, Any] = json.loads(ended.stdout)
    return found | {"returncode": ended.returncode}


def conform(server: Served, protocol: str, profile: str, traces: int, seed: int | None = None) -> dict[str, Any]:
    """Random clients, with fresh seeds unless the first one is given."""
    first = SystemRandom().randrange(10**9) if seed is None else seed
    words = ("--traces", str(traces), "--steps", "40", "--seed", str(first), "--workers", "1")
    return answered("conform", "--target", server.bootstrap, "--protocol", protocol, "--profile", profile, *words)


@pytest.mark.parametrize("profile", ["intended", "kafka-4.4", pytest.param("kafka-4.0", marks=pytest.mark.all)])
@pytest.mark.parametrize("traces", [4, pytest.param(100, marks=pytest.mark.all)])
def test_random_traces_over_the_wire_are_as_the_core_has_them(profile: str, traces: int) -> None:
    """Traces of classic groups, of KIP-848, and of both together."""
    with Served("--profile", profile, "--setting", "group.initial.rebalance.delay.ms=300", topics=()) as server:
        found = conform(server, "all", profile, traces)
    assert (found["passed"], found["returncode"]) == (True, 0), found
    assert found["protocols"].keys() == {"classic", "consumer", "mixed"}
    assert found["counts"]["steps"] > 80 * traces


def test_a_server_that_behaves_differently_is_found() -> None:
    """A server under ``intended``, checked as Kafka 4.4: in Kafka a static member that returns waits for itself
    (M-STATIC-02), and a late join is believed (M-FENCE-07). The traces of seeds 26 and 36 meet this."""
    with Served("--profile", "intended", topics=()) as server:
        found = conform(server, "consumer", "kafka-4.4", 11, seed=26)
    assert (found["passed"], found["returncode"]) == (False, 1)


@pytest.mark.clients
@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_answers_to_a_real_client_are_accepted(protocol: str, tmp_path: Path) -> None:
    confluent = pytest.importorskip("confluent_kafka", reason="needs confluent-kafka: pip install -e '.[clients]'")
    trace = tmp_path / "trace.jsonl"
    with Served("--profile", "kafka-4.4", "--setting", "group.initial.rebalance.delay.ms=0") as server:
        words = [*COMMAND, "record", "--listen", "127.0.0.1:0", "--upstream", server.bootstrap, "-o", str(trace)]
        recorder = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert recorder.stderr is not None
        line = recorder.stderr.readline()
        at = next(word for word in line.replace(",", " ").split() if word.startswith("127.0.0.1:"))
        settings = {"bootstrap.servers": at, "group.id": "judged", "group.protocol": protocol}
        members = []
        for _ in range(2):
            member = confluent.Consumer({**settings, "auto.offset.reset": "earliest"})
            member.subscribe(["orders"])
            members.append(member)
        deadline = time.monotonic() + 90
        while sum(len(each.assignment()) for each in members) < 4 or not all(each.assignment() for each in members):
            assert time.monotonic() < deadline
            for each in members:
                each.poll(0.1)
        for each in members:
            each.close()
        recorder.send_signal(signal.SIGINT)
        recorder.communicate(timeout=120)
    found = answered("validate", str(trace))
    assert (found["passed"], found["returncode"]) == (True, 0), found
    asked = {json.loads(row).get("api_key") for row in trace.read_text().splitlines()}
    assert API_KEYS["join_group" if protocol == "classic" else "consumer_group_heartbeat"] in asked
