"""The files of a run: summary, page, JUnit XML, and the first failures as traces that can be replayed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from fencepost.protocol.profiles import PROFILES
from fencepost_server.look.made import made_now

from ..common.counting import counted
from ..generate.generator import generate
from ..judge.compare.difference import Difference
from ..judge.rows.check import Checker, Examined
from ..judge.rows.job import Job, Row, TraceOutcome
from ..judge.rows.summary import Summary, file_of
from ..judge.shrink.shrinker import shrink
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
    charts = _failures(directory, summary)
    if summary.over_wire:
        for row in summary.unsettled_rows:
            _write_recorded(directory, summary, row)
    told = {
        "verdict": summary.outcome,
        "counts": counts(summary, seconds) | summary.tally.as_counts(),
        **unsettled_as_json(summary.unsettled()),
        **details(summary),
    }
    (directory / "summary.json").write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
    job, seeds = summary.job, None if seed is None else f"{seed} to {seed + max(summary.traces, 1) - 1}"
    made = made_now(target=job.target, profile=job.profile, protocol=job.protocol, seeds=seeds)
    (directory / "report.html").write_text(report_page(summary, seconds, charts, made), encoding="utf-8")
    (directory / "junit.xml").write_text(junit(summary, seconds), encoding="utf-8")


def _failures(directory: Path, summary: Summary) -> list[Chart]:
    if not summary.failures:
        return []
    if summary.over_wire:
        return _recorded_failures(directory, summary)
    if summary.stopped:
        return _whole_failures(directory, summary.job, summary.failures[:_SHOWN])
    return _shrunk_failures(directory, summary)


def _shrunk_failures(directory: Path, summary: Summary) -> list[Chart]:
    job = summary.job
    checker = Checker(job)
    charts: list[Chart] = []
    seen: set[str] = set()
    try:
        for row in summary.failures:
            if row.group in seen or row.group in summary.accepted or len(charts) == _SHOWN:
                continue
            seen.add(row.group)
            whole = generate(row.seed, checker.profile, job.steps, job.protocol, offsets=None)
            small = shrink(whole, lambda trace: checker.examine([trace])[0])
            shown = Loaded(f"seed {row.seed}, shrunk to {counted(len(small.trace.events), 'events')}", small.trace, ())
            charts.append(_kept(directory, row, shown, small.found, model=job.model))
            if small.interrupted:
                rest = [other for other in summary.failures if other.group not in seen]
                return charts + _whole_failures(directory, job, rest[: _SHOWN - len(charts)])
    finally:
        checker.close()
    return charts


def _whole_failures(directory: Path, job: Job, rows: Sequence[Row]) -> list[Chart]:
    """Keep failures unshrunk: after an interrupt shrinking would take too long, and the target may be gone."""
    charts: list[Chart] = []
    for row in rows:
        whole = generate(row.seed, PROFILES[job.profile], job.steps, job.protocol, offsets=None)
        found = Examined(
            TraceOutcome(row.outcome), row.steps, Difference(row.event, row.field, row.left, row.right), row.divergence,
            whole.observations, None, row.followed,
        )  # fmt: skip
        charts.append(_kept(directory, row, Loaded(f"seed {row.seed}", whole, ()), found, model=False))
    return charts


def _kept(directory: Path, row: Row, shown: Loaded, found: Examined, *, model: bool) -> Chart:
    """Write a failure's trace and return its chart."""
    (directory / "failures").mkdir(exist_ok=True)
    write_traces(directory / "failures" / f"seed-{row.seed}.jsonl", [failing_trace(shown, found)])
    return chart_of(shown.name, shown, found, model=model)


def _write_recorded(directory: Path, summary: Summary, row: Row) -> WireTrace:
    """Write the trace of that row, and return it."""
    file, trace = directory / file_of(row), summary.recorded[row.seed]
    file.parent.mkdir(exist_ok=True)
    write_traces(file, [trace])
    return trace


def _recorded_failures(directory: Path, summary: Summary) -> list[Chart]:
    """Keep traces of a broker whole: a shortened one would show a run that never happened. All of them are written,
    since seeds cannot repeat them; the first few are drawn."""
    charts: list[Chart] = []
    for row in summary.failures:
        trace = _write_recorded(directory, summary, row)
        if len(charts) == _SHOWN:
            continue
        # a row counts the lines after the header from 1; the written file has the header before them
        notes: tuple[str, ...] = (f"line {row.event + 1}: {row.left}", f"could have been: {row.right}", row.field)
        if hint := summary.hints.get(row.seed):
            notes += (hint,)
        marked = step_of_line(trace, row.event)
        charts.append(Chart(f"seed {row.seed}", notes, wire_lanes(trace), wire_steps(trace), marked, wire_names(trace)))
    return charts
