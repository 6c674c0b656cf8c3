"""``fencepost mutants``: plant each known fault, and see that the suite finds it."""

from __future__ import annotations

import os
import time
from typing import Annotated

import typer
from rich.markup import escape

from ..console import CannotRun, Result, finish, progress
from ..counting import counted
from ..interruption import interruptible
from ..listing import Listing
from ..mutants import suite
from ..mutants.catalogue import MUTANTS
from ..mutants.table import as_markdown, as_row, details
from ..nearest import unknown


def mutants(  # noqa: PLR0917 — options of a command line
    names: Annotated[list[str] | None, typer.Argument(help="which mutants; all if none is named")] = None,
    list_only: Annotated[bool, typer.Option("--list", help="only say which mutants there are")] = False,
    quick: Annotated[bool, typer.Option(help="stop at the first check that finds a fault")] = False,
    workers: Annotated[int, typer.Option(min=0, help="processes; 0: as many as there are cores")] = 0,
    markdown: Annotated[bool, typer.Option(help="print the table of docs/mutants.md")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="one JSON object on standard output")] = False,
) -> None:
    """Run the suite against each known fault; each must be found. Without a fault nothing may be found."""
    for name in names or ():
        if name not in MUTANTS:
            raise CannotRun(unknown("mutant", name, MUTANTS, "see fencepost mutants --list"))
    chosen = [MUTANTS[name] for name in names or MUTANTS]
    if list_only:
        _list(as_json=as_json)
    began = time.monotonic()
    false_alarms: list[suite.Kill] = []
    verdicts: list[suite.Verdict] = []
    with progress("mutants", total=len(chosen) + 1) as meter, interruptible() as cut:
        false_alarms = suite.control()
        meter.advance()
        for verdict in suite.run_all(chosen, quick=quick, workers=workers or os.cpu_count() or 1):
            meter.update(description=verdict.mutant)
            verdicts.append(verdict)
            meter.advance()
    if markdown and not cut.happened:
        print(as_markdown(verdicts))
        raise typer.Exit(0 if all(verdict.killed for verdict in verdicts) else 1)
    survivors = [verdict.mutant for verdict in verdicts if not verdict.killed]
    table = Listing(("mutant", "source", "found by"))
    for verdict in verdicts:
        table.add(*as_row(verdict))
    counts = {
        "mutants": len(verdicts),
        "killed": len(verdicts) - len(survivors),
        "false_alarms": len(false_alarms),
        "seconds": round(time.monotonic() - began, 1),
    }
    held = not survivors and not false_alarms and not cut.happened
    missing = cut.told(f"{len(verdicts)} of {counted(len(chosen), 'mutants')} tried")
    result = Result("mutants", held, counts, {"survivors": survivors, **details(verdicts, false_alarms)})
    finish(result, as_json=as_json, table=None if as_json else table, incomplete=missing)


def _list(*, as_json: bool) -> None:
    rows = {
        mutant.name: {"side": mutant.side.value, "source": mutant.source, "text": mutant.words}
        for mutant in MUTANTS.values()
    }
    finish(
        Result("mutants --list", None, {"mutants": len(MUTANTS)}, {"mutants": rows}), as_json=as_json, table=catalogue()
    )


def catalogue() -> Listing:
    """The mutants that there are."""
    listing = Listing(("mutant", "side", "source", "what it does"))
    for mutant in MUTANTS.values():
        listing.add(mutant.name, mutant.side.value, mutant.source, escape(mutant.words))
    return listing
