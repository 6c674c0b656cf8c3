"""Steps per second of the core alone, by kind of groups."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from ...generate.plan import GroupProtocol
from .measure import Row

_ROUNDS = 5
#: Goals from the sources, and compiled.
GOALS = {
    GroupProtocol.CLASSIC: ("50,000", "100,000"),
    GroupProtocol.CONSUMER: ("20,000", "40,000"),
    GroupProtocol.MIXED: ("20,000", "40,000"),
}


class Probe:
    """A process that steps the core, one round at a time."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def rate(self) -> float:
        """Run one more round; returns steps per second of processor time."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(file=self._process.stdin, flush=True)
        steps, seconds = self._process.stdout.readline().split()
        return int(steps) / float(seconds)


@contextmanager
def probe(profile: str, protocol: GroupProtocol, path: Path | None = None) -> Iterator[Probe]:
    words = [sys.executable, "-m", "fencepost_conformance.run.bench.core_probe", profile, protocol.value]
    env = os.environ if path is None else os.environ | {"PYTHONPATH": str(path)}
    with subprocess.Popen(words, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield Probe(process)
        assert process.stdin is not None
        process.stdin.close()


def in_turn(probes: Sequence[Probe]) -> list[list[float]]:
    """Return the rates of each probe, round by round, without the first round, in which everything is new."""
    rounds = [[each.rate() for each in probes] for _ in range(_ROUNDS + 1)]
    return [list(rates) for rates in zip(*rounds[1:], strict=True)]


def core() -> list[Row]:
    """Measure the core from its sources, ``intended`` beside Kafka's profile."""
    rows = []
    for protocol in GroupProtocol:
        with probe("intended", protocol) as intended, probe("kafka-4.4", protocol) as release:
            rows.append(row("core", protocol, "under kafka-4.4", in_turn([intended, release]), GOALS[protocol][0]))
    return rows


def row(name: str, protocol: GroupProtocol, versus: str, rates: list[list[float]], goal: str) -> Row:
    """Return a row for groups of one kind: the first rates beside the second ones."""
    mine, theirs = rates
    ratio = statistics.median(one / other for one, other in zip(mine, theirs, strict=True))
    median = statistics.median
    return Row(
        name, f"{protocol} groups", median(mine), "steps a second", versus, median(theirs), ratio, f"{goal} a second"
    )
