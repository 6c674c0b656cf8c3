"""Observes and stores which rules of members decide where Kafka's own client does the same.

Random schedules run on the core's member and reader and on Kafka's client (``clientside``), and random calls on the
reader's partitions and on Kafka's ``SubscriptionState`` (``jvm.positions``). There are two levels, as for the
coordinator (``core_evidence``):

- ``rules``: the rule *decided*. Without the statement that cites it, or with a mutant that breaks it, an agreeing
  schedule comes out differently (``deletion``).
- ``ran``: a function that cites the rule ran in an agreeing schedule. It may cite a rule that decided nothing there.

Run it with ``python -m tools.evidence.member [SCHEDULES]``.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

import fencepost
from fencepost.protocol.profiles import KAFKA_4_4
from fencepost_conformance.common import repository
from fencepost_conformance.common.counting import counted
from fencepost_conformance.common.errors import CannotRun
from fencepost_conformance.judge.client.judge import Judge, protocols, schedule_of
from fencepost_conformance.judge.client.kinds import Half, MemberProtocol
from fencepost_conformance.judge.client.schedule import Schedule
from fencepost_conformance.judge.rulebook.standing import MEMBER_EVIDENCE, evidence_folder
from fencepost_conformance.run.mutants.catalogue import MUTANTS
from fencepost_conformance.run.mutants.mutant import Side
from fencepost_conformance.show.console import progress
from fencepost_conformance.targets.jvm.builds import Build
from fencepost_conformance.targets.jvm.positions import KafkaPositions, differences, walk
from fencepost_conformance.targets.jvm.process import ProcessFault

from .deletion import Agreed, Deletion, deciding, deletions, of_mutants
from .places import FunctionKey
from .running import Ran, citations, levels, noted, rules_of_functions

RELEASE = "4.4.0"
SCHEDULES = 600
#: seeds from here on; other checks use smaller ones
FIRST_SEED = 100_000
LENGTH = 60
#: a statement is deleted in at most this many schedules, and until this many of them come out differently
MOST, ENOUGH = 40, 3
SIDES = (Side.MEMBER, Side.CONSUMER_MEMBER, Side.READER, Side.ASSIGNOR)
#: The source code of members.
_FOLDERS = ("fencepost/member", "fencepost_consumer")
#: Rules that schedules of readers cannot show, since they have no group, or one of the other protocol, and no
#: kafka-python. They do not count, although functions that run there cite them.
_ALONE: Final = (
    *("K-OFF-02", "K-OFF-12", "K-OFF-13", "K-OFF-14", "K-POLL-05", "K-CB-", "K-LEAVE-", "K-PY-"),
    *("N-CMT-02", "N-CMT-05", "N-REC-", "N-CLOSE-", "N-TR-"),
)
_UNSHOWN: Final[dict[tuple[Half, MemberProtocol], tuple[str, ...]]] = {
    (Half.READER, MemberProtocol.CLASSIC): (*_ALONE, "N-"),
    (Half.READER, MemberProtocol.CONSUMER): _ALONE,
    (Half.GROUP_READER, MemberProtocol.CLASSIC): ("K-PY-", "N-"),
    (Half.GROUP_READER, MemberProtocol.CONSUMER): (
        *("K-OFF-02", "K-OFF-12", "K-OFF-13", "K-OFF-14", "K-POLL-05", "K-CB-", "K-LEAVE-", "K-PY-", "N-CLOSE-"),
    ),
}
_HOME = Path(fencepost.__file__).parents[1]


@dataclass(slots=True)
class Observed:
    """The results of the schedules and walks. ``ran``: number of those in which a function that cites a rule ran;
    ``agreed``: those that can show which rules decide."""

    cited: dict[FunctionKey, set[str]]
    watched: frozenset[FunctionKey]
    ran: Counter[str] = field(default_factory=Counter)
    agreed: list[Agreed] = field(default_factory=list)
    steps: int = 0
    differing: int = 0

    def add(self, run: Agreed) -> None:
        """Add a run that ended as Kafka's did."""
        rules = {rule for key in run.ran.functions for rule in self.cited.get(key, ())}
        self.ran.update(rule for rule in rules if not rule.startswith(run.unshown))
        self.agreed.append(run)


