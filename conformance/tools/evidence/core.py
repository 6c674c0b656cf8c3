"""Observes and stores which rules decide in the core where Kafka's own coordinator does the same.

Random traces, with offsets in them, run on the core and on Kafka. For each trace that ends without a difference, the
functions of the core that ran are noted. There are two levels:

- ``rules``: the rule *decided*. Without the statement that cites it, or with a mutant that breaks it, an agreeing trace
  comes out differently (``deletion``).
- ``ran``: a function that cites the rule ran in an agreeing trace. It may cite a rule that decided nothing there.

Run it with ``python -m tools.evidence.core [TRACES]``.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import fencepost
from fencepost.protocol.events import Event
from fencepost.protocol.profile import Profile
from fencepost.protocol.profiles import KAFKA_4_3, KAFKA_4_4
from fencepost.protocol.settings import Settings
from fencepost_conformance.common import repository
from fencepost_conformance.common.counting import counted
from fencepost_conformance.common.errors import CannotRun
from fencepost_conformance.generate.generator import generate
from fencepost_conformance.generate.plan import GroupProtocol
from fencepost_conformance.judge.compare.lockstep import compare
from fencepost_conformance.judge.rulebook.standing import CORE_EVIDENCE, evidence_folder
from fencepost_conformance.run.mutants.catalogue import MUTANTS
from fencepost_conformance.run.mutants.mutant import Side
from fencepost_conformance.show.console import progress
from fencepost_conformance.targets.core import Core, CoreSession
from fencepost_conformance.targets.ids import MemberIds
from fencepost_conformance.targets.java_order import JavaOrder
from fencepost_conformance.targets.jvm.process import ProcessFault
from fencepost_conformance.targets.kafka_jvm import KafkaJvm
from fencepost_conformance.traces.observation import Observation

from .deletion import Agreed, Deletion, deciding, deletions, of_mutants
from .running import Ran, citations, levels, noted, rules_of_functions

#: the newest release, and the previous one
RELEASES = {"4.4.0": KAFKA_4_4, "4.3.1": KAFKA_4_3}
TRACES = 400
#: seeds from here on; other evidence uses smaller ones
FIRST_SEED = 100_000
STEPS = 100
#: a statement is deleted in at most this many agreeing traces, and until this many of them come out differently
MOST, ENOUGH = 40, 3
SIDES = (Side.COORDINATOR, Side.CONSUMER_GROUP, Side.MIXED_GROUP, Side.OFFSETS, Side.ASSIGNOR)
_CHUNK = 50
#: The source code of the coordinator.
_COORDINATOR = Path(fencepost.__file__).parent / "coordinator"

#: the other coordinator: runs whole traces, each from the start
Other: TypeAlias = Callable[[Sequence[tuple[Settings, Sequence[Event]]]], Sequence[Sequence[Observation]]]


@dataclass(slots=True)
class Observed:
    """The results of the traces. ``ran``: for each rule, the number of traces in which a function that cites it ran.
    ``agreed``: the traces that can show which rules decide, when ``changes`` delete them."""

    changes: list[Deletion]
    ran: Counter[str] = field(default_factory=Counter)
    agreed: list[Agreed] = field(default_factory=list)


def observe(
    seeds: range, other: Other, profile: Profile, into: Observed, advance: Callable[[int], None]
) -> dict[str, Any]:
    """Run the traces of these seeds, of each protocol, and count them. ``advance`` gets the number of new ones."""
    cited = rules_of_functions(_COORDINATOR, citations())
    watched = {key for change in into.changes for key in change.functions}
    steps = differing = 0
    planned = [(protocol, seed) for seed in seeds for protocol in GroupProtocol]
    for start in range(0, len(planned), _CHUNK):
        chunk = [
            generate(seed, profile, STEPS, protocol, offsets=None) for protocol, seed in planned[start : start + _CHUNK]
        ]
        seen = other([(trace.settings, trace.events) for trace in chunk])
        for trace, theirs in zip(chunk, seen, strict=True):
            ran = Ran()
            with noted(ran, _COORDINATOR, watched):
                ours = Core().run(trace.settings, profile, trace.events)
            compared = compare(trace.settings, profile, trace.events, ours, theirs)
            steps += compared.steps
            # if the other made different choices, the core's path differed from the noted one
            if compared.difference is not None or compared.followed:
                differing += compared.difference is not None
                continue
            into.ran.update({rule for key in ran.functions for rule in cited.get(key, ())})
            into.agreed.append(Agreed(ran, partial(_differs, trace.settings, profile, trace.events, ours)))
        advance(len(chunk))
    return {
        "profile": profile.name,
        "seeds": f"{seeds[0]} to {seeds[-1]}",
        "traces": len(planned),
        "steps": steps,
        "differing": differing,
    }


def _differs(settings: Settings, profile: Profile, events: Sequence[Event], before: Sequence[Observation]) -> bool:
    """Whether some event has another outcome in the core than in ``before``."""
    session = CoreSession(settings, profile, JavaOrder(MemberIds()))
    return any(session.offer(event) != seen for event, seen in zip(events, before, strict=True))


def deleted() -> list[Deletion]:
    """Return every deletion of a place in the coordinator, and its mutants."""
    mutants = [each for each in MUTANTS.values() if each.side in SIDES]
    return [*deletions([_COORDINATOR], citations()), *of_mutants(mutants)]


def main() -> None:
    words = sys.argv[1:] or [str(TRACES)]
    try:
        if len(words) > 1 or not words[0].isdigit():
            raise CannotRun(f"{' '.join(words)!r} is not a number of traces")
        count = int(words[0])
        seeds = range(FIRST_SEED, FIRST_SEED + count)
        runs, changes = [], deleted()
        observed = Observed(changes)
        with progress("Kafka and the core", len(RELEASES) * len(GroupProtocol) * count) as meter:
            for release, profile in RELEASES.items():
                with KafkaJvm(release) as kafka:
                    run = observe(seeds, kafka.run_many, profile, observed, meter.advance)
                runs.append({"kafka": release, **run})
        with progress("the core without a statement", len(changes)) as meter:
            decided = deciding(changes, observed.agreed, most=MOST, enough=ENOUGH, advance=meter.advance)
        found = levels(decided, observed.ran)
    except (CannotRun, ProcessFault) as reason:
        print(f"evidence: {reason}", file=sys.stderr)
        raise SystemExit(2) from None
    path = evidence_folder(repository.root()) / CORE_EVIDENCE
    path.write_text(json.dumps({"runs": runs, **found}, indent=1) + "\n", encoding="utf-8")
    print(f"{CORE_EVIDENCE}: {counted(len(found['rules']), 'rules')} decided, {len(found['ran'])} ran")


if __name__ == "__main__":
    main()
