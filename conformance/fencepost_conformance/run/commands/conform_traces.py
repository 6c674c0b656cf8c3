"""The random traces that follow the named cases of a broker."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import RenderableType
from rich.markup import escape

from ...common.errors import CannotRun, NotOffered
from ...common.interruption import INTERRUPTED, interruptible
from ...generate.plan import GroupProtocol
from ...judge.known import Accepted
from ...judge.rows.job import CONCURRENCY, Job
from ...judge.rows.summary import Summary
from ...judge.verdict import Tally
from ...show.console import Result, progress
from ...show.report.terminal import counts, details, tables
from ...targets.registry import TargetName
from ...traces.lines import Setting
from ..pipeline.over_wire import run_over_wire
from ..pipeline.plan import Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class Traces:
    """The random traces to run. ``number``: of each protocol, from ``seed`` on; the other values as in ``Job``."""

    number: int
    steps: int
    seed: int
    protocols: Sequence[GroupProtocol]
    settings: Mapping[str, Setting]
    topics: tuple[str, ...] = ()
    concurrency: int = CONCURRENCY
    workers: int = 0
    accepted: Mapping[str, Accepted]


@dataclass(frozen=True, slots=True, kw_only=True)
class Traced:
    """The traces of one protocol. ``summary``: None if none ran, for the reason ``why``; ``lacks``: because the broker
    does not offer what the protocol needs."""

    protocol: GroupProtocol
    summary: Summary | None = None
    seconds: float = 0.0
    why: str = ""
    lacks: bool = False

    def tables(self) -> Iterator[RenderableType]:
        """Yield the results for a terminal."""
        if self.summary is None:
            yield f"[yellow]no random traces of {self.protocol} groups[/]: {escape(self.why)}"
        else:
            passed = f"{self.summary.tally.passed:,} of {self.summary.traces:,} passed"
            yield f"[bold]random traces of {self.protocol} groups[/]: {passed}"
            yield tables(self.summary, coverage=False)


def run_traces(
    traces: Traces, here: TargetName, target: str, profile: str, client_config: Path | None, *, usual: bool
) -> list[Traced]:
    """Run the traces of each protocol on the broker at an address, and judge them by the model. ``target``: the name
    for the report; ``usual``: no profile was given."""
    done: list[Traced] = []
    for protocol in traces.protocols:
        job = Job(
            target,
            profile,
            traces.steps,
            True,
            protocol,
            tuple(traces.settings.items()),
            client_config,
            traces.topics,
            traces.concurrency,
            usual=usual,
        )
        summary = Summary(job)
        summary.accepted = dict(traces.accepted)
        began = time.monotonic()
        try:
            with interruptible() as cut, progress(f"{protocol} traces", total=traces.number) as meter:
                plan = Plan(job, traces.seed, traces.number)
                run_over_wire(plan, here, summary, meter.advance, traces.workers or os.cpu_count() or 1)
        except NotOffered as reason:
            done.append(Traced(protocol=protocol, why=str(reason), lacks=True))
            continue
        except CannotRun as reason:
            done.append(Traced(protocol=protocol, why=str(reason)))
            continue
        summary.stopped = INTERRUPTED if cut.happened else summary.stopped
        done.append(Traced(protocol=protocol, summary=summary, seconds=time.monotonic() - began))
        if cut.happened:
            break
    return done


def with_traces(result: Result, after: Sequence[Traced]) -> Result:
    """Return the result of the cases with that of the traces."""
    ran = [(each, each.summary) for each in after if each.summary is not None]
    tally = result.tally or Tally()
    stops = [f"no random traces of {each.protocol} groups: {each.why}" for each in after if each.why and not each.lacks]
    for each, summary in ran:
        tally += summary.tally
        if summary.stopped:
            stops.append(f"random traces of {each.protocol} groups: {summary.stopped}")
    if after:
        result.counts["traces"] = sum(summary.traces for _, summary in ran)
        result.counts["steps"] = sum(summary.steps for _, summary in ran)
        result.details["traces"] = {
            str(each.protocol): {
                "verdict": summary.outcome,
                "counts": summary.tally.as_counts() | counts(summary, each.seconds),
                **details(summary),
            }
            for each, summary in ran
        }
    result.skipped |= {f"random traces of {each.protocol} groups": each.why for each in after if each.lacks}
    result.tally = tally
    result.unsettled = [*result.unsettled, *(row for _, summary in ran for row in summary.unsettled())]
    result.stopped = "; ".join(stops) or None
    if after:
        result.things = "cases and traces"
    return result
