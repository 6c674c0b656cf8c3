"""Observes and stores which rules the model applies where it agrees with Kafka.

There are two observations. *Lockstep*: random traces run on Kafka's own coordinator, and the model follows what Kafka
did; each explained step counts for the rules that explain it. *Wire*: a run of the model explains the bundled recorded
traces; each of its steps counts likewise. ``fencepost rules`` shows the counts.

Run it with ``python -m tools.evidence.traces [TRACES]``.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fencepost.functions import KafkaFunctions
from fencepost.protocol.errors import IMPOSSIBLE
from fencepost.protocol.profiles import KAFKA_4_3
from fencepost_conformance.common import repository
from fencepost_conformance.common.counting import counted
from fencepost_conformance.common.errors import CannotRun
from fencepost_conformance.generate.generator import Generated, generate
from fencepost_conformance.generate.plan import GroupProtocol
from fencepost_conformance.judge.checker.consumer.watch import first_consumer_event
from fencepost_conformance.judge.checker.history import History, histories
from fencepost_conformance.judge.checker.search import Limits, Search
from fencepost_conformance.judge.compare.atomic import fails_within
from fencepost_conformance.judge.coverage.features import features_of
from fencepost_conformance.judge.rulebook.standing import evidence_folder
from fencepost_conformance.run.validate.run import find_traces
from fencepost_conformance.show.console import progress
from fencepost_conformance.targets.kafka_jvm import KafkaJvm
from fencepost_conformance.traces.files import WireTrace, read_traces
from fencepost_conformance.traces.observation import Observation
from fencepost_model.trace import Follower

from .running import possible

RELEASE = "4.3.1"
TRACES = 700
#: seeds from here on; other evidence uses smaller ones
FIRST_SEED = 200_000
STEPS = 100
_CHUNK = 50
_FUNCTIONS = KafkaFunctions()


@dataclass(slots=True)
class Tally:
    """The results so far.

    ``impossible``: number of traces that ended before an impossible event, by the message of Kafka's harness. A trace
    is made with the core's choices; where Kafka chose another leader, a later event may be impossible. ``within``:
    number of traces that ended before an append that fails within its step; Kafka and the model split such a step
    differently (``compare.atomic``). ``seen_in``: rules that the coverage saw decide in what Kafka did, by number of
    traces.
    """

    steps: int = 0
    refused: int = 0
    within: int = 0
    impossible: Counter[str] = field(default_factory=Counter)
    rules: Counter[str] = field(default_factory=Counter)
    seen_in: Counter[str] = field(default_factory=Counter)

    def add(self, trace: Generated, observations: Sequence[Observation]) -> None:
        """Let the model follow what Kafka did, up to an impossible event or a step that it rejects."""
        follower = Follower(trace.settings, trace.profile, _FUNCTIONS.matcher)
        count = 0
        for event, observation in zip(trace.events, observations, strict=False):
            if observation.error in IMPOSSIBLE:
                self.impossible[observation.error] += 1
                break
            if fails_within(trace.events, count):
                self.within += 1
                break
            verdict = follower.feed(event, observation)
            if not verdict.ok:
                self.refused += 1
                return
            self.steps += 1
            self.rules.update(verdict.rules)
            count += 1
        named = features_of(trace.settings, trace.events[:count], observations[:count])
        self.seen_in.update(name.removeprefix("rule ") for name in named if name.startswith("rule "))


def lockstep(traces: int = TRACES) -> dict[str, Any]:
    """Return the rules by which the model explains what Kafka did, with the number of steps; for this many traces of
    each protocol, with seeds from ``FIRST_SEED`` on. Raises ``CannotRun`` if one of the rules cannot occur.

    A rule that no step of the model names, but that the coverage saw decide in what Kafka did, counts by traces.
    """
    tally = Tally()
    target = KafkaJvm(RELEASE)
    seeds = range(FIRST_SEED, FIRST_SEED + traces)
    planned = [(protocol, seed) for protocol in GroupProtocol for seed in seeds]
    try:
        with progress(f"Kafka {RELEASE} and the model", len(planned)) as meter:
            for start in range(0, len(planned), _CHUNK):
                chunk = [
                    generate(seed, KAFKA_4_3, STEPS, protocol, offsets=None)
                    for protocol, seed in planned[start : start + _CHUNK]
                ]
                seen = target.run_many([(trace.settings, trace.events) for trace in chunk])
                for trace, observations in zip(chunk, seen, strict=True):
                    tally.add(trace, observations)
                meter.advance(len(chunk))
    finally:
        target.close()
    return {
        "kafka": RELEASE,
        "profile": KAFKA_4_3.name,
        "seeds": f"{seeds[0]} to {seeds[-1]}",
        "traces": len(planned),
        "steps": tally.steps,
        "refused": tally.refused,
        "append_fails_within": tally.within,
        "impossible": dict(sorted(tally.impossible.items())),
        "rules": possible(tally.seen_in | tally.rules),
    }


def wire(files: Iterable[Path]) -> dict[str, Any]:
    """Return the rules by which the model explains the recorded traces, with the number of its steps."""
    rules: Counter[str] = Counter()
    traces = groups = 0
    for file in files:
        for trace in read_traces(file):
            if not isinstance(trace, WireTrace):
                continue
            traces += 1
            for whole in histories(trace).values():
                # lines after the first KIP-848 request are judged without the model
                history = History(whole.group_id, whole.events[: first_consumer_event(whole)])
                search = Search(history, trace.settings, trace.profile, Limits())
                if search.run():
                    groups += 1
                    rules.update(rule for step in search.trail for rule in step)
    return {"traces": traces, "groups": groups, "rules": possible(rules)}


def main() -> None:
    root = repository.root()
    folder = evidence_folder(root)
    folder.mkdir(parents=True, exist_ok=True)
    words = sys.argv[1:] or [str(TRACES)]
    try:
        if len(words) > 1 or not words[0].isdigit():
            raise CannotRun(f"{' '.join(words)!r} is not a number of traces")
        traces = int(words[0])
        found = {"wire.json": wire(find_traces([str(root / "tests" / "corpus")])), "lockstep.json": lockstep(traces)}
    except CannotRun as reason:
        print(f"evidence: {reason}", file=sys.stderr)
        raise SystemExit(2) from None
    for name, content in found.items():
        (folder / name).write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
        print(f"{name}: {counted(len(content['rules']), 'rules')}")


if __name__ == "__main__":
    main()
