"""What a run is to do, and the row that comes out for each trace. Plain values, so that any worker can have them."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from ..generate.plan import GroupProtocol
from ..trace.lines import Setting
from ..verdict import Verdict

#: traces of a broker that are played at the same time unless told otherwise; most of their time is waiting for timers
CONCURRENCY: Final = 48


class TraceOutcome(StrEnum):
    """How a trace ended."""

    AGREED = "agreed"
    DIVERGED = "diverged"  #: at a difference that is known by name
    DIFFERED = "differed"  #: core and target
    REFUSED = "refused"  #: the model does not allow a step
    RAISED = "raised"  #: the core raised
    BROKEN = "broken"  #: the target could not run it, or the checker could not read it
    UNDECIDED = "undecided"  #: the checker cannot say, or nothing was compared

    @property
    def verdict(self) -> Verdict:
        """A difference that is known by name passes."""
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
    """``target``: ``core`` or ``kafka:RELEASE``; ``model``: whether the model checks every step too; ``protocol``: what
    the clients of the traces speak; ``given``: settings of a broker (by field) over what it tells; ``client_config``: a
    file that says how the broker is spoken to (``wire.access``); ``topics``: topics of a broker that exist and are to
    be used; ``concurrency``: how many traces are played on a broker at the same time; ``usual``: no profile
    was asked for, so that a broker at an address is judged by the one that fits what it announces."""

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
        """As JSON data."""
        given = {field: list(value) if isinstance(value, tuple) else value for field, value in self.given}
        config = None if self.client_config is None else str(self.client_config)
        return {**asdict(self), "given": given, "client_config": config}

    def replay(self, seed: int) -> str:
        """The command that shows the trace of that seed again."""
        return (
            f"fencepost replay {seed} --target {self.target} --profile {self.profile} "
            f"--protocol {self.protocol} --steps {self.steps}"
        )


@dataclass(frozen=True, slots=True)
class Row:
    """One trace. Counts are of the steps that agreed; ``event`` is the index of the first step that did not, else -1.

    ``coverage`` is a bitmap over ``coverage.catalogue``; ``digest`` stands for all replies and records of the trace.
    ``group`` is the key of a failure (``group_of``), ``""`` of a trace that did not fail. ``outcome`` is a
    ``TraceOutcome``. Of a trace that was undecided or broken, ``left`` says why.
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
