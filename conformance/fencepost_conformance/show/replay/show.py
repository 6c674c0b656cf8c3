"""A trace with its result: as a chart, as JSON, as a file."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from ...judge.checker.verdict import Verdict as WireVerdict
from ...judge.rows.check import Examined
from ...judge.rows.job import TraceOutcome
from ...judge.rulebook import texts
from ...traces.files import EventTrace, WireTrace
from ..report.chart import Chart
from ..report.steps import StepDescriber
from ..report.wire_words import wire_lanes, wire_names, wire_steps
from .decided import rules_of_steps
from .load import Loaded


def chart_of(name: str, shown: Loaded, found: Examined, *, model: bool = True) -> Chart:
    """Return the chart of a trace with its result; ``model``: with the rules by which the model explains it."""
    made = shown.trace
    rules = rules_of_steps(made.settings, made.profile, made.events, found.ours) if model else []
    describer = StepDescriber(made.events, found.ours, rules)
    rule_lines = tuple(texts.rule_lines(found.rules))
    marked = None if found.difference is None or found.difference.event < 0 else found.difference.event
    return Chart(name, notes(found), describer.lanes(), describer.steps(), marked, describer.names.full(), rule_lines)


def failing_trace(shown: Loaded, found: Examined) -> EventTrace:
    """Return the trace with the core's observation of each event, for a file."""
    made = shown.trace
    unseen = len(made.events) - len(found.ours)
    return EventTrace(
        made.settings, made.profile, made.events, (*found.ours, *([None] * unseen)), made.seed, shown.name,
        (("target", "core"),),
    )  # fmt: skip


def notes(found: Examined) -> tuple[str, ...]:
    """Return notes about the whole trace."""
    if found.difference is None:
        return ()
    if found.difference.event < 0:
        return (f"{found.outcome.value}: {found.difference.left}",)
    other = "model" if found.other is None or found.outcome is TraceOutcome.REFUSED else "target"
    lines = [
        f"{found.outcome.value}{f' ({found.divergence})' if found.divergence else ''} "
        f"at event {found.difference.event}, {found.difference.field}",
        f"core: {found.difference.left}",
        f"{other}: {found.difference.right}",
    ]
    if found.rules:
        lines += ["rules:", *texts.rule_lines(found.rules)]
    return tuple(lines)


def as_json(shown: Loaded, found: Examined, chart: Chart) -> dict[str, Any]:
    """Return the trace and its result as JSON data."""
    return {
        "name": shown.name,
        "settings": asdict(shown.trace.settings),
        "profile": shown.trace.profile.name,
        "verdict": found.outcome.verdict,
        "outcome": found.outcome.value,
        "divergence": found.divergence,
        "difference": None if found.difference is None else asdict(found.difference),
        "rules": list(found.rules),
        "steps": [asdict(step) for step in chart.steps],
    }


def chart_of_wire(trace: WireTrace, name: str, verdict: WireVerdict | None) -> Chart:
    """Return the chart of a wire trace with the checker's verdict, marked at a rejected step; None: it was not checked.

    ``name``: for a trace without a name."""
    lines: tuple[str, ...] = ()
    marked = None
    if verdict is not None:
        lines = wire_notes(verdict)
        if verdict.refusals:
            marked = step_of_line(trace, verdict.refusals[0].line)
    return Chart(trace.name or name, lines, wire_lanes(trace), wire_steps(trace), marked, wire_names(trace))


def step_of_line(trace: WireTrace, line: int) -> int:
    """Return the index of the step of a verdict's line: a line of the file, or, without a file, a line after the
    header, counted from 1."""
    return (trace.numbers.index(line) if trace.numbers else line) - 1


def wire_notes(verdict: WireVerdict) -> tuple[str, ...]:
    """Return the checker's verdict on a trace, a line for each point."""
    if verdict.reason:
        return (f"{verdict.verdict}: line {verdict.line}: {verdict.reason}",)
    lines: list[str] = []
    for refusal in verdict.refusals:
        lines += [
            f"rejected at line {refusal.line}, group {refusal.group_id}: {refusal.sentence}",
            f"the answer could have been: {' or '.join(refusal.allowed)}",
        ]
        if refusal.rules:
            lines.append(f"rules: {', '.join(refusal.rules)}")
        if refusal.hint:
            lines.append(refusal.hint)
    return tuple(lines)


def wire_as_json(trace: WireTrace, chart: Chart, verdict: WireVerdict | None) -> dict[str, Any]:
    """Return the trace and the checker's verdict as JSON data; ``marked``: the index of the rejected step."""
    return {
        "name": trace.name,
        "profile": trace.profile.name,
        "verdict": None if verdict is None else verdict.verdict,
        "checked": None if verdict is None else verdict.as_json(),
        "marked": chart.marked,
        "steps": [asdict(step) for step in chart.steps],
    }
