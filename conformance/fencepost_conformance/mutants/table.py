"""The verdicts as rows: for the terminal, for JSON, and for the documentation."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ..counting import counted
from .catalogue import MUTANTS
from .suite import Kill, Verdict


def as_row(verdict: Verdict) -> tuple[str, ...]:
    """Mutant, source, checks, what they named, after how many steps, in which seed."""
    kills = verdict.kills
    return (
        verdict.mutant,
        MUTANTS[verdict.mutant].source,
        "\n".join(kill.check for kill in kills) or "survived",
        "\n".join(kill.by for kill in kills),
        "\n".join(str(kill.steps) for kill in kills),
        "\n".join(str(kill.seed) for kill in kills),
    )


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
        lines.append(f"| `{mutant.name}` | {mutant.source} | {mutant.text} | {found or '**survived**'} |")
    return "\n".join(lines)
