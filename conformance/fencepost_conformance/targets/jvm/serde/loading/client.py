"""Asks Kafka's own loader; ``Loads.java`` has the format of questions and answers."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from random import Random
from typing import NamedTuple

from fencepost.codec import Codec, CodecError, Opaque
from fencepost.protocol.offset_records import ControlKey

from ... import jars
from ...builds import Build
from ...compiled import classes, sources
from ...process import LineProcess
from ...releases import NEWEST
from .. import draw
from ..compare import Difference


class Entry(NamedTuple):
    """A record of a log."""

    control: bool
    key: bytes | None
    value: bytes | None


class Taken(NamedTuple):
    """``places``: positions in the log of the records that a coordinator gets; for the end of an aborted transaction,
    -1 minus the position. ``whole``: the load did not fail."""

    places: tuple[int, ...]
    whole: bool


class KafkaLoader:
    """One JVM with the loader of one Kafka release, 4.3 or later. Raises ``CannotRun`` without a JDK or the jars."""

    def __init__(self, version: str = NEWEST) -> None:
        build = Build(version)
        libraries = build.libraries()
        compiled = classes("loads", build, sources(__package__), libraries)
        path = os.pathsep.join(map(str, [compiled, *libraries]))
        self._child = LineProcess([jars.java(), "-Xmx512m", *jars.SHORT_RUN, "-cp", path, "fencepost.loading.Loads"])

    def close(self) -> None:
        self._child.close()

    def ask(self, logs: Sequence[Sequence[Entry]]) -> list[Taken]:
        """Return what is loaded from each log."""
        lines = [json.dumps([[control, _hex(key), _hex(value)] for control, key, value in log]) for log in logs]
        answers = self._child.exchange("".join(line + "\n" for line in lines).encode(), len(lines))
        return [Taken(tuple(answer["taken"]), answer["failed"] is None) for answer in map(json.loads, answers)]


def damaged_logs(codec: Codec, seed: str, count: int) -> list[list[Entry]]:
    """Draw logs of a few records each, some of them damaged; none of a type that the project does not read."""
    rng = Random(f"{seed} logs")
    return [[_entry(rng, codec) for _ in range(rng.randint(1, 5))] for _ in range(count)]


def _entry(rng: Random, codec: Codec) -> Entry:
    while True:
        if rng.random() < 0.3:
            return Entry(True, *draw.marker(rng))
        key, value = draw.damaged(rng, codec) if rng.random() < 0.6 else codec.encode(draw.record(rng))
        try:
            read = codec.decode(key, value)
        except CodecError:
            return Entry(False, key, value)
        if not isinstance(read, Opaque):
            return Entry(False, key, value)


def differences(kafka: KafkaLoader, codec: Codec, seed: str, count: int) -> Iterator[Difference]:
    """Yield logs from which the codec loads something else than Kafka's loader."""
    logs = damaged_logs(codec, seed, count)
    for log, theirs in zip(logs, kafka.ask(logs), strict=True):
        ours = taken(codec, log)
        if ours != theirs:
            yield Difference(log, ours, theirs)


def taken(codec: Codec, log: Sequence[Entry]) -> Taken:
    """Return what a load takes from the log, according to the codec."""
    places: list[int] = []
    for place, (control, key, value) in enumerate(log):
        try:
            record = codec.loaded(key, value, control=control)
        except CodecError:
            return Taken(tuple(places), whole=False)
        if record is not None:
            aborted = isinstance(record.key, ControlKey) and not record.key.committed
            places.append(-1 - place if aborted else place)
    return Taken(tuple(places), whole=True)


def _hex(data: bytes | None) -> str | None:
    return None if data is None else data.hex()
