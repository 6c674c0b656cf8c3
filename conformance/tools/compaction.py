"""``python -m tools.compaction``: does a trace's log, in any state, restore the live groups?"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from functools import partial
from typing import Annotated

import typer

from fencepost.protocol.profiles import INTENDED, PROFILES
from fencepost_conformance.common.counting import counted
from fencepost_conformance.common.errors import CannotRun
from fencepost_conformance.common.interruption import interruptible, listen_to_sigterm
from fencepost_conformance.common.processes import worker_processes
from fencepost_conformance.generate.generator import generate
from fencepost_conformance.generate.plan import GroupProtocol
from fencepost_conformance.judge.compaction.core import STEPS, Checked, check
from fencepost_conformance.judge.compaction.kafka import OnKafka, check_on_kafka
from fencepost_conformance.judge.verdict import Tally, outcome_of
from fencepost_conformance.show.console import progress
from fencepost_conformance.targets.jvm.process import ProcessFault
from fencepost_conformance.targets.kafka_jvm import KafkaJvm
from fencepost_conformance.targets.registry import TargetName, parse_target, profile_for

_AT_ONCE = 20  #: traces in one exchange with Kafka


def on_core(traces: int, seed: int, profile: str) -> Iterator[tuple[str, Checked]]:
    """Yield a line about each protocol, and the results. Raises ``CannotRun`` for an unknown profile."""
    switches = PROFILES[profile_for(TargetName("core"), profile)]
    for protocol in GroupProtocol:
        total = Checked()
        one = partial(check, profile=switches, protocol=protocol)
        with worker_processes(os.cpu_count() or 1) as pool, progress(f"loading, {protocol}", traces) as meter:
            for found in pool.map(one, range(seed, seed + traces), chunksize=_AT_ONCE):
                total += found
                meter.advance()
        yield f"{protocol}: {counted(total.loads.total(), 'loads')} of {counted(total.groups, 'groups')}", total


def on_kafka(traces: int, seed: int, version: str) -> Iterator[tuple[str, Checked]]:
    """Yield the same for Kafka. Raises ``CannotRun`` without a JVM, or for an unknown release."""
    profile = PROFILES[profile_for(parse_target(f"kafka:{version}"), None)]
    with KafkaJvm(version, timeout_s=600.0) as kafka:
        for protocol in GroupProtocol:
            total = OnKafka()
            with progress(f"loading on Kafka, {protocol}", traces) as meter:
                for first in range(seed, seed + traces, _AT_ONCE):
                    seeds = range(first, min(first + _AT_ONCE, seed + traces))
                    made = {f"{protocol} {each}": generate(each, profile, STEPS, protocol) for each in seeds}
                    total += check_on_kafka(kafka, made)
                    meter.advance(len(seeds))
            loads = f"{counted(total.loads.total(), 'loads')} of {counted(total.groups, 'groups')}"
            times = counted(total.followed, "times")
            agreed = f"core and Kafka agree at {counted(total.steps, 'steps')}, {times} with Kafka's choices"
            yield f"{protocol}: {loads}; {agreed}", total


def compaction(
    traces: Annotated[int, typer.Option(min=1, help="traces of each protocol")] = 1000,
    seed: Annotated[int, typer.Option(min=0, help="the first seed")] = 0,
    profile: Annotated[str, typer.Option(help="profile of the core")] = INTENDED.name,
    kafka: Annotated[str, typer.Option(help="a Kafka release to test instead of the core, such as 4.4.0")] = "",
) -> None:
    """Load the logs of random traces, in every state that a reader may find, and compare with the live groups."""
    failed = loads = 0
    try:
        with interruptible() as cut:
            for line, found in on_kafka(traces, seed, kafka) if kafka else on_core(traces, seed, profile):
                print(line)
                for name, times in sorted(found.named.items()):
                    print(f"  {times:6} of them differ because of {name}")
                for complaint in found.complaints:
                    print(f"  {complaint}")
                failed += len(found.complaints)
                loads += found.loads.total()
    except (CannotRun, ProcessFault) as reason:
        print(f"compaction: {reason}", file=sys.stderr)
        raise SystemExit(2) from None
    outcome = outcome_of(Tally(passed=max(0, loads - failed), failed=failed), stopped=cut.happened)
    print(outcome)
    raise SystemExit(outcome.status)


if __name__ == "__main__":
    listen_to_sigterm()
    typer.run(compaction)
