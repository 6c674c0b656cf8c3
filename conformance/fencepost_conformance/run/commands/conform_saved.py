"""``fencepost conform --trace FILE``: run traces of events from files, such as sessions of ``fencepost lab``."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from fencepost.protocol.profiles import PROFILES
from fencepost_server.look.made import made_now

from ...common.counting import counted
from ...common.errors import CannotRun
from ...common.interruption import interruptible
from ...generate.generator import Generated
from ...generate.plan import GroupProtocol
from ...judge.known import Accepted
from ...judge.rows.check import Checker, as_row
from ...judge.rows.job import Job, Row, TraceOutcome
from ...judge.rows.summary import Summary
from ...show.console import Result, finish, progress
from ...show.replay.load import Loaded
from ...show.replay.show import chart_of
from ...show.report.chart import Chart
from ...show.report.html import report_page
from ...show.report.terminal import WORDS, counts, details, tables
from ...targets.core import Core
from ...targets.jvm.process import ProcessFault
from ...targets.registry import TargetName, profile_for, report_build
from ...traces.files import BrokenTrace, EventTrace, WireTrace, read_traces


@dataclass(frozen=True, slots=True)
class SavedJob(Job):
    """A job whose seeds are places in a list of files."""

    files: tuple[str, ...] = ()

    def replay(self, seed: int) -> str:
        return f"fencepost replay {self.files[seed]} --target {self.target}"

    def name(self, seed: int) -> str:
        return self.files[seed]


def conform_saved(
    files: Sequence[Path],
    named: TargetName,
    target: str,
    profile: str | None,
    *,
    model: bool,
    out: Path | None,
    accepted: dict[str, Accepted],
    as_json: bool,
) -> None:
    """Run the traces on the target, print the result, and exit. ``profile``: instead of that of the traces.
    Raises ``CannotRun``."""
    if named.kind == "broker":
        raise CannotRun("a trace of events runs on core, kafka:RELEASE or kafka:DIR, not on a broker")
    found = [(str(file), trace) for file in files for trace in _events_of(file)]
    own = dict.fromkeys(trace.profile.name for _, trace in found if isinstance(trace, EventTrace))
    if not own:
        raise CannotRun("; ".join(_fault(trace) for _, trace in found if isinstance(trace, BrokenTrace)))
    if profile is None and len(own) > 1:
        raise CannotRun(f"the traces have the profiles {', '.join(own)}; choose one by --profile")
    name = next(iter(own)) if profile is None else profile_for(named, profile)
    report_build(named, name)
    longest = max(len(trace.events) for _, trace in found if isinstance(trace, EventTrace))
    job = SavedJob(
        target, name, longest, model, GroupProtocol.MIXED, files=tuple(path for path, _ in found)
    )  # fmt: skip
    summary = Summary(job)
    summary.accepted = accepted
    charts: list[tuple[str, Chart]] = []
    began = time.monotonic()
    checker = Checker(job)
    try:
        with interruptible() as cut, progress("saved traces", total=len(found)) as meter:
            for number, (path, trace) in enumerate(found):
                if isinstance(trace, BrokenTrace):
                    summary.add(_unread(trace, number))
                    continue
                made = _under(trace, name, number)
                (examined,) = checker.examine([made])
                row = as_row(made, examined)
                summary.add(row)
                if row.failed and row.group not in dict(charts):
                    charts.append((row.group, chart_of(path, Loaded(path, made, ()), examined, model=model)))
                meter.advance()
    except ProcessFault as fault:
        raise CannotRun(str(fault)) from None
    finally:
        checker.close()
    seconds = time.monotonic() - began
    summary.stopped = cut.reason(f"{summary.traces} of {counted(len(found), 'traces')} run") or ""
    if out is not None:
        made_by = made_now(target=target, profile=name, traces=", ".join(map(str, files)))
        (out / "report.html").write_text(report_page(summary, seconds, charts, made_by), encoding="utf-8")
    result = Result(
        "conform", summary.tally, counts(summary, seconds), details(summary), words=WORDS,
        unsettled=summary.unsettled(), stopped=summary.stopped or None,
    )  # fmt: skip
    finish(result, as_json=as_json, table=None if as_json else tables(summary, coverage=False))


def _events_of(file: Path) -> Iterator[EventTrace | BrokenTrace]:
    """Yield the traces of a file. Raises ``CannotRun`` if the file has no events."""
    try:
        for trace in read_traces(file):
            if isinstance(trace, WireTrace):
                raise CannotRun(f"{file} has messages of clients, not events: fencepost validate {file} judges them")
            yield trace
    except OSError as reason:
        raise CannotRun(f"{file}: {reason.strerror}; give a file of traces") from None


def _fault(trace: BrokenTrace) -> str:
    return f"{trace.path}:{trace.line}: {trace.reason}"


def _unread(trace: BrokenTrace, number: int) -> Row:
    return Row(
        seed=number, outcome=TraceOutcome.BROKEN, divergence="", event=-1, field="file", left=_fault(trace), right="",
        steps=0, replies=0, records=0, timers=0, followed=0, coverage=b"", digest="", group="",
    )  # fmt: skip


def _under(trace: EventTrace, profile: str, number: int) -> Generated:
    """Return the trace with what the core does under that profile."""
    ours, failure = Core().run_until_raised(trace.settings, PROFILES[profile], trace.events)
    end = len(ours) + (failure is not None)
    return Generated(number, trace.settings, PROFILES[profile], trace.events[:end], tuple(ours), failure)
