"""Verdicts as rows, for the terminal and for JSON."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from rich.markup import escape

from ...common.counting import counted
from .catalogue import MUTANTS
from .kill import Kill, Verdict


def as_row(verdict: Verdict, strange: str | None = None) -> tuple[str, ...]:
    """Return mutant, source, and a line for each check that found it: what it named, after how many steps, in which
    seed. ``strange``: why those are not the expected ones."""
    found = "\n".join(
        f"{kill.check}: {kill.by}, after {counted(kill.steps, 'steps')} (seed {kill.seed})" for kill in verdict.kills
    )
    mark = "[red]✗[/]" if strange or verdict.broken or not verdict.killed else "[green]✓[/]"
    cell = escape(found) or ("" if verdict.broken else "[red]nothing: it survived[/]")
    if verdict.broken:
        cell += f"\n[red]broken: {escape(verdict.broken)}[/]"
    if strange:
        cell += f"\n[red]{escape(strange)}[/]"
    return f"{mark} {verdict.mutant}", MUTANTS[verdict.mutant].source, cell


def details(verdicts: Sequence[Verdict], false_alarms: Iterable[Kill]) -> dict[str, Any]:
    return {
        "mutants": {verdict.mutant: [_kill(kill) for kill in verdict.kills] for verdict in verdicts},
        "false_alarms": [_kill(kill) for kill in false_alarms],
    }


def _kill(kill: Kill) -> dict[str, Any]:
    return {"check": kill.check, "by": kill.by, "steps": kill.steps, "seed": kill.seed, "text": kill.text}
