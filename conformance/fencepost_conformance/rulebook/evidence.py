"""Observe which rules the model applies where it agrees with the world, and write that down.

Two observations. *Lockstep*: random traces are run on Kafka's own coordinator, and the model follows what Kafka did;
each step that it explains counts for the rules by which it does. *Wire*: the bundled recorded traces are explained by a
run of the model; each of its steps counts likewise. ``fencepost rules`` shows the counts.

Run it with ``python -m fencepost_conformance.rulebook.evidence [TRACES]``.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from fencepost.functions import KafkaFunctions
from fencepost.protocol.settings import KAFKA_4_3
from fencepost_model.trace import Follower

from .. import repository
from ..checker.consumer.watch import first_consumer_event
from ..checker.history import History, histories
from ..checker.run import find_traces
from ..checker.search import Limits, Search
from ..console import CannotRun, progress
from ..coverage.features import features_of
from ..generate.generator import generate
from ..generate.plan import GroupProtocol
from ..targets.kafka_jvm import KafkaJvm
from ..trace.files import WireTrace, read_traces
from .standing import evidence_folder

RELEASE = "4.3.1"
TRACES = 700
STEPS = 100
_CHUNK = 50
_FUNCTIONS = KafkaFunctions()


def lockstep(traces: int = TRACES) -> dict[str, Any]:
    """Rules by which the model explains what Kafka did, and in how many steps; the traces are those of seeds 0, 1, … of
    each protocol.

    A rule that no step of the model names, but that the coverage saw decide in what Kafka did, counts by traces.
    """
    rules: Counter[str] = Counter()
    seen_in: Counter[str] = Counter()
    steps = refused = 0
    target = KafkaJvm(RELEASE)
    planned = [(protocol, seed) for protocol in GroupProtocol for seed in range(traces)]
    try:
        with progress(f"Kafka {RELEASE} and the model", len(planned)) as meter:
            for start in range(0, len(planned), _CHUNK):
                chunk = [
                    generate(seed, KAFKA_4_3, STEPS, protocol) for protocol, seed in planned[start : start + _CHUNK]
                ]
                seen = target.run_many([(trace.settings, trace.events) for trace in chunk])
                for trace, observations in zip(chunk, seen, strict=True):
                    follower = Follower(trace.settings, trace.profile, _FUNCTIONS.matcher)
                    for event, observation in zip(trace.events, observations, strict=False):
                        verdict = follower.feed(event, observation)
                        if not verdict.ok:
                            refused += 1
                            break
                        steps += 1
                        rules.update(verdict.rules)
                    else:
                        named = features_of(trace.settings, trace.events, observations)
                        seen_in.update(name.removeprefix("rule ") for name in named if name.startswith("rule "))
                meter.advance(len(chunk))
    finally:
        target.close()
    told = {"kafka": RELEASE, "profile": KAFKA_4_3.name, "traces": len(planned), "steps": steps, "refused": refused}
    return {**told, "rules": dict(sorted({**seen_in, **rules}.items()))}


def wire(files: Iterable[Path]) -> dict[str, Any]:
    """Rules by which the model explains the recorded traces, and in how many of its steps."""
    rules: Counter[str] = Counter()
    traces = groups = 0
    for file in files:
        for trace in read_traces(file):
            if not isinstance(trace, WireTrace):
                continue
            traces += 1
            for whole in histories(trace).values():
                # what follows the first KIP-848 request is judged without the model
                history = History(whole.group_id, whole.events[: first_consumer_event(whole)])
                search = Search(history, trace.settings, trace.profile, Limits())
                if search.run():
                    groups += 1
                    rules.update(rule for step in search.trail for rule in step)
    return {"traces": traces, "groups": groups, "rules": dict(sorted(rules.items()))}


def main() -> None:
    root = repository.root()
    folder = evidence_folder(root)
    folder.mkdir(parents=True, exist_ok=True)
    words = sys.argv[1:] or [str(TRACES)]
    try:
        if len(words) > 1 or not words[0].isdigit():
            raise CannotRun(f"{' '.join(words)!r} is no number of traces")
        traces = int(words[0])
        found = {"wire.json": wire(find_traces([str(root / "tests" / "corpus")])), "lockstep.json": lockstep(traces)}
    except CannotRun as reason:
        print(f"evidence: {reason}", file=sys.stderr)
        raise SystemExit(2) from None
    for name, content in found.items():
        (folder / name).write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
        print(f"{name}: {len(content['rules'])} rules")


if __name__ == "__main__":
    main()
