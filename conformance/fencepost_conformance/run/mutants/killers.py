"""The checks that find each mutant, stored; a run reports a fault that other checks find than the stored ones.

``killers.json`` has, for each mutant, each check that finds it with the rule or comparison that it names, in the order
in which the checks run. ``fencepost mutants --pin`` writes it, and every other run is compared with it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Final

from . import kafka_checks
from .kill import Verdict

FILE: Final = Path(__file__).with_name("killers.json")


@cache
def pinned() -> Mapping[str, tuple[str, ...]]:
    """Return the checks that find each mutant, by the mutant's name: ``check: what it names``."""
    return {name: tuple(found) for name, found in json.loads(FILE.read_text(encoding="utf-8")).items()}


def first_of(mutant: str) -> str:
    """Return the name of the first check that finds a mutant, so that a quick run begins with it; empty if there is
    none."""
    return pinned().get(mutant, ("",))[0].partition(":")[0]


def found_by(verdict: Verdict) -> tuple[str, ...]:
    """Return the same for a run."""
    return tuple(f"{kill.check}: {kill.by}" for kill in verdict.kills)


def otherwise(verdict: Verdict, *, quick: bool, kafka: bool = False) -> str | None:
    """Return, in a sentence, how the checks that found a mutant differ from the stored ones; None if they are equal.
    ``quick``: the run ended with the first of them; ``kafka``: Kafka's own client was among the checks."""
    found, said = found_by(verdict), pinned().get(verdict.mutant, ())
    if not kafka:
        said = tuple(each for each in said if not each.startswith(kafka_checks.NAME))
    if not found or found == (said[:1] if quick else said):
        return None
    return f"found by {_words(found)}; but killers.json has {_words(said)}"


def pin(verdicts: Iterable[Verdict], names: Iterable[str], *, kafka: bool = False) -> None:
    """Store the checks that found these mutants. ``names``: all existing mutants, in order; others are dropped. The
    earlier findings of Kafka's own client stay if it did not run (``kafka``)."""
    known = dict(pinned())
    for verdict in verdicts:
        kept = () if kafka else [each for each in known.get(verdict.mutant, ()) if each.startswith(kafka_checks.NAME)]
        known[verdict.mutant] = (*found_by(verdict), *kept)
    rows = {name: known[name] for name in names if name in known}
    FILE.write_text(json.dumps(rows, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    pinned.cache_clear()


def _words(found: Iterable[str]) -> str:
    return "; ".join(found) or "nobody"
