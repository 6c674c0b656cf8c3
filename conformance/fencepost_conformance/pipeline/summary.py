"""What a run found, in numbers and lists, from its rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from fencepost.protocol.profiles import PROFILES

from ..counting import counted
from ..coverage import catalogue, wire
from ..known import Accepted
from ..trace import WireTrace
from ..wire.settings import Known
from .job import Job, Row, Verdict

#: how many failures are kept with their details
KEPT = 100


@dataclass(frozen=True, slots=True)
class Judged:
    """A trace that was played against a broker, and the checker's word on it. ``hint``: what a refusal may come from
    instead of the broker."""

    row: Row
    trace: WireTrace
    hint: str = ""


@dataclass(frozen=True, slots=True)
class FailureGroup:
    """Failures of one key: in how many traces; seed, event and both values of the first."""

    key: str
    traces: int
    seed: int
    event: int
    left: str
    right: str


@dataclass(slots=True)
class Summary:
    """Takes rows one by one, in any order; what it says does not depend on the order."""

    job: Job
    traces: int = 0
    steps: int = 0
    replies: int = 0
    records: int = 0
    timers: int = 0
    followed: int = 0
    divergences: Counter[str] = field(default_factory=Counter)
    reached: bytes = b"\0" * ((len(catalogue.FEATURES) + 7) // 8)
    failures: list[Row] = field(default_factory=list)
    failed: int = 0
    groups: dict[str, FailureGroup] = field(default_factory=dict)
    accepted: Mapping[str, Accepted] = field(default_factory=dict)  #: groups that are no failure, with a reason
    undecided: int = 0
    broken: int = 0  #: traces that the target could not run: they have neither held nor failed
    unrun: list[Row] = field(default_factory=list)  #: of those, the first
    stopped: str = (
        ""  #: why not every trace of the plan was done, such as "interrupted"; the rows are of those that were
    )
    recorded: dict[int, WireTrace] = field(
        default_factory=dict
    )  #: refused traces of a broker, which no seed makes again
    hints: dict[int, str] = field(default_factory=dict)  #: of those, what the refusal may come from instead
    known: Known | None = None  #: the settings of a broker, as far as it told them
    absent: tuple[str, ...] = ()  #: names of APIs that a broker does without, so that nobody asked for them
    visible: tuple[str, ...] | None = None  #: the features that a run over the wire can see; None: all

    def add(self, row: Row) -> None:
        self.traces += 1
        self.steps += row.steps
        self.replies += row.replies
        self.records += row.records
        self.timers += row.timers
        self.followed += row.followed
        self.reached = catalogue.union((self.reached, row.coverage))
        if row.verdict == Verdict.DIVERGED:
            self.divergences[row.divergence] += 1
        elif row.verdict == Verdict.UNDECIDED:
            self.undecided += 1
        elif row.verdict == Verdict.BROKEN:
            self.broken += 1
            self.unrun = sorted([*self.unrun, row], key=lambda kept: kept.seed)[:KEPT]
        elif row.failed:
            self.failed += 1
            self.failures = sorted([*self.failures, row], key=lambda kept: kept.seed)[:KEPT]
            self._group(row)

    def add_judged(self, judged: Judged) -> None:
        """A row that is about a trace of a broker."""
        self.add(judged.row)
        if judged.row.failed:
            self.recorded[judged.row.seed] = judged.trace
            if judged.hint:
                self.hints[judged.row.seed] = judged.hint

    def add_all(self, rows: Iterable[Row]) -> None:
        for row in rows:
            self.add(row)

    def _group(self, row: Row) -> None:
        here = FailureGroup(row.group, 1, row.seed, row.event, row.left, row.right)
        before = self.groups.get(row.group)
        if before is not None:
            here = replace(min(before, here, key=lambda group: group.seed), traces=before.traces + 1)
        self.groups[row.group] = here

    @property
    def held(self) -> bool:
        """Nothing failed but what is accepted."""
        return self.groups.keys() <= self.accepted.keys()

    @property
    def gaps(self) -> list[str]:
        """What was planned and is not known: why not all was done, and what could not be run."""
        told = [self.stopped] if self.stopped else []
        if self.broken:
            first = self.unrun[0]
            told.append(f"{counted(self.broken, 'traces')} could not be run (first: seed {first.seed}, {first.left})")
        return told

    def in_order(self) -> list[FailureGroup]:
        """The groups, those in most traces first."""
        return sorted(self.groups.values(), key=lambda group: (-group.traces, group.key))

    def coverage(self) -> dict[str, Any]:
        """Reached, unreached with a reason, unreached without; and how many there are of each kind of feature."""
        features = catalogue.OF_PROTOCOL[self.job.protocol]
        reasons = catalogue.reasons_of(self.job.protocol, PROFILES[self.job.profile])
        if self.visible is not None:
            features, reasons = self.visible, wire.reasons(self.visible)
        reached = set(catalogue.names(self.reached)) & set(features)
        missing = [name for name in features if name not in reached]
        kinds: dict[str, list[int]] = {}
        for name in features:
            seen = kinds.setdefault(name.split()[0], [0, 0])
            seen[0] += name in reached
            seen[1] += name not in reasons
        return {
            "reached": len(reached),
            "features": len(features),
            "kinds": {kind: {"reached": got, "reachable": of} for kind, (got, of) in kinds.items()},
            "unreached": [name for name in missing if name not in reasons],
            "with_reason": {name: reasons[name] for name in missing if name in reasons},
        }
