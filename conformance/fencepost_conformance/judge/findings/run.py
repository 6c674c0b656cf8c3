"""Replays findings on targets by name."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from fencepost.protocol.events import Event
from fencepost.protocol.profile import Profile
from fencepost.protocol.profiles import INTENDED, PROFILES
from fencepost.protocol.settings import Settings

from ...common.errors import CannotRun
from ...common.nearest import unknown
from ...targets.core import Core
from ...targets.kafka_jvm import KafkaJvm
from ...targets.registry import parse_target
from ...traces.observation import Observation
from .catalogue import Finding
from .judge import Judged
from .play import RunMany, play
from .verdicts import verdict


def judge_all(
    findings: Sequence[Finding], folder: Path, run: RunMany, *, advance: Callable[[], None]
) -> dict[str, Judged]:
    """Return the verdict on each finding by its name. ``advance`` is called for each exchange with the target."""
    traces = [each.trace(folder) for each in findings]

    def counted(many: Sequence[tuple[Settings, Sequence[Event]]]) -> Sequence[Sequence[Observation]]:
        advance()
        return run(many)

    played_traces = play([(trace, each.probes) for trace, each in zip(traces, findings, strict=True)], counted)
    return {
        each.name: verdict(each, trace, played)
        for each, trace, played in zip(findings, traces, played_traces, strict=True)
    }


@contextmanager
def opened(target: str) -> Iterator[RunMany]:
    """Open a target by its name: a build of Kafka, or the core (``core:PROFILE``; ``intended`` if none is named).

    Raises ``CannotRun`` if there is no such target, and ``ProcessFault`` if it cannot start or stops by itself."""
    head, _, tail = target.partition(":")
    if head == "core":
        name = tail or INTENDED.name
        if name not in PROFILES:
            raise CannotRun(unknown("profile", name, PROFILES, f"known: {', '.join(sorted(PROFILES))}"))
        yield core(PROFILES[name])
        return
    named = parse_target(target)
    if named.kind != "kafka":
        raise CannotRun(f"{target}: findings are traces of events; use kafka:RELEASE, kafka:DIR or core:PROFILE")
    if named.folder:
        print(f"{named.folder} holds Kafka {named.release}", file=sys.stderr)
    with KafkaJvm(named.build) as kafka:
        yield kafka.run_many


def core(profile: Profile) -> RunMany:
    """Return a function that runs the core under the profile."""
    return lambda many: [Core().run(settings, profile, events) for settings, events in many]
