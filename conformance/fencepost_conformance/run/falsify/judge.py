"""The checker's verdicts on falsified copies of one file."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path

from ...judge.checker.check import check_trace
from ...judge.verdict import Tally, Unsettled, Verdict
from ...traces.files import BrokenTrace, EventTrace, read_traces
from .falsehoods import falsehoods


@dataclass(slots=True)
class Judged:
    """``made``: number of copies of each kind; ``wrong``: copies with a wrong verdict, in words; ``unsettled``: copies
    that the checker could not decide, and traces that cannot be read."""

    made: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    unsettled: list[Unsettled] = field(default_factory=list)

    def add(self, other: Judged) -> None:
        self.made += other.made
        self.wrong += other.wrong
        self.unsettled += other.unsettled

    def tally(self) -> Tally:
        """Count the copies; one passes if the checker rejects it where it breaks."""
        open_ = Tally.of(each.verdict for each in self.unsettled)
        passed = self.made.total() - len(self.wrong) - open_.undecided
        return replace(open_, passed=passed, failed=len(self.wrong))


def judge(path: Path, per_kind: int | None) -> Judged:
    """Judge the falsified copies of a file's traces."""
    found = Judged()
    for trace in read_traces(path):
        if isinstance(trace, BrokenTrace):
            found.unsettled.append(Unsettled(Verdict.BROKEN, f"{trace.path}:{trace.line}", trace.reason))
        if isinstance(trace, BrokenTrace | EventTrace):
            continue
        for false in falsehoods(trace, per_kind):
            found.made[false.kind] += 1
            what = f"{path}: {false.kind} at event {false.first}"
            checked = check_trace(false.trace)
            if checked.outcome in ("undecided", "broken"):
                found.unsettled.append(Unsettled(Verdict.UNDECIDED, what, checked.reason))
            elif checked.outcome == "accepted":
                found.wrong.append(f"{what}: accepted")
            elif not false.first <= checked.refusals[0].line <= false.last:
                at = checked.refusals[0].line
                found.wrong.append(f"{what}: rejected at {at}, not within {false.first}…{false.last}")
    return found
