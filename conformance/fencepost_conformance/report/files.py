"""The files of a run: summary, page, JUnit XML, and each of the first failures as a trace that can be replayed."""

from __future__ import annotations

import json
from pathlib import Path

from ..counting import counted
from ..generate.generator import generate
from ..pipeline.check import Checker
from ..pipeline.summary import Summary
from ..replay.load import Loaded
from ..replay.show import chart_of, failing_trace
from ..shrink.shrinker import shrink
from ..trace import write_traces
from .chart import Chart
from .html import report_page
from .junit import junit
from .terminal import counts, details
from .wire_words import wire_lanes, wire_steps

#: failures that are shrunk and drawn; of several at the same field, one
_SHOWN = 5


def write_report(directory: Path, summary: Summary, seconds: float) -> None:
    """Write ``summary.json``, ``report.html``, ``junit.xml`` and ``failures/seed-N.jsonl`` (shrunk)."""
    directory.mkdir(parents=True, exist_ok=True)
    charts = _shrunk_failures(directory, summary)
    told = {"counts": counts(summary, seconds), **details(summary)}
    (directory / "summary.json").write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
    (directory / "report.html").write_text(report_page(summary, seconds, charts), encoding="utf-8")
    (directory / "junit.xml").write_text(junit(summary, seconds), encoding="utf-8")


def _shrunk_failures(directory: Path, summary: Summary) -> list[Chart]:
    if not summary.failures:
        return []
    if summary.recorded:
        return _recorded_failures(directory, summary)
    job = summary.job
    checker = Checker(job)
    charts: list[Chart] = []
    seen: set[tuple[str, str]] = set()
    try:
        for row in summary.failures:
            kind = row.kind
            if kind in seen or len(charts) == _SHOWN:
                continue
            seen.add(kind)
            whole = generate(row.seed, checker.profile, job.steps, job.protocol)
            small = shrink(whole, lambda trace: checker.examine([trace])[0])
            shown = Loaded(f"seed {row.seed}, shrunk to {counted(len(small.trace.events), 'events')}", small.trace, ())
            charts.append(chart_of(shown.name, shown, small.found, model=job.model))
            (directory / "failures").mkdir(exist_ok=True)
            write_traces(directory / "failures" / f"seed-{row.seed}.jsonl", [failing_trace(shown, small.found)])
    finally:
        checker.close()
    return charts


def _recorded_failures(directory: Path, summary: Summary) -> list[Chart]:
    """Traces of a broker are kept whole: to leave something out of them would be to invent a run."""
    charts = []
    (directory / "failures").mkdir(exist_ok=True)
    for row in summary.failures[:_SHOWN]:
        trace = summary.recorded[row.seed]
        write_traces(directory / "failures" / f"seed-{row.seed}.jsonl", [trace])
        notes = (f"line {row.event}: {row.left}", f"allowed: {row.right}", row.field)
        charts.append(Chart(f"seed {row.seed}", notes, wire_lanes(trace), wire_steps(trace), row.event - 2))
    return charts
