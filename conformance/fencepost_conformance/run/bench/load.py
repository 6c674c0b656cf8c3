"""Loading a million offset records after a fail-over, compared with Kafka's serde and coordinator on the same bytes."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from random import Random
from typing import NamedTuple

from fencepost.codec import Codec, RecordBytes
from fencepost.protocol.offset_records import OffsetCommitKey, OffsetCommitValue
from fencepost.protocol.records import Record

from ...common.errors import CannotRun
from ...common.repository import root
from ...targets.jvm import harness, jars
from ...targets.jvm.builds import Build
from ...targets.jvm.releases import NEWEST
from ..compiled import build, is_of_these_sources, unavailable
from .load_probe import write
from .measure import Row

_ROUNDS = 5
_WARMING = 4  #: loads after which Java has compiled the hot code
_TOPICS = 10
GOAL = "2"


class Shape(NamedTuple):
    """The shape of a log: every group commits each of its partitions once a round."""

    groups: int
    partitions: int
    rounds: int

    def __str__(self) -> str:
        return f"{self.groups * self.partitions * self.rounds:,} offsets of {self.groups:,} groups"


#: A partition of the offsets topic that is written faster than it is compacted, and one that is fully compacted.
SHAPES = (Shape(100, 100, 100), Shape(10_000, 100, 1))


class Loaded(NamedTuple):
    """The seconds of processor time of a load, and its result: the number of offsets, and their sum."""

    seconds: float
    offsets: int
    total: int


def log(shape: Shape) -> Iterator[RecordBytes]:
    """Yield the records of a log of this shape, in bytes."""
    draw, codec, number = Random("load"), Codec(), 0
    ids = [draw.randbytes(16) for _ in range(_TOPICS)]
    for _ in range(shape.rounds):
        for group in range(shape.groups):
            for each in range(shape.partitions):
                number += 1
                topic, partition = each % _TOPICS, each // _TOPICS
                key = OffsetCommitKey(f"group-{group}", f"topic-{topic}", partition)
                value = OffsetCommitValue(
                    number, leader_epoch=3, commit_timestamp=1_700_000_000_000 + number, topic_id=ids[topic]
                )
                yield codec.encode(Record(key, value))


def load() -> list[Row]:
    """Measure loads. Raises ``CannotRun`` without a Java runtime or Kafka's jars; without a C compiler the compiled
    core is left out."""
    folders: dict[str, Path | None] = {"": None}
    if not unavailable():
        folders["compiled, "] = root() / "out" / "compiled"
        if not is_of_these_sources(root() / "out" / "compiled"):
            build(root() / "out" / "compiled")
    return [row for shape in SHAPES for row in rows(shape, folders)]


def rows(shape: Shape, folders: dict[str, Path | None], rounds: int = _ROUNDS) -> list[Row]:
    """Load a log of this shape with the core of each folder and with Kafka's, in turn. Raises ``CannotRun`` if their
    results differ."""
    with tempfile.TemporaryDirectory(prefix="fencepost-load-") as folder, ExitStack() as open_ones:
        file = Path(folder) / "log"
        write(file, log(shape))
        kafka = open_ones.enter_context(_process(_kafka(file)))
        cold = _kafkas(kafka)
        for _ in range(_WARMING):
            _kafkas(kafka)
        ours = {name: open_ones.enter_context(_process(_probe(file), path)) for name, path in folders.items()}
        took: dict[str, list[tuple[Loaded, Loaded]]] = {name: [] for name in ours}
        for name, process in (each for _ in range(rounds) for each in ours.items()):
            pair = _ours(process), _kafkas(kafka)
            if pair[0][1:] != pair[1][1:]:
                raise CannotRun(f"the loads have different results: {pair}")
            took[name].append(pair)
    found = [_row(f"{name}{shape}", pairs) for name, pairs in took.items()]
    return [*found, Row("load", f"{shape}: Kafka's first load in its JVM", cold.seconds, "s")]


def _row(what: str, pairs: list[tuple[Loaded, Loaded]]) -> Row:
    return Row(
        "load",
        what,
        statistics.median(mine.seconds for mine, _ in pairs),
        "s",
        "Kafka's serde and coordinator, warm",
        statistics.median(theirs.seconds for _, theirs in pairs),
        statistics.median(mine.seconds / theirs.seconds for mine, theirs in pairs),
        GOAL,
    )


def _kafka(file: Path) -> list[str]:
    path = os.pathsep.join(map(str, harness.classpath(Build(NEWEST))))
    return [jars.java(), "-Xms3g", "-Xmx3g", "-XX:+UseSerialGC", "-cp", path, "fencepost.Loading", str(file)]


def _probe(file: Path) -> list[str]:
    return [sys.executable, "-m", "fencepost_conformance.run.bench.load_probe", str(file)]


@contextmanager
def _process(words: list[str], path: Path | None = None) -> Iterator[subprocess.Popen[str]]:
    env = os.environ if path is None else os.environ | {"PYTHONPATH": str(path)}
    with subprocess.Popen(
        words, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        yield process
        assert process.stdin is not None
        process.stdin.close()


def _asked(process: subprocess.Popen[str]) -> list[str]:
    assert process.stdin is not None
    assert process.stdout is not None
    print(file=process.stdin, flush=True)
    words = process.stdout.readline().split()
    if not words:
        raise CannotRun("a load has failed: its process ended")
    return words


def _ours(process: subprocess.Popen[str]) -> Loaded:
    reading, applying, offsets, total = _asked(process)
    return Loaded(float(reading) + float(applying), int(offsets), int(total))


def _kafkas(process: subprocess.Popen[str]) -> Loaded:
    nanoseconds, offsets, total = _asked(process)
    return Loaded(int(nanoseconds) / 1e9, int(offsets), int(total))
