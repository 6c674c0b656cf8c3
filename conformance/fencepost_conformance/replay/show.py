"""A trace told on the terminal, as JSON, or as a sequence chart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from rich.console import Group
from rich.markup import escape
from rich.text import Text

from ..pipeline.check import Examined
from ..report.chart import Chart
from ..report.words import COORDINATOR, StepWords, Teller
from ..trace import EventTrace, WireTrace
from .load import Loaded

_INDENT = " " * 20


def chart_of(name: str, shown: Loaded, found: Examined) -> Chart:
    """The chart of a trace with what was found in it."""
    teller = Teller(shown.trace.events, found.ours)
    return Chart(
        name, notes(found), teller.lanes(), teller.steps(), found.difference.event if found.difference else None
    )


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
    told = [
        f"{found.verdict.value}{f' ({found.divergence})' if found.divergence else ''} "
        f"at event {found.difference.event}, {found.difference.field}",
        f"core: {found.difference.left}",
        f"other: {found.difference.right}",
    ]
    if found.rules:
        told.append(f"rules: {', '.join(found.rules)}")
    return tuple(told)


def on_terminal(steps: Sequence[StepWords], marked: int | None) -> Group:
    """Each step as a few lines: time and who says what, then answers, records, timers, groups."""
    lines: list[Text] = []
    for step in steps:
        mark = "[bold red]✗[/] " if step.index == marked else ""
        who = "" if step.who == COORDINATOR else f"[cyan]{escape(step.who)}[/] → "
        if step.what:
            lines.append(
                Text.from_markup(f"{mark}[dim]{step.index:>4} {step.at_ms:>9} ms[/]  {who}{escape(step.what)}")
            )
        for answer in step.answers:
            colour = "red" if answer.error else "green"
            text = f"[{colour}]#{answer.request_id} {escape(answer.text)}[/]"
            lines.append(Text.from_markup(f"{_INDENT}[cyan]{escape(answer.to)}[/] ← {text}"))
        for kind, texts in (("writes", step.records), ("timer", step.timers), ("group", step.groups)):
            lines += [Text.from_markup(f"{_INDENT}[dim]{kind}[/] {escape(text)}") for text in texts]
        if step.error:
            lines.append(Text.from_markup(f"{_INDENT}[red]raised inside: {escape(step.error)}[/]"))
    return Group(*lines)


def as_json(shown: Loaded, found: Examined) -> dict[str, Any]:
    """The trace and what was found, as JSON data."""
    return {
        "name": shown.name,
        "settings": asdict(shown.trace.settings),
        "profile": shown.trace.profile.name,
        "verdict": found.verdict.value,
        "divergence": found.divergence,
        "difference": None if found.difference is None else asdict(found.difference),
        "rules": list(found.rules),
        "steps": [asdict(step) for step in Teller(shown.trace.events, found.ours).steps()],
    }


def wire_as_json(trace: WireTrace, steps: Sequence[StepWords]) -> dict[str, Any]:
    return {"name": trace.name, "profile": trace.profile.name, "steps": [asdict(step) for step in steps]}
