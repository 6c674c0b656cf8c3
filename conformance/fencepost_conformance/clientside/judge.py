"""One schedule after the other through the core's member and Kafka's; the first event of each where they differ."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from fencepost.protocol.profile import Profile

from ..jvm.builds import Build
from ..jvm.clients import command
from ..jvm.process import LineProcess, ProcessFault
from .outcomes import Outcome, of_kafka
from .schedule import Schedule, schedule


@dataclass(frozen=True, slots=True)
class Difference:
    """``fields``: of the outcome, to (core's, Kafka's)."""

    seed: int
    event: int
    told: dict[str, Any]
    fields: dict[str, tuple[Any, Any]]


@dataclass(frozen=True, slots=True)
class Judged:
    """One schedule: how many events agreed, and the first that did not."""

    seed: int
    steps: int
    difference: Difference | None


def judge(build: Build, profile: Profile, seeds: Iterable[int], length: int) -> Iterator[Judged]:
    """Each seed's schedule through both. Raises ``ProcessFault`` when the JVM fails."""
    process = LineProcess(command(build))
    try:
        process.read(1)
        for seed in seeds:
            made = schedule(seed, length, profile)
            (line,) = process.exchange(json.dumps(made.as_json()).encode() + b"\n", 1)
            answer = json.loads(line)
            if "fault" in answer:
                raise ProcessFault(f"seed {seed}: {answer['fault']}: {process.tail()}")
            yield _compare(seed, made, answer["outcomes"])
    finally:
        process.close()


def _compare(seed: int, made: Schedule, outcomes: list[Outcome]) -> Judged:
    for index, (ours, theirs) in enumerate(zip(made.outcomes, outcomes, strict=False)):
        read = of_kafka(theirs)
        fields = {name: (ours[name], read[name]) for name in ours if ours[name] != read[name]}
        if fields:
            first = ours["event"]
            return Judged(seed, index, Difference(seed, first, made.events[first], fields))
    if len(made.outcomes) != len(outcomes):
        raise ProcessFault(f"seed {seed}: {len(outcomes)} outcomes of {len(made.outcomes)}")
    return Judged(seed, len(outcomes), None)