def observe(schedules: int, changes: Sequence[Deletion]) -> tuple[dict[str, Any], Observed]:
    """Run this many schedules of each kind of member and reader, and this many walks of calls, and watch what
    ``changes`` delete.

    Raises ``CannotRun`` without a JVM or a client."""
    cited: dict[FunctionKey, set[str]] = {}
    for folder in _FOLDERS:
        cited |= rules_of_functions(_HOME / folder, citations())
    observed = Observed(cited, frozenset(key for change in changes for key in change.functions))
    seeds = range(FIRST_SEED, FIRST_SEED + schedules)
    judged_with = [(half, protocol) for half in Half for protocol in protocols(half)]
    with progress(f"Kafka's client {RELEASE} and the core's", (len(judged_with) + 1) * schedules) as meter:
        for half, protocol in judged_with:
            with Judge(Build(RELEASE), KAFKA_4_4, protocol, LENGTH, half) as judge:
                for seed in seeds:
                    try:
                        _judge(judge, seed, observed)
                    except ProcessFault as fault:
                        raise CannotRun(str(fault)) from None
                    meter.advance(1)
        with closing(KafkaPositions(RELEASE)) as kafka:
            for seed in seeds:
                _walk(kafka, seed, observed)
                meter.advance(1)
    about = {
        "kafka": RELEASE,
        "profile": KAFKA_4_4.name,
        "seeds": f"{seeds[0]} to {seeds[-1]}",
        "schedules": schedules * len(judged_with),
        "walks": schedules,
        "steps": observed.steps,
        "differing": observed.differing,
    }
    return about, observed


def _judge(judge: Judge, seed: int, observed: Observed) -> None:
    ran = Ran()
    again = partial(schedule_of, *judge.compared, seed, judge.length, judge.profile)
    with noted(ran, _HOME, observed.watched):
        before = again()
    judged = judge.judge(seed)
    observed.steps += judged.steps
    observed.differing += judged.difference is not None
    if judged.difference is None:
        observed.add(Agreed(ran, lambda: other_outcome(before, again()), _UNSHOWN.get(judge.compared, ())))


def _walk(kafka: KafkaPositions, seed: int, observed: Observed) -> None:
    ran = Ran()
    with noted(ran, _HOME, observed.watched):
        before = walk(seed, KAFKA_4_4)
    found = list(differences(kafka, [seed], KAFKA_4_4))
    observed.differing += len(found)
    if not found:
        observed.add(Agreed(ran, lambda: _shows_other(before, walk(seed, KAFKA_4_4)), ("K-PY-",)))


def other_outcome(before: Schedule, now: Schedule) -> bool:
    """Whether an event has another outcome. The member takes a schedule while it is made; so the events up to there
    must be equal, otherwise the two cannot be compared."""
    for ours, theirs in zip(before.outcomes, now.outcomes, strict=False):
        if ours != theirs:
            through = ours["event"] + 1
            return before.events[:through] == now.events[:through]
    return False


def _shows_other(before: tuple[list[str], list[str]], now: tuple[list[str], list[str]]) -> bool:
    """The same for a walk: the same calls, and another state after the last of them."""
    for number, (ours, theirs) in enumerate(zip(before[1], now[1], strict=False), 1):
        if ours != theirs:
            return before[0][:number] == now[0][:number]
    return False


def deleted() -> list[Deletion]:
    """Return every deletion of a place in members and readers, and their mutants."""
    mutants = [each for each in MUTANTS.values() if each.side in SIDES]
    return [*deletions([_HOME / folder for folder in _FOLDERS], citations()), *of_mutants(mutants)]


def main() -> None:
    words = sys.argv[1:] or [str(SCHEDULES)]
    try:
        if len(words) > 1 or not words[0].isdigit():
            raise CannotRun(f"{' '.join(words)!r} is not a number of schedules")
        changes = deleted()
        about, observed = observe(int(words[0]), changes)
        with progress("the core without a statement", len(changes)) as meter:
            decided = deciding(changes, observed.agreed, most=MOST, enough=ENOUGH, advance=meter.advance)
        found = levels(decided, observed.ran)
    except CannotRun as reason:
        print(f"evidence: {reason}", file=sys.stderr)
        raise SystemExit(2) from None
    path = evidence_folder(repository.root()) / MEMBER_EVIDENCE
    path.write_text(json.dumps({**about, **found}, indent=1) + "\n", encoding="utf-8")
    print(f"{MEMBER_EVIDENCE}: {counted(len(found['rules']), 'rules')} decided, {len(found['ran'])} ran")


if __name__ == "__main__":
    main()
