"""Servers for load tests, each a separate process on loopback that ends with the run."""

from __future__ import annotations

import os
import re
import select
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ...common.errors import CannotRun
from ...targets.broker import Broker
from ...targets.jvm.releases import NEWEST
from .golang import program
from .measure import processor_seconds_of

_START_S = 60.0
#: The same for all servers that have them: no delay before the first rebalance, and short heartbeats are allowed.
SETTINGS: dict[str, str] = {
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "100",
    "group.consumer.assignment.interval.ms": "0",
    "group.consumer.min.session.timeout.ms": "100",
    "group.consumer.min.heartbeat.interval.ms": "50",
}
PARTITIONS = 4


@dataclass(frozen=True, slots=True)
class Server:
    """``pid``: of its process, for its processor time. ``ready_s``: how long its process took to start, and
    ``ready_cpu_s`` the processor time of that."""

    name: str
    bootstrap: str
    pid: int
    ready_s: float
    ready_cpu_s: float = 0.0

    def resident_mib(self) -> float:
        """Return its current memory."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        found = re.search(r"^VmRSS:\s+(\d+) kB", status, re.MULTILINE)
        return int(found[1]) / 1024 if found else float("nan")


@contextmanager
def fencepost(
    data: Path | None = None,
    *,
    name: str = "fencepost",
    flush: bool = True,
    core: Path | None = None,
    settings: Mapping[str, str] = SETTINGS,
    more: Sequence[str] = (),
) -> Iterator[Server]:
    """Start ``fencepost serve``. ``data``: with a store in that folder, durable if it is to ``flush``. ``core``: a
    folder with the compiled core. ``settings``: by Kafka's names; ``more``: other arguments."""
    words = [sys.executable, "-m", "fencepost_conformance.cli", "serve", "--listen", "127.0.0.1:0"]
    words += ["--partitions", str(PARTITIONS), *_settings(settings), *more]
    if data is not None:
        words += ["--data", str(data), *["--no-flush"] * (not flush)]
    path = os.pathsep.join(filter(None, [None if core is None else str(core), os.environ.get("PYTHONPATH")]))
    environment = os.environ | ({"PYTHONPATH": path} if path else {})
    with started(name, words, re.compile(r"listening on (\S+)"), environment) as server:
        yield server


@contextmanager
def kafka() -> Iterator[Server]:
    """Start the newest release of Apache Kafka. Raises ``CannotRun`` without Java or its jars."""
    with Broker(NEWEST, offsets_partitions=PARTITIONS, heap_mb=1024, timed=True, settings=SETTINGS) as broker:
        spent = processor_seconds_of(broker.pid)
        yield Server(f"Kafka {NEWEST}", broker.bootstrap, broker.pid, broker.ready_s, spent)


@contextmanager
def kfake() -> Iterator[Server]:
    """Start franz-go's broker in memory. Raises ``CannotRun`` without Go."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with started("kfake", [str(program("kfake")), str(port)], re.compile(r"(127\.0\.0\.1:\d+)")) as server:
        yield server


def _settings(settings: Mapping[str, str]) -> list[str]:
    return [word for name, value in settings.items() for word in ("--setting", f"{name}={value}")]


@contextmanager
def started(
    name: str, words: list[str], says: re.Pattern[str], environment: dict[str, str] | None = None
) -> Iterator[Server]:
    """Start a process that prints the address of its server, which ``says`` finds. Raises ``CannotRun``."""
    began = time.perf_counter()
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=errors, text=True, env=environment)
        try:
            bootstrap = _address(process, says)
            if bootstrap is None:
                errors.seek(0)
                raise CannotRun(f"{name} did not start: {errors.read().strip()[-300:] or 'no output'}")
            yield Server(name, bootstrap, process.pid, time.perf_counter() - began)
        finally:
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            if process.stdout is not None:
                process.stdout.close()


def _address(process: subprocess.Popen[str], says: re.Pattern[str]) -> str | None:
    assert process.stdout is not None
    until = time.monotonic() + _START_S
    while (left := until - time.monotonic()) > 0 and select.select([process.stdout], [], [], left)[0]:
        line = process.stdout.readline()
        if found := says.search(line):
            return found[1]
        if not line:
            return None
    return None
