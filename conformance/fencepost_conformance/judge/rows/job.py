"""The description of a run, and the row that results from each trace. Plain values, so that any worker can use them."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from ...generate.plan import GroupProtocol
from ...traces.lines import Setting
from ..verdict import Verdict

#: default number of traces played on a broker at the same time; they mostly wait for timers
CONCURRENCY: Final = 48


class TraceOutcome(StrEnum):
    """How a trace ended."""

    AGREED = "agreed"
    DIVERGED = "diverged"  #: ended at a known difference
    DIFFERED = "differed"  #: core and target differ
    REFUSED = "refused"  #: the model does not allow a step
    RAISED = "raised"  #: the core raised
    BROKEN = "broken"  #: the target could not run it, or the checker could not read it
    UNDECIDED = "undecided"  #: the checker cannot say, or nothing was compared

    @property
    def verdict(self) -> Verdict:
        """The verdict; a known difference passes."""
        return _VERDICTS.get(self, Verdict.FAILED)

    @property
    def failed(self) -> bool:
        return self.verdict is Verdict.FAILED


_VERDICTS = {
    TraceOutcome.AGREED: Verdict.PASSED,
    TraceOutcome.DIVERGED: Verdict.PASSED,
    TraceOutcome.BROKEN: Verdict.BROKEN,
    TraceOutcome.UNDECIDED: Verdict.UNDECIDED,
}


@dataclass(frozen=True, slots=True)
class Job:
    """What to run. ``target``: ``core`` or ``kafka:RELEASE``; ``model``: whether the model checks every step too;
    ``protocol``: of the traces' clients; ``given``: settings of a broker (by field) that override its own answers;
    ``client_config``: a file with the broker's connection settings (``wire.access``); ``topics``: existing topics of a
    broker to use; ``concurrency``: number of traces played on a broker at the same time; ``usual``: no profile was
    given, so a broker at an address is judged by the profile that fits its versions."""

    target: str
    profile: str
    steps: int
    model: bool = True
    protocol: GroupProtocol = GroupProtocol.CLASSIC
    given: tuple[tuple[str, Setting], ...] = ()
    client_config: Path | None = None
    topics: tuple[str, ...] = ()
    concurrency: int = CONCURRENCY
    usual: bool = False

    def as_dict(self) -> dict[str, Any]:
        """Return the job as JSON data."""
        given = {field: list(value) if isinstance(value, tuple) else value for field, value in self.given}
        config = None if self.client_config is None else str(self.client_config)
        return {**asdict(self), "given": given, "client_config": config}

    def name(self, seed: int) -> str:
        """Return the name of the trace of that seed in a report."""
        return f"seed {seed}"

    def replay(self, seed: int) -> str:
        """Return the command that shows the trace of that seed again."""
        return (
            f"fencepost replay {seed} --target {self.target} --profile {self.profile} "
            f"--protocol {self.protocol} --steps {self.steps}"
        )


@dataclass(frozen=True, slots=True)
class Row:
    """The result of one trace. Counts are of the steps that agreed; ``event`` is the index of the first step that did
    not, else -1.

    ``coverage`` is a bitmap over ``coverage.catalogue``. ``digest`` is of all replies and records of the trace.
    ``group`` is the key of a failure (``group_of``), ``""`` if the trace did not fail. ``outcome`` is a
    ``TraceOutcome``. For a trace that was undecided or broken, ``left`` says why.
    """

    seed: int
    outcome: str
    divergence: str
    event: int
    field: str
    left: str
    right: str
    steps: int
    replies: int
    records: int
    timers: int
    followed: int
    coverage: bytes
    digest: str
    group: str

    @property
    def verdict(self) -> Verdict:
        return TraceOutcome(self.outcome).verdict

    @property
    def failed(self) -> bool:
        return self.verdict is Verdict.FAILED


def failure_kind(outcome: str, field: str) -> tuple[str, str]:
    return outcome, re.sub(r"\[[^]]*\]|\d+", "", field)
