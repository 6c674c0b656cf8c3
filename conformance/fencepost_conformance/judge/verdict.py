"""Verdicts: on one judged thing, and on a run of many.

A judged thing is a trace, a schedule, a configuration, a mutant, a finding, a rule or a stage of ``make run``. It
passes only if it was decided. A run passes only if each of its things passed, so a run that decided nothing does not
pass. Every command takes its exit status from ``outcome_of``; ``docs/command-line.md`` has the table.

Accepted differences (named divergences of a profile, groups of ``--known``) are decided: they count as passed, and the
commands list them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from enum import StrEnum
from operator import add
from typing import Any, Self

from ..common.counting import counted


class Verdict(StrEnum):
    """The verdict on one judged thing."""

    PASSED = "passed"
    FAILED = "failed"
    UNDECIDED = "undecided"  #: it was examined, but no verdict is possible
    BROKEN = "broken"  #: it could not be read or run


class Outcome(StrEnum):
    """The outcome of a run."""

    PASSED = "passed"
    FAILED = "failed"
    INCOMPLETE = "incomplete"  #: nothing failed, but not everything was decided

    @property
    def status(self) -> int:
        """The exit status."""
        return {Outcome.PASSED: 0, Outcome.FAILED: 1, Outcome.INCOMPLETE: 2}[self]


@dataclass(frozen=True, slots=True)
class Tally:
    """The number of judged things for each verdict."""

    passed: int = 0
    failed: int = 0
    undecided: int = 0
    broken: int = 0

    @classmethod
    def of(cls, verdicts: Iterable[Verdict]) -> Self:
        """Return the tally of these verdicts."""
        return cls(**{verdict.value: number for verdict, number in Counter(verdicts).items()})

    def __add__(self, other: Tally) -> Tally:
        return Tally(*map(add, self.as_counts().values(), other.as_counts().values()))

    def as_counts(self) -> dict[str, int]:
        """Return the numbers by their names, for ``console.Result``."""
        return {each.name: getattr(self, each.name) for each in fields(self)}

    @property
    def total(self) -> int:
        return sum(self.as_counts().values())


def outcome_of(tally: Tally, *, stopped: bool = False) -> Outcome:
    """Return the outcome of a run: failed if something failed; else incomplete if something was undecided or broken, if
    the run was ``stopped`` early, or if nothing was decided; else passed."""
    if tally.failed:
        return Outcome.FAILED
    if stopped or tally.undecided or tally.broken or not tally.passed:
        return Outcome.INCOMPLETE
    return Outcome.PASSED


@dataclass(frozen=True, slots=True)
class Unsettled:
    """A judged thing without a verdict. ``verdict``: undecided or broken; ``what``: which one, such as ``seed 7`` or a
    file; ``details``: the same and more for JSON."""

    verdict: Verdict
    what: str
    why: str
    details: Mapping[str, Any] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """As JSON data."""
        return {"what": self.what, "why": self.why, **self.details}


def gaps(tally: Tally, unsettled: Sequence[Unsettled], things: str, stopped: str | None = None) -> list[str]:
    """Return why a run is incomplete, a sentence for each reason; empty if everything was decided. ``things``: the
    plural of what was judged; ``stopped``: why the run ended early."""
    reasons = [stopped] if stopped else []
    for verdict in (Verdict.UNDECIDED, Verdict.BROKEN):
        if number := tally.as_counts()[verdict]:
            first = next((each for each in unsettled if each.verdict is verdict), None)
            where = f" (first: {first.what}: {first.why})" if first is not None else ""
            reasons.append(f"{number:,} of {counted(tally.total, things)} {verdict.value}{where}")
    if not reasons and not tally.total:
        reasons.append("nothing was decided")
    return reasons
