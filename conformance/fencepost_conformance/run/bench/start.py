"""The time of a server's start: ``fencepost serve`` beside franz-go's kfake and Apache Kafka.

Each start is a new process. It is timed until its port is open, and until it has answered a first request. The fastest
of several starts counts, since other processes on the machine can only add time. Python's bytecode is already written,
as after an installation.
"""

from __future__ import annotations

import os
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from ...common.errors import BrokerFault, CannotRun
from .golang import program
from .measure import Row, processor_seconds_of
from .served import Server, kafka

_ROUNDS: Final = 5
_PATIENCE_S: Final = 60.0
_LOOPBACK: Final = "127.0.0.1"
#: ApiVersions v0 without a client id
_ASKED: Final = struct.pack(">ihhih", 10, 18, 0, 1, -1)
#: the figures of a start, in words; Kafka only has the last two
_FIGURES: Final = (
    ("open_s", "until the port is open"),
    ("open_cpu_s", "until the port is open, processor time"),
    ("answer_s", "until the first answer"),
    ("answer_cpu_s", "until the first answer, processor time"),
)


@dataclass(frozen=True, slots=True)
class Start:
    """Seconds from the start of the process: until its port is ``open``, and until the first ``answer``; and the
    processor time of the process up to then."""

    open_s: float
    open_cpu_s: float
    answer_s: float
    answer_cpu_s: float

    @classmethod
    def least(cls, starts: Sequence[Start]) -> Self:
        """Return the least of each figure of several starts."""
        return cls(
            min(each.open_s for each in starts),
            min(each.open_cpu_s for each in starts),
            min(each.answer_s for each in starts),
            min(each.answer_cpu_s for each in starts),
        )


@dataclass(frozen=True, slots=True)
class Starts:
    """The starts of ``fencepost serve`` in memory and with a ``folder``, and of ``kfake``; without that, the reason."""

    memory: Start
    folder: Start
    kfake: Start | None
    lacking: str


def start() -> list[Row]:
    """Measure starts. Without Go the rows have no kfake beside them, without Java no Kafka, with a note."""
    found = starts(_ROUNDS)
    try:
        with kafka() as theirs:
            return [*beside(found, theirs)]
    except (CannotRun, BrokerFault) as reason:
        return [*beside(found, None, f"Kafka: {str(reason).splitlines()[0]}")]


def starts(rounds: int) -> Starts:
    """Time so many starts of each server, in turn. Raises ``CannotRun`` if one does not start."""
    with tempfile.TemporaryDirectory(prefix="fencepost-bench-") as scratch:
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        environment["PYTHONPYCACHEPREFIX"] = str(Path(scratch, "bytecode"))
        memory, folder, others = [], [], []
        try:
            kfake, lacking = [str(program("kfake"))], ""
        except CannotRun as reason:
            kfake, lacking = [], f"kfake: {reason}"
        measured(fencepost(None), environment)  # writes the bytecode
        for number in range(rounds):
            memory.append(measured(fencepost(None), environment))
            folder.append(measured(fencepost(Path(scratch, str(number))), environment))
            if kfake:
                others.append(measured([*kfake, "{port}"], environment))
    return Starts(Start.least(memory), Start.least(folder), Start.least(others) if others else None, lacking)


def beside(found: Starts, theirs: Server | None, lacking: str = "Kafka was not measured") -> Iterator[Row]:
    """Yield the rows of both starts beside kfake and Kafka. Kafka is asked ten times a second whether it answers."""
    for name, ours in (("fencepost", found.memory), ("fencepost with a folder", found.folder)):
        yield from rows(name, ours, found.lacking or "kfake", found.kfake)
        for field, what in _FIGURES[2:]:
            value = getattr(ours, field) * 1000
            if theirs is None:
                yield Row(f"start: {what}", name, value, "ms", lacking)
                continue
            other = (theirs.ready_s if field == "answer_s" else theirs.ready_cpu_s) * 1000
            yield Row(f"start: {what}", name, value, "ms", theirs.name, other, value / other)


def rows(name: str, ours: Start, other: str, theirs: Start | None) -> Iterator[Row]:
    """Yield a row for each figure of a start, beside that of another server, if there is one."""
    for field, what in _FIGURES:
        value = getattr(ours, field) * 1000
        its = None if theirs is None else getattr(theirs, field) * 1000
        yield Row(f"start: {what}", name, value, "ms", other, its, value / its if its else None)


def fencepost(data: Path | None) -> list[str]:
    """Return the command of ``fencepost serve``, in memory or with a folder; ``{port}`` stands for its port."""
    words = [sys.executable, "-m", "fencepost_conformance.cli", "serve", "--listen", f"{_LOOPBACK}:{{port}}"]
    return words if data is None else [*words, "--data", str(data)]


def measured(command: Sequence[str], environment: Mapping[str, str]) -> Start:
    """Time one start of a server. Raises ``CannotRun`` if it ends, or does not answer within a minute."""
    with socket.create_server((_LOOPBACK, 0)) as free:
        port = free.getsockname()[1]
    began = time.perf_counter()
    with _process([word.format(port=port) for word in command], environment) as process:
        while True:
            try:
                connection = socket.create_connection((_LOOPBACK, port), timeout=_PATIENCE_S)
                break
            except ConnectionRefusedError:
                if process.poll() is not None or time.perf_counter() - began > _PATIENCE_S:
                    raise CannotRun(f"{Path(command[0]).name} did not open its port") from None
                time.sleep(0.001)
        opened, opened_cpu = time.perf_counter() - began, processor_seconds_of(process.pid)
        try:
            with connection, connection.makefile("rb") as answers:
                connection.sendall(_ASKED)
                answered = len(answers.read(8)) == 8
        except OSError:
            answered = False
        if not answered:
            raise CannotRun(f"{Path(command[0]).name} does not answer")
        return Start(opened, opened_cpu, time.perf_counter() - began, processor_seconds_of(process.pid))


@contextmanager
def _process(words: Sequence[str], environment: Mapping[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)
    try:
        yield process
    finally:
        process.kill()
        process.wait()
