"""The results of a run, in numbers and lists, from its rows."""

from __future__ import annotations

from bisect import insort
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from operator import attrgetter
from pathlib import Path
from typing import Any

from ...traces.files import WireTrace
from ...traces.profiles import JUDGED
from ...traces.wire.settings import Known
from ..coverage import catalogue, wire
from ..known import Accepted
from ..verdict import Outcome, Tally, Unsettled, Verdict, gaps, outcome_of
from .job import Job, Row, TraceOutcome

#: number of failures that are kept with their details
KEPT = 100
#: number of undecided traces that are listed; a run with more of them has no useful verdict anyway
UNSETTLED_KEPT = 10_000


@dataclass(frozen=True, slots=True)
class Judged:
    """A trace that was played against a broker, and the checker's verdict. ``hint``: another possible cause of a
    rejection than the broker. ``further``: other faults in the trace, as rows of other failure groups."""

    row: Row
    trace: WireTrace
    hint: str = ""
    further: tuple[Row, ...] = ()


@dataclass(frozen=True, slots=True)
class FailureGroup:
    """Failures with one key: number of traces; seed, event and both values of the first."""

    key: str
    traces: int
    seed: int
    event: int
    left: str
    right: str


@dataclass(slots=True)
class Summary:
    """Collects rows in any order; the result does not depend on the order."""

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
    verdicts: Counter[Verdict] = field(default_factory=Counter)  #: before anything is accepted
    groups: dict[str, FailureGroup] = field(default_factory=dict)
    accepted: Mapping[str, Accepted] = field(default_factory=dict)  #: groups that are not failures, with a reason
    unsettled_rows: list[Row] = field(default_factory=list)  #: undecided and broken traces, by seed
    stopped: str = ""  #: why some traces of the plan were not run, such as "interrupted"
    #: traces of a broker that did not pass; a seed cannot repeat them
    recorded: dict[int, WireTrace] = field(default_factory=dict)
    folder: Path | None = None  #: where these are written
    hints: dict[int, str] = field(default_factory=dict)  #: for those, another possible cause of the rejection
    known: Known | None = None  #: the settings of a broker, as far as it told them
    absent: tuple[str, ...] = ()  #: names of APIs that the broker lacks, so that they were not used
    over_wire: bool = False  #: seeds do not repeat these traces
    visible: tuple[str, ...] | None = None  #: the features that a run over the wire can see; None: all

    def add(self, row: Row) -> None:
        self.traces += 1
        self.steps += row.steps
        self.replies += row.replies
        self.records += row.records
        self.timers += row.timers
        self.followed += row.followed
        self.reached = catalogue.union((self.reached, row.coverage))
        verdict = row.verdict
        self.verdicts[verdict] += 1
        if row.outcome == TraceOutcome.DIVERGED:
            self.divergences[row.divergence] += 1
        if verdict is Verdict.FAILED:
            _keep(self.failures, row, KEPT)
            self._group(row)
        elif verdict is not Verdict.PASSED:
            _keep(self.unsettled_rows, row, UNSETTLED_KEPT)

    def add_judged(self, judged: Judged) -> None:
        """Add the verdict on a trace of a broker."""
        self.over_wire = True
        self.add(judged.row)
        if judged.row.verdict is not Verdict.PASSED:
            self.recorded[judged.row.seed] = judged.trace
            if judged.hint:
                self.hints[judged.row.seed] = judged.hint
        for row in judged.further:
            self._group(row)

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
    def known_traces(self) -> int:
        """Number of traces that differ in an accepted group."""
        return sum(group.traces for key, group in self.groups.items() if key in self.accepted)

    @property
    def tally(self) -> Tally:
        """The verdicts; a trace with accepted differences only has passed."""
        found, known = Tally(**{verdict.value: number for verdict, number in self.verdicts.items()}), self.known_traces
        return replace(found, passed=found.passed + known, failed=found.failed - known)

    @property
    def outcome(self) -> Outcome:
        return outcome_of(self.tally, stopped=bool(self.stopped))

    @property
    def gaps(self) -> list[str]:
        """Why some traces are not decided, a sentence for each reason."""
        return gaps(self.tally, self.unsettled(), "traces", self.stopped)

    def unsettled(self) -> list[Unsettled]:
        """Return the undecided and broken traces, each with its seed, its reason and the command that shows it."""
        return [self._unsettled(row) for row in self.unsettled_rows]

    def _unsettled(self, row: Row) -> Unsettled:
        place = {"seed": row.seed, "protocol": self.job.protocol.value, "profile": self.job.profile}
        if row.seed not in self.recorded:
            return Unsettled(row.verdict, f"seed {row.seed}", row.left, place | {"replay": self.job.replay(row.seed)})
        file = None if self.folder is None else str(self.folder / file_of(row))
        where = "" if file is None else f", {file}"
        return Unsettled(row.verdict, f"seed {row.seed}{where}", row.left, place | {"file": file})

    def rejected(self) -> list[FailureGroup]:
        """The groups that are not accepted."""
        return [group for group in self.in_order() if group.key not in self.accepted]

    def in_order(self) -> list[FailureGroup]:
        """Return the groups, those in most traces first."""
        return sorted(self.groups.values(), key=lambda group: (-group.traces, group.key))

    def coverage(self) -> dict[str, Any]:
        """Return reached features, unreached ones with and without a reason, and the number of each kind."""
        features = catalogue.OF_PROTOCOL[self.job.protocol]
        reasons = catalogue.reasons_of(self.job.protocol, JUDGED[self.job.profile])
        if self.visible is not None:
            settings = None if self.known is None else self.known.settings
            features, reasons = self.visible, wire.reasons(self.visible, self.job.protocol, settings)
        reached = set(catalogue.names(self.reached)) & set(features)
        missing = [name for name in features if name not in reached]
        kinds: dict[str, list[int]] = {}
        for name in features:
            seen = kinds.setdefault(name.split()[0], [0, 0])
            seen[0] += name in reached
            seen[1] += name in reached or name not in reasons
        return {
            "reached": len(reached),
            "features": len(features),
            "kinds": {kind: {"reached": got, "reachable": of} for kind, (got, of) in kinds.items()},
            "unreached": [name for name in missing if name not in reasons],
            "with_reason": {name: reasons[name] for name in missing if name in reasons},
        }


def file_of(row: Row) -> Path:
    """Return the file of a broker's trace, below the folder of the run."""
    return Path("failures" if row.failed else row.verdict.value) / f"seed-{row.seed}.jsonl"


def _keep(rows: list[Row], row: Row, most: int) -> None:
    """Insert the row in order; drop the last one beyond ``most``."""
    insort(rows, row, key=attrgetter("seed"))
    del rows[most:]
