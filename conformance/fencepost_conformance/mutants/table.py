"""The verdicts as rows: for the terminal, for JSON, and for the documentation."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from rich.markup import escape

from ..counting import counted
from .catalogue import MUTANTS
from .suite import Kill, Verdict


def as_row(verdict: Verdict) -> tuple[str, ...]:
    """Mutant, source, and a line for each check that found it: what it named, after how many steps, in which seed."""
    found = "\n".join(
        f"{kill.check}: {kill.by}, after {counted(kill.steps, 'steps')} (seed {kill.seed})" for kill in verdict.kills
    )
    mark = "[green]✓[/]" if verdict.killed else "[red]✗[/]"
    return f"{mark} {verdict.mutant}", MUTANTS[verdict.mutant].source, escape(found) or "[red]nothing: it survived[/]"


def details(verdicts: Sequence[Verdict], false_alarms: Iterable[Kill]) -> dict[str, Any]:
    return {
        "mutants": {verdict.mutant: [_kill(kill) for kill in verdict.kills] for verdict in verdicts},
        "false_alarms": [_kill(kill) for kill in false_alarms],
    }


def _kill(kill: Kill) -> dict[str, Any]:
    return {"check": kill.check, "by": kill.by, "steps": kill.steps, "seed": kill.seed, "text": kill.text}


def as_markdown(verdicts: Iterable[Verdict]) -> str:
    """The table of ``docs/mutants.md``."""
    lines = ["| Mutant | Source | What the faulty program does | Found by |", "|---|---|---|---|"]
    for verdict in verdicts:
        mutant = MUTANTS[verdict.mutant]
        found = "; ".join(f"{kill.check}: {kill.by}, {counted(kill.steps, 'steps')}" for kill in verdict.kills)
        lines.append(f"| `{mutant.name}` | {mutant.source} | {mutant.words} | {found or '**survived**'} |")
    return "\n".join(lines)
