"""Records per second that the codec writes and reads, from its sources and compiled, beside Kafka's own serde."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fencepost.codec import Codec

from ...common.repository import root
from ...targets.jvm.serde import KafkaSerde, client
from ..compiled import build, is_of_these_sources, unavailable
from .measure import Row
from .records_probe import KINDS

_ROUNDS = 5
_WARMING = 20  #: rounds after which Java has compiled the hot code
_DONE = ("written", "read")
#: Records a second: written and read.
Rates = tuple[float, float]


def records() -> list[Row]:
    """Measure the codec. Raises ``CannotRun`` without a Java runtime or Kafka's jars; without a C compiler the compiled
    codec is left out."""
    folders: dict[str, Path | None] = {"": None}
    if not unavailable():
        folders["compiled, "] = root() / "out" / "compiled"
        if not is_of_these_sources(root() / "out" / "compiled"):
            build(root() / "out" / "compiled")
    kafka = KafkaSerde(timed=True)
    try:
        return [row for kind in KINDS for name, folder in folders.items() for row in _rows(kafka, kind, name, folder)]
    finally:
        kafka.close()


def _rows(kafka: KafkaSerde, kind: str, name: str, folder: Path | None) -> Iterator[Row]:
    codec = Codec()
    given = [codec.encode(record) for record in KINDS[kind]()]
    kafka.ask([client.timed(_WARMING, given)])
    with _probe(kind, folder) as probe:
        _ours(probe)
        pairs = [(_ours(probe), _kafkas(kafka, given)) for _ in range(_ROUNDS)]
    for place, done in enumerate(_DONE):
        yield Row(
            "records",
            f"{name}{kind}: {done}",
            statistics.median(mine[place] for mine, _ in pairs),
            "records a second",
            "Kafka's serde in its JVM, warm",
            statistics.median(theirs[place] for _, theirs in pairs),
            statistics.median(mine[place] / theirs[place] for mine, theirs in pairs),
        )


@contextmanager
def _probe(kind: str, folder: Path | None) -> Iterator[subprocess.Popen[str]]:
    words = [sys.executable, "-m", "fencepost_conformance.run.bench.records_probe", kind]
    env = os.environ if folder is None else os.environ | {"PYTHONPATH": str(folder)}
    with subprocess.Popen(words, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield process
        assert process.stdin is not None
        process.stdin.close()


def _ours(probe: subprocess.Popen[str]) -> Rates:
    assert probe.stdin is not None
    assert probe.stdout is not None
    print(file=probe.stdin, flush=True)
    count, writing, reading = map(float, probe.stdout.readline().split())
    return count / writing, count / reading


def _kafkas(kafka: KafkaSerde, given: list[tuple[bytes, bytes | None]]) -> Rates:
    """Return the better of two rounds: other processes use the machine too, and Java's time is wall-clock time."""
    (answer,) = kafka.ask([client.timed(2, given)])
    return len(given) / (min(answer["writing"]) / 1e9), len(given) / (min(answer["reading"]) / 1e9)
