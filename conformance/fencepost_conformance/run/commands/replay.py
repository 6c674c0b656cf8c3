"""``fencepost replay``: show one trace, step by step."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from fencepost_server.look.made import made_now
from fencepost_server.look.page import page

from ...common.counting import counted
from ...common.errors import CannotRun
from ...common.interruption import interruptible
from ...generate.plan import GroupProtocol
from ...judge.checker.check import check_trace
from ...judge.compare.lockstep import as_far_as_recorded, first_difference
from ...judge.rows.check import Checker, Examined
from ...judge.rows.job import Job, TraceOutcome
from ...judge.shrink.shrinker import kind_of, shrink
from ...judge.verdict import Tally, Unsettled, Verdict
from ...show.console import Result, finish
from ...show.replay.graph import WIDTH, text_chart
from ...show.replay.load import Loaded, load
from ...show.replay.show import as_json as json_of
from ...show.replay.show import chart_of, chart_of_wire, failing_trace, wire_as_json
from ...show.report.chart import Chart, chart_svg
from ...show.report.chart_page import chart_html
from ...targets.jvm.process import ProcessFault
from ...targets.registry import absolute, build_found, parse_target, profile_for, report_build
from ...traces import itf
from ...traces.files import BrokenTrace, EventTrace, WireTrace, write_traces

#: characters of a note on the terminal; a whole group can differ
_NOTE = 500


def replay(  # noqa: PLR0917 — options of a command line
    trace: Annotated[str, typer.Argument(help="a seed, or a file of traces (.jsonl, .jsonl.gz, .itf.json)")],
    target: Annotated[str, typer.Option(help="core, kafka:RELEASE or kafka:DIR")] = "core",
    profile: Annotated[str | None, typer.Option(help="profile of a seed's trace; default: the target's")] = None,
    steps: Annotated[
        int, typer.Option("--steps-per-trace", "--steps", min=1, help="events of a seed's trace, as in conform")
    ] = 60,
    model: Annotated[bool, typer.Option(help="also check every step with the model")] = True,
    protocol: Annotated[GroupProtocol, typer.Option(help="protocol of a seed's trace")] = GroupProtocol.CLASSIC,
    shortest: Annotated[bool, typer.Option("--shrink", help="shrink the trace first, if it fails")] = False,
    html: Annotated[Path | None, typer.Option(help="write a page with the sequence chart")] = None,
    picture: Annotated[Path | None, typer.Option("--svg", help="write only the picture, of one trace")] = None,
    out: Annotated[
        Path | None, typer.Option("--output", "-o", help="write the trace, as JSON Lines or ITF (*.itf.json)")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="one JSON object on standard output")] = False,
) -> None:
    """Show one trace step by step."""
    named = parse_target(target)
    job = Job(absolute(target), profile_for(named, profile), steps, model, protocol)
    if named.kind == "broker":
        raise CannotRun("a trace of events cannot be replayed against a broker; use core, kafka:RELEASE or kafka:DIR")
    report_build(named, job.profile)
    replayed = Replayed(Checker(job), trace, model=model, shortest=shortest)
    items = load(trace, job.profile, steps, protocol)
    try:
        with interruptible() as cut:
            for item in items:
                chart, cut.happened = replayed.add(item)
                if chart is not None and not as_json:
                    _print(chart)
                if cut.happened:
                    break
    except ProcessFault as fault:
        raise CannotRun(str(fault)) from None
    finally:
        replayed.checker.close()
    charts = replayed.charts
    if html is not None and charts:
        made = made_now(target=target, profile=job.profile, seed=trace if trace.lstrip("-").isdigit() else None)
        body = "".join(chart_html(chart) for chart in charts)
        html.write_text(page(f"Fencepost: {trace}", body, made), encoding="utf-8")
    if picture is not None:
        if len(charts) != 1:
            raise CannotRun(f"{picture}: a picture shows one trace, but there are {len(charts)}")
        picture.write_text(chart_svg(charts[0]), encoding="utf-8")
    if out is not None:
        _write(out, replayed.kept)
    result = Result(
        "replay",
        Tally.of(replayed.verdicts) if replayed.verdicts or model else None,
        {"traces": len(replayed.verdicts) if model else len(charts)},
        {"traces": replayed.documents, **build_found(named, job.profile)},
        done="shown, not judged",
        unsettled=replayed.unsettled,
        stopped=cut.reason(f"{len(charts)} of {counted(len(items), 'traces')} shown"),
    )
    finish(result, as_json=as_json)


@dataclass(slots=True)
class Replayed:
    """The traces so far: charts, JSON, traces to write to a file, and their results. Without the ``model`` a trace that
    no other target ran is shown and not judged."""

    checker: Checker
    source: str  #: the seed or file
    model: bool
    shortest: bool
    charts: list[Chart] = field(default_factory=list)
    documents: list[dict[str, Any]] = field(default_factory=list)
    kept: list[EventTrace] = field(default_factory=list)
    verdicts: list[Verdict] = field(default_factory=list)
    unsettled: list[Unsettled] = field(default_factory=list)

    def add(self, item: Loaded | WireTrace | BrokenTrace) -> tuple[Chart | None, bool]:
        """Return the chart of the trace, None if there is nothing to draw; and whether shrinking it was interrupted."""
        if isinstance(item, BrokenTrace):
            self._judged(Verdict.BROKEN, f"{item.path}:{item.line}", item.reason)
            return None, False
        if isinstance(item, WireTrace):
            return self._wire(item), False
        return self._events(item)

    def _events(self, item: Loaded) -> tuple[Chart | None, bool]:
        shown, found, interrupted = _examine(self.checker, item, shortest=self.shortest)
        verdict = found.outcome.verdict
        if self.model or verdict is not Verdict.UNDECIDED:
            self._judged(verdict, item.name, "" if found.difference is None else found.difference.left)
        if verdict is Verdict.BROKEN:
            return None, interrupted
        chart = chart_of(shown.name, shown, found, model=self.model)
        self.documents.append(json_of(shown, found, chart))
        self.kept.append(failing_trace(shown, found))
        self.charts.append(chart)
        return chart, interrupted

    def _wire(self, item: WireTrace) -> Chart:
        checked = check_trace(item, self.source) if self.model else None
        if checked is not None:
            self._judged(checked.verdict, f"{self.source}:{checked.line}", checked.reason)
        chart = chart_of_wire(item, self.source, checked)
        self.documents.append(wire_as_json(item, chart, checked))
        self.charts.append(chart)
        return chart

    def _judged(self, verdict: Verdict, what: str, why: str) -> None:
        self.verdicts.append(verdict)
        if verdict in (Verdict.UNDECIDED, Verdict.BROKEN):
            self.unsettled.append(Unsettled(verdict, what, why))


def _print(chart: Chart) -> None:
    console = Console() if sys.stdout.isatty() else Console(width=WIDTH)
    for line in text_chart(chart, console.width):
        console.print(line, no_wrap=True, overflow="ignore", crop=False)
    for note in chart.notes:
        console.print(note if len(note) <= _NOTE else f"{note[:_NOTE]} …", style="red", markup=False, highlight=False)


def _write(path: Path, traces: list[EventTrace]) -> None:
    if not path.name.endswith(".itf.json"):
        write_traces(path, traces)
    elif len(traces) == 1:
        itf.write_itf(path, traces[0])
    else:
        raise CannotRun(f"{path}: an ITF file holds one trace of events, but there are {len(traces)}")


def _examine(checker: Checker, shown: Loaded, *, shortest: bool) -> tuple[Loaded, Examined, bool]:
    """Run the trace, or its shortest form, on the target, and compare it with its file. Returns the trace, the result,
    and whether shrinking was interrupted."""
    found = checker.examine([shown.trace])[0]
    if shortest and kind_of(found) is not None:
        small = shrink(shown.trace, lambda candidate: checker.examine([candidate])[0])
        return Loaded(f"{shown.name}, shrunk", small.trace, ()), small.found, small.interrupted
    if found.outcome.verdict in (Verdict.PASSED, Verdict.UNDECIDED) and shown.recorded and None not in shown.recorded:
        recorded = [seen for seen in shown.recorded if seen is not None]
        difference = first_difference(as_far_as_recorded(found.ours, recorded), recorded)
        if difference is not None:
            return (
                shown,
                Examined(TraceOutcome.DIFFERED, difference.event, difference, "", found.ours, recorded, 0),
                False,
            )
    return shown, found, False
