"""A real client and a real broker, through ``fencepost record`` as a user starts it, ended by Ctrl-C."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from fencepost_conformance.common.errors import CannotRun
from fencepost_conformance.targets.broker import HOST, Broker
from fencepost_conformance.targets.jvm import jars
from fencepost_conformance.targets.jvm.releases import broker_artifacts
from tools.corpus.member import MemberConfig

pytestmark = [pytest.mark.broker, pytest.mark.clients, pytest.mark.slow]


@pytest.fixture(scope="module")
def broker():  # type: ignore[no-untyped-def]
    pytest.importorskip("confluent_kafka", reason="needs confluent-kafka: pip install -e '.[clients]'")
    try:
        jars.fetch(*broker_artifacts(Broker().version))
    except CannotRun as reason:
        pytest.skip(str(reason).splitlines()[0])
    with Broker(initial_rebalance_delay_ms=200) as running:
        running.create_topic("topic", 4)
        yield running


def _member(address: str, name: str, protocol: str) -> subprocess.Popen[str]:
    config = MemberConfig("confluent-kafka", address, f"live-{protocol}", ("topic",), name, protocol=protocol)
    fields = {name: getattr(config, name) for name in MemberConfig.__slots__}
    command = [sys.executable, "-m", "tools.corpus.member", json.dumps(fields)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def _wait_for(member: subprocess.Popen[str], partitions: int) -> None:
    assert member.stdout is not None
    for line in member.stdout:
        event = json.loads(line)
        if event["event"] == "assigned" and len(event["partitions"]) == partitions:
            return
    raise AssertionError("the member ended")


def _close(member: subprocess.Popen[str]) -> None:
    member.communicate("close\n", timeout=120)
    assert member.returncode == 0


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_live_recording_is_whole_and_accepted(broker: Broker, tmp_path: Path, protocol: str) -> None:
    with socket.socket() as free:
        free.bind((HOST, 0))
        here = f"{HOST}:{free.getsockname()[1]}"
    path = tmp_path / "live.jsonl.gz"
    fencepost = [sys.executable, "-m", "fencepost_conformance.cli"]
    recorder = subprocess.Popen(
        [*fencepost, "record", "--json", "--listen", here, "--upstream", broker.bootstrap, "-o", str(path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert recorder.stderr is not None
    assert "assumed: group.consumer.regex.refresh.interval.ms=600000" in recorder.stderr.readline()  # an internal one
    assert here in recorder.stderr.readline()
    one = _member(here, "one", protocol)
    _wait_for(one, 4)
    two = _member(here, "two", protocol)
    _wait_for(two, 2)
    _close(two)
    _wait_for(one, 4)
    _close(one)
    recorder.send_signal(signal.SIGINT)
    output, _ = recorder.communicate(timeout=120)
    assert recorder.returncode == 0
    counts = json.loads(output)["counts"]
    assert counts["malformed"] == 0
    assert counts["events"] > 20

    checked = subprocess.run([*fencepost, "validate", "--json", str(path)], capture_output=True, text=True, check=False)
    result = json.loads(checked.stdout)
    assert (checked.returncode, result["counts"]["passed"]) == (0, 1)
    assert result["verdicts"][0]["events"] > 15
