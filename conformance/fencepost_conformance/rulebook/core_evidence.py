"""Observe which rules are at work in the core where Kafka's own coordinator does the same, and write that down.

Random traces, with offsets in them, are run on the core and on Kafka. In each trace that ends without a difference the
functions of the core that ran are noted; a rule that is cited in the lines of one of them counts for that trace. As
with members (``member_evidence``) that is less than the model's word for each step (``evidence``): a function may cite
a rule that decided nothing there.

Run it with ``python -m fencepost_conformance.rulebook.core_evidence [TRACES]``.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from types import CodeType
from typing import Any, TypeAlias

import fencepost
from fencepost.protocol.events import Event
from fencepost.protocol.profile import Profile
from fencepost.protocol.profiles import KAFKA_4_3, KAFKA_4_4
from fencepost.protocol.settings import Settings
from fencepost.rulebook.book import cited_lines, read_book

from .. import repository
from ..compare.lockstep import compare
from ..console import CannotRun, progress
from ..counting import counted
from ..generate.generator import generate
from ..generate.plan import GroupProtocol
from ..jvm.process import ProcessFault
from ..targets.base import Observation
from ..targets.core import Core
from ..targets.kafka_jvm import KafkaJvm
from .member_evidence import noted, rules_of_functions
from .standing import CORE_EVIDENCE, evidence_folder

#: what the newest release does, and what it did otherwise before
RELEASES = {"4.4.0": KAFKA_4_4, "4.3.1": KAFKA_4_3}
TRACES = 400
STEPS = 100
_CHUNK = 50
#: Where what a coordinator does is written.
_COORDINATOR = Path(fencepost.__file__).parent / "coordinator"

#: the other coordinator: runs whole traces, each afresh
Other: TypeAlias = Callable[[Sequence[tuple[Settings, Sequence[Event]]]], Sequence[Sequence[Observation]]]


def observe(traces: int, other: Other, profile: Profile, told: Callable[[int], None]) -> dict[str, Any]:
    """In how many traces each rule was at work; the traces are those of seeds 0, 1, … of each protocol. ``told`` hears
    how many more are done."""
    book = read_book(repository.root() / "docs" / "rules")
    cited = rules_of_functions(_COORDINATOR, lambda text: iter(cited_lines(text, book)))
    rules: Counter[str] = Counter()
    steps = differing = 0
    planned = [(protocol, seed) for protocol in GroupProtocol for seed in range(traces)]
    for start in range(0, len(planned), _CHUNK):
        chunk = [
            generate(seed, profile, STEPS, protocol, offsets=None) for protocol, seed in planned[start : start + _CHUNK]
        ]
        seen = other([(trace.settings, trace.events) for trace in chunk])
        for trace, theirs in zip(chunk, seen, strict=True):
            ran: set[CodeType] = set()
            with noted(ran, _COORDINATOR):
                ours = Core().run(trace.settings, profile, trace.events)
            compared = compare(trace.settings, profile, trace.events, ours, theirs)
            steps += compared.steps
            # where the other chose otherwise, the core went another way than the one that was noted
            if compared.difference is not None or compared.followed:
                differing += compared.difference is not None
                continue
            rules.update({rule for code in ran for rule in cited.get((code.co_filename, code.co_firstlineno), ())})
        told(len(chunk))
    return {
        "profile": profile.name,
        "traces": len(planned),
        "steps": steps,
        "differing": differing,
        "rules": dict(sorted(rules.items())),
    }


def main() -> None:
    words = sys.argv[1:] or [str(TRACES)]
    try:
        if len(words) > 1 or not words[0].isdigit():
            raise CannotRun(f"{' '.join(words)!r} is no number of traces")
        count = int(words[0])
        rules: Counter[str] = Counter()
        runs = []
        with progress("Kafka and the core", len(RELEASES) * len(GroupProtocol) * count) as meter:
            for release, profile in RELEASES.items():
                with KafkaJvm(release) as kafka:
                    found = observe(count, kafka.run_many, profile, meter.advance)
                rules.update(found.pop("rules"))
                runs.append({"kafka": release, **found})
    except (CannotRun, ProcessFault) as reason:
        print(f"evidence: {reason}", file=sys.stderr)
        raise SystemExit(2) from None
    path = evidence_folder(repository.root()) / CORE_EVIDENCE
    told = {"runs": runs, "rules": dict(sorted(rules.items()))}
    path.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
    print(f"{CORE_EVIDENCE}: {counted(len(rules), 'rules')}")


if __name__ == "__main__":
    main()
