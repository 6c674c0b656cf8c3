"""What finds each mutant, pinned: a fault that something else finds than is written down is told.

``killers.json`` holds, for each mutant, each check that finds it and what that names, in the order in which the checks
run. It is written by ``fencepost mutants --pin``, and every other run is held against it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Final

from . import kafka_checks
from .suite import Verdict

FILE: Final = Path(__file__).with_name("killers.json")


@cache
def pinned() -> Mapping[str, tuple[str, ...]]:
    """Who finds which mutant, by the mutant's name: ``check: what it names``."""
    return {name: tuple(found) for name, found in json.loads(FILE.read_text(encoding="utf-8")).items()}


def found_by(verdict: Verdict) -> tuple[str, ...]:
    """The same of a run."""
    return tuple(f"{kill.check}: {kill.by}" for kill in verdict.kills)


def otherwise(verdict: Verdict, *, quick: bool, kafka: bool = False) -> str | None:
    """What is wrong with the finders of a mutant that was found, in one sentence; None if they are those that are
    pinned. ``quick``: the run ended with the first of them; ``kafka``: Kafka's own client was among the checks."""
    found, said = found_by(verdict), pinned().get(verdict.mutant, ())
    if not kafka:
        said = tuple(each for each in said if not each.startswith(kafka_checks.NAME))
    if not found or found == (said[:1] if quick else said):
        return None
    return f"found by {_words(found)}; killers.json says {_words(said)}"


def pin(verdicts: Iterable[Verdict], names: Iterable[str], *, kafka: bool = False) -> None:
    """Write down who has found these mutants. ``names``: of all that there are, in their order; others are dropped.
    What Kafka's own client found before stays if it was not asked (``kafka``)."""
    known = dict(pinned())
    for verdict in verdicts:
        kept = () if kafka else [each for each in known.get(verdict.mutant, ()) if each.startswith(kafka_checks.NAME)]
        known[verdict.mutant] = (*found_by(verdict), *kept)
    rows = {name: known[name] for name in names if name in known}
    FILE.write_text(json.dumps(rows, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    pinned.cache_clear()


def _words(found: Iterable[str]) -> str:
    return "; ".join(found) or "nobody"
