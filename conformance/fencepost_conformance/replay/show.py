"""A trace with what was found in it: as a chart, as JSON, as a file."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from ..pipeline.check import Examined
from ..pipeline.job import Verdict
from ..report.chart import Chart
from ..report.steps import Teller
from ..rulebook import texts
from ..trace import EventTrace, WireTrace
from .decided import rules_of_steps
from .load import Loaded


def chart_of(name: str, shown: Loaded, found: Examined, *, model: bool = True) -> Chart:
    """The chart of a trace with what was found in it; ``model``: with the rules by which the model explains it."""
    made = shown.trace
    rules = rules_of_steps(made.settings, made.profile, made.events, found.ours) if model else []
    teller = Teller(made.events, found.ours, rules)
    marked = None if found.difference is None else found.difference.event
    return Chart(name, notes(found), teller.lanes(), teller.steps(), marked)


def failing_trace(shown: Loaded, found: Examined) -> EventTrace:
    """The trace with what the core did at each event, as it is written to a file."""
    made = shown.trace
    unseen = len(made.events) - len(found.ours)
    return EventTrace(
        made.settings, made.profile, made.events, (*found.ours, *([None] * unseen)), made.seed, shown.name,
        (("target", "core"),),
    )  # fmt: skip


def notes(found: Examined) -> tuple[str, ...]:
    """What there is to say about the whole trace."""
    if found.difference is None:
        return ()
    other = "model" if found.other is None or found.verdict is Verdict.REFUSED else "target"
    told = [
        f"{found.verdict.value}{f' ({found.divergence})' if found.divergence else ''} "
        f"at event {found.difference.event}, {found.difference.field}",
        f"core: {found.difference.left}",
        f"{other}: {found.difference.right}",
    ]
    if found.rules:
        told += ["rules:", *texts.told(found.rules)]
    return tuple(told)


def as_json(shown: Loaded, found: Examined, chart: Chart) -> dict[str, Any]:
    """The trace and what was found, as JSON data."""
    return {
        "name": shown.name,
        "settings": asdict(shown.trace.settings),
        "profile": shown.trace.profile.name,
        "verdict": found.verdict.value,
        "divergence": found.divergence,
        "difference": None if found.difference is None else asdict(found.difference),
        "rules": list(found.rules),
        "steps": [asdict(step) for step in chart.steps],
    }


def wire_as_json(trace: WireTrace, chart: Chart) -> dict[str, Any]:
    return {"name": trace.name, "profile": trace.profile.name, "steps": [asdict(step) for step in chart.steps]}
