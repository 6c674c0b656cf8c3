"""Kafka's own consumer 4.3.1 with a coordinator that answers in unusual ways: its known faults, seen from outside. The
rules describe the same faults of the member (``fault_*`` in docs/divergences.md)."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path

import pytest
from scripted_broker import TOPIC, UNKNOWN, Answer, Beat, Script, ScriptedBroker

from fencepost_conformance.common.errors import CannotRun
from fencepost_conformance.targets.jvm import jars

pytestmark = pytest.mark.slow
RELEASE = "4.3.1"
SOURCE = Path(__file__).with_name("Client.java")
PATIENCE_S = 90


@pytest.fixture(scope="module")
def classes(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the class path of the compiled client."""
    try:
        libraries = jars.fetch(f"org.apache.kafka:kafka-clients:{RELEASE}", "org.slf4j:slf4j-nop:1.7.36")
        program = jars.java()
    except CannotRun as reason:
        pytest.skip(str(reason).splitlines()[0])
    folder = tmp_path_factory.mktemp("classes")
    path = os.pathsep.join(map(str, [folder, *libraries]))
    compiler = [program, "-m", "jdk.compiler/com.sun.tools.javac.Main", "-nowarn"]
    subprocess.run([*compiler, "-d", str(folder), "-cp", path, str(SOURCE)], check=True, timeout=300)
    return path


class Played:
    """The client, beside its broker."""

    def __init__(self, broker: ScriptedBroker, output: Path) -> None:
        self.broker = broker
        self._output = output

    @property
    def lines(self) -> list[str]:
        """Return the output of the client, without times."""
        return [line.split(" ", 1)[1] for line in self._output.read_text().splitlines()]

    def until(self, holds: Callable[[], bool]) -> None:
        end = time.monotonic() + PATIENCE_S
        while not holds():
            assert time.monotonic() < end, (self.lines, self.broker.beats[-20:])
            time.sleep(0.05)

    def for_seconds(self, seconds: float) -> int:
        """Return the number of heartbeats in that time."""
        before = len(self.broker.beats)
        time.sleep(seconds)
        return len(self.broker.beats) - before


@pytest.fixture
def play(classes: str, tmp_path: Path):
    @contextmanager
    def played(
        script: Script,
        *,
        slow: float = 0,
        failing: int = 0,
        pause: float = 0,
        commits: bool = False,
        known: threading.Event | None = None,
    ):
        output = tmp_path / "output"
        arguments = map(str, (slow, failing, pause, str(commits).lower()))
        with ScriptedBroker(script) as broker, output.open("w") as stream:
            broker.known = known
            command = [jars.java(), "-XX:TieredStopAtLevel=1", "-cp", classes, "Client", str(broker.port), *arguments]
            client = subprocess.Popen(command, stdout=stream)
            try:
                yield Played(broker, output)
            finally:
                client.kill()
                client.wait()

    return played


@pytest.mark.parametrize("resolvable", [True, False])
def test_unresolved_topics_are_awaited_with_heartbeats_at_full_speed(play, resolvable: bool) -> None:
    """N-REC-03, ``fault_part_acknowledged_again``: the interval is five seconds."""
    assignment = {TOPIC: (0,)} if resolvable else {TOPIC: (0,), UNKNOWN: (0,)}

    def script(number: int, beat: Beat) -> Answer:
        return Answer(1, assignment if number == 0 or beat.full else None)

    with play(script) as client:
        client.until(lambda: any(beat.owned == {TOPIC: (0,)} for beat in client.broker.beats))
        beats = client.for_seconds(3)
    assert beats <= 1 if resolvable else beats > 20


def test_partitions_of_a_running_callback_are_not_reported(play) -> None:
    """N-HB-05, ``fault_pending_partitions_unreported``: a full heartbeat during the callback, because an answer was
    lost."""

    def script(number: int, beat: Beat) -> Answer:
        if number == 3:
            return Answer(lost=True)
        return Answer(1, {TOPIC: (0, 1)} if number == 0 or beat.full else None, interval_ms=500)

    with play(script, slow=60) as client:
        client.until(lambda: any(beat.full and beat.epoch > 0 for beat in client.broker.beats))
        client.until(lambda: "assigned [t-0, t-1]" in client.lines)
        (full,) = (beat for beat in client.broker.beats if beat.full and beat.epoch > 0)
    assert full.owned == {}


def test_unreported_partitions_are_taken_while_they_are_withdrawn(play) -> None:
    """N-REC-02, N-HB-05, INV-KIP-09, ``fault_pending_partitions_unreported``: the metadata of the topic arrive during
    ``onPartitionsAssigned(∅)``. A heartbeat that acknowledges nothing counts as the revocation of both partitions
    (M-REC-23)."""
    known, release = threading.Event(), threading.Event()

    def script(number: int, beat: Beat) -> Answer:
        if number == 0:
            return Answer(1, {TOPIC: (0, 1)}, interval_ms=2_000)
        if beat.owned == {}:
            return Answer(2, {}, interval_ms=2_000, held=release)
        return Answer(max(beat.epoch, 1), interval_ms=2_000)

    with play(script, slow=3, known=known) as client:
        client.until(lambda: "assigned []" in client.lines)
        known.set()
        client.until(lambda: "assigned [t-0, t-1]" in client.lines)
        reports = [beat.owned for beat in client.broker.beats if beat.epoch > 0 and beat.owned is not None]
        release.set()
        client.until(lambda: "revoked [t-0, t-1]" in client.lines)
    assert reports == [{}]


@pytest.mark.parametrize("commits", [True, False])
def test_partitions_of_a_failed_callback_stay_when_they_are_withdrawn(play, commits: bool) -> None:
    """N-REC-03, N-REC-09, ``fault_failed_assignment_stays``. Without auto-commit the retry has begun in the background
    (N-REC-01), and withdrawn partitions are revoked after it."""

    def script(number: int, beat: Beat) -> Answer:
        changes = {0: (1, (0,)), 4: (2, (0, 1)), 8: (3, (0,))}
        if number in changes:
            epoch, partitions = changes[number]
            return Answer(epoch, {TOPIC: partitions}, interval_ms=500)
        return Answer(beat.epoch, interval_ms=500)

    with play(script, failing=2, pause=6, commits=commits) as client:
        client.until(lambda: "owns [t-0, t-1]" in client.lines)
        assert "error KafkaException" in client.lines
        if commits:
            client.for_seconds(5)
            assert client.lines[-1] == "owns [t-0, t-1]"
            assert client.broker.beats[-1].epoch == 3
        else:
            client.until(lambda: client.lines[-1] == "owns [t-0]")
            assert "revoked [t-1]" in client.lines
