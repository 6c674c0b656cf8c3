"""The files of a run: summary, page, JUnit XML, and the first failures as traces that can be replayed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

from fencepost.protocol.profiles import PROFILES
from fencepost_server.look.made import made_now

from ..common.counting import counted
from ..generate.generator import Generated, generate
from ..judge.compare.difference import Difference
from ..judge.rows.check import Checker, Examined
from ..judge.rows.job import Job, Row, TraceOutcome
from ..judge.rows.otherwise import profile_of_recordings, profile_of_traces
from ..judge.rows.summary import Summary, file_of
from ..judge.shrink.shrinker import shrink
from ..judge.verdict import Verdict
from ..traces.files import WireTrace, write_traces
from .console import unsettled_as_json
from .replay.load import Loaded
from .replay.show import chart_of, failing_trace, step_of_line
from .report.chart import Chart
from .report.html import report_page
from .report.junit import junit
from .report.terminal import counts, details
from .report.wire_words import wire_lanes, wire_names, wire_steps

#: number of failures that are shrunk and drawn; one of each group
_SHOWN = 5


def write_report(directory: Path, summary: Summary, seconds: float, seed: int | None = None) -> None:
    """Write ``summary.json``, ``report.html``, ``junit.xml`` and ``failures/seed-N.jsonl``, which are shrunk unless the
    user interrupts that. For a broker also write the undecided traces (``undecided/``, ``broken/``). ``seed``: the
    first one."""
    directory.mkdir(parents=True, exist_ok=True)
    charts, otherwise = _failures(directory, summary)
    if summary.over_wire:
        for row in summary.unsettled_rows:
            _write_recorded(directory, summary, row)
    document = {
        "verdict": summary.outcome,
        "counts": counts(summary, seconds) | summary.tally.as_counts(),
        **unsettled_as_json(summary.unsettled()),
        **details(summary),
    }
    (directory / "summary.json").write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    job, seeds = summary.job, None if seed is None else f"{seed} to {seed + max(summary.traces, 1) - 1}"
    made = made_now(target=job.target, profile=job.profile, protocol=job.protocol, seeds=seeds)
    (directory / "report.html").write_text(report_page(summary, seconds, charts, made, otherwise), encoding="utf-8")
    (directory / "junit.xml").write_text(junit(summary, seconds), encoding="utf-8")


#: the key of a group of failures, and one trace of it
Drawn: TypeAlias = tuple[str, Chart]


def _failures(directory: Path, summary: Summary) -> tuple[list[Drawn], str]:
    """Write the failures. Returns those to draw, and a sentence about a profile under which all pass."""
    if not summary.failures:
        return [], ""
    if summary.over_wire:
        return _recorded_failures(directory, summary)
    if summary.stopped:
        return _whole_failures(directory, summary.job, summary.failures[:_SHOWN]), ""
    return _shrunk_failures(directory, summary)


def _shrunk_failures(directory: Path, summary: Summary) -> tuple[list[Drawn], str]:
    job = summary.job
    checker = Checker(job)
    drawn: list[Drawn] = []
    traces: list[Generated] = []
    seen: set[str] = set()
    try:
        for row in summary.failures:
            if row.group in seen or row.group in summary.accepted or len(drawn) == _SHOWN:
                continue
            seen.add(row.group)
            whole = generate(row.seed, checker.profile, job.steps, job.protocol, offsets=None)
            small = shrink(whole, lambda trace: checker.examine([trace])[0])
            shown = Loaded(f"seed {row.seed}, shrunk to {counted(len(small.trace.events), 'events')}", small.trace, ())
            drawn.append(_kept(directory, row, shown, small.found, model=job.model))
            traces.append(small.trace)
            if small.interrupted:
                rest = [other for other in summary.failures if other.group not in seen]
                return drawn + _whole_failures(directory, job, rest[: _SHOWN - len(drawn)]), ""
        whole_run = seen == {group.key for group in summary.rejected()}
        other = profile_of_traces(checker, traces) if whole_run and job.target != "core" else ""
    finally:
        checker.close()
    return drawn, f"Under profile {other} the shortest trace of each cause passes: try --profile {other}." * bool(other)


def _whole_failures(directory: Path, job: Job, rows: Sequence[Row]) -> list[Drawn]:
    """Keep failures unshrunk: after an interrupt shrinking would take too long, and the target may be gone."""
    drawn: list[Drawn] = []
    for row in rows:
        whole = generate(row.seed, PROFILES[job.profile], job.steps, job.protocol, offsets=None)
        found = Examined(
            TraceOutcome(row.outcome), row.steps, Difference(row.event, row.field, row.left, row.right), row.divergence,
            whole.observations, None, row.followed,
        )  # fmt: skip
        drawn.append(_kept(directory, row, Loaded(f"seed {row.seed}", whole, ()), found, model=False))
    return drawn


def _kept(directory: Path, row: Row, shown: Loaded, found: Examined, *, model: bool) -> Drawn:
    """Write a failure's trace and return its chart."""
    (directory / "failures").mkdir(exist_ok=True)
    write_traces(directory / "failures" / f"seed-{row.seed}.jsonl", [failing_trace(shown, found)])
    return row.group, chart_of(shown.name, shown, found, model=model)


def _write_recorded(directory: Path, summary: Summary, row: Row) -> WireTrace:
    """Write the trace of that row, and return it."""
    file, trace = directory / file_of(row), summary.recorded[row.seed]
    file.parent.mkdir(exist_ok=True)
    write_traces(file, [trace])
    return trace


def _recorded_failures(directory: Path, summary: Summary) -> tuple[list[Drawn], str]:
    """Keep traces of a broker whole: a shortened one would show a run that never happened. All of them are written,
    since seeds cannot repeat them; the shortest one of each group is drawn."""
    traces = [_write_recorded(directory, summary, row) for row in summary.failures]
    shortest: dict[str, Row] = {}
    for row in sorted(summary.failures, key=lambda each: len(summary.recorded[each.seed].lines)):
        shortest.setdefault(row.group, row)
    drawn: list[Drawn] = []
    for key in [group.key for group in summary.in_order() if group.key in shortest][:_SHOWN]:
        row = shortest[key]
        trace = summary.recorded[row.seed]
        # a row counts the lines after the header from 1; the written file has the header before them
        notes: tuple[str, ...] = (f"line {row.event + 1}: {row.left}", f"could have been: {row.right}", row.field)
        if hint := summary.hints.get(row.seed):
            notes += (hint,)
        marked = step_of_line(trace, row.event)
        chart = Chart(f"seed {row.seed}", notes, wire_lanes(trace), wire_steps(trace), marked, wire_names(trace))
        drawn.append((key, chart))
    all_here = len(traces) == summary.verdicts[Verdict.FAILED]
    other = profile_of_recordings(summary.job.profile, traces) if all_here else ""
    return drawn, f"Under profile {other} all failed traces pass: try --profile {other}." * bool(other)
