"""``fencepost mutants``: plant each known fault, and check that the suite finds it."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated, Any

import typer
from rich.console import Group
from rich.markup import escape

from ...common.counting import counted
from ...common.errors import CannotRun
from ...common.interruption import interruptible
from ...common.nearest import unknown
from ...judge.verdict import Tally, Unsettled, Verdict
from ...show.console import Result, finish, progress
from ...show.listing import Listing
from ..mutants import killers, suite
from ..mutants.catalogue import MUTANTS
from ..mutants.kill import Kill
from ..mutants.kill import Verdict as Tried
from ..mutants.mutant import Mutant, check, text_of
from ..mutants.page import as_markdown, shown
from ..mutants.replacement import DoesNotApply
from ..mutants.table import as_row, details
from . import area_mutants


def mutants(  # noqa: PLR0917 — options of a command line
    names: Annotated[list[str] | None, typer.Argument(help="names of mutants; default: all")] = None,
    list_only: Annotated[bool, typer.Option("--list", help="only list the mutants")] = False,
    show: Annotated[bool, typer.Option("--show", help="only show them, as diffs of the core with their rules")] = False,
    quick: Annotated[bool, typer.Option(help="stop at the first check that finds a fault")] = False,
    workers: Annotated[int, typer.Option(min=0, help="processes; 0: one for each core")] = 0,
    pin: Annotated[
        bool, typer.Option("--pin", help="store which checks find them; later runs are compared with it")
    ] = False,
    kafka: Annotated[
        str | None, typer.Option(metavar="RELEASE", help="also use Kafka's own client as a check; needs a JVM")
    ] = None,
    markdown: Annotated[bool, typer.Option(help="only print the sections of docs/mutants.md")] = False,
    area: Annotated[
        str | None,
        typer.Option(
            metavar="AREA", help="run an area's own tests against its faults: server, rebalances, store, host, aio, …"
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="one JSON object on standard output")] = False,
) -> None:
    """Run the suite against each known fault; each must be found, by the stored checks. Without a fault nothing may be
    found. With --area: run the tests of an area against each of its faults, up to the first that fails."""
    if area is not None:
        if show or quick or kafka is not None:
            raise CannotRun("--area can only be combined with --list, --markdown, --pin, --workers and --json")
        if markdown:
            area_mutants.print_page()
            raise typer.Exit
        faults = area_mutants.chosen(area, names or ())
        if list_only:
            area_mutants.list_them(faults, as_json=as_json)
        area_mutants.try_them(faults, workers=workers or 1, pin=pin, as_json=as_json)
    for name in names or ():
        if name not in MUTANTS:
            raise CannotRun(unknown("mutant", name, MUTANTS, "see fencepost mutants --list"))
    if pin and quick:
        raise CannotRun(
            "--pin stores every check that finds a mutant, but --quick stops at the first; use only one of them"
        )
    chosen = [MUTANTS[name] for name in names or MUTANTS]
    if list_only:
        _list(chosen, as_json=as_json)
    _require_places(chosen)
    if show:
        _show(chosen, as_json=as_json)
    if markdown:
        print(as_markdown())
        raise typer.Exit
    began = time.monotonic()
    false_alarms: list[Kill] = []
    verdicts: list[Tried] = []
    with progress("mutants", total=len(chosen) + 1) as meter, interruptible() as cut:
        false_alarms = suite.control(kafka)
        meter.advance()
        for verdict in suite.run_all(chosen, quick=quick, workers=workers or os.cpu_count() or 1, kafka=kafka):
            meter.update(description=verdict.mutant)
            verdicts.append(verdict)
            meter.advance()
    if pin:
        killers.pin([each for each in verdicts if not each.broken], MUTANTS, kafka=kafka is not None)
    survivors = [verdict.mutant for verdict in verdicts if not verdict.killed and not verdict.broken]
    strange = {
        verdict.mutant: reason
        for verdict in verdicts
        if not verdict.broken
        and (reason := killers.otherwise(verdict, quick=quick, kafka=kafka is not None)) is not None
    }
    table = Listing(("mutant", "source", "found by"))
    for verdict in verdicts:
        table.add(*as_row(verdict, strange.get(verdict.mutant)))
    if strange:
        table.caption = (
            "[yellow]found by other checks than the stored ones; if that is right, run fencepost mutants --pin[/]"
        )
    counts = {
        "mutants": len(verdicts),
        "killed": sum(verdict.killed for verdict in verdicts),
        "found_otherwise": len(strange),
        "false_alarms": len(false_alarms),
        "seconds": round(time.monotonic() - began, 1),
    }
    found = {"survivors": survivors, "found_otherwise": strange, **details(verdicts, false_alarms)}
    broken = [
        Unsettled(Verdict.BROKEN, verdict.mutant, verdict.broken, {"mutant": verdict.mutant})
        for verdict in verdicts
        if verdict.broken
    ]
    failed = len(survivors) + len(strange)
    # the program without a fault is judged too: each false alarm is a failure
    tally = Tally(len(verdicts) - failed - len(broken), failed + len(false_alarms), broken=len(broken))
    stopped = cut.reason(f"{len(verdicts)} of {counted(len(chosen), 'mutants')} tried")
    finish(
        Result("mutants", tally, counts, found, things="mutants", unsettled=broken, stopped=stopped),
        as_json=as_json,
        table=None if as_json else table,
    )


def _require_places(chosen: Sequence[Mutant]) -> None:
    """Raise ``CannotRun`` if the core's text is not what a mutant expects."""
    for mutant in chosen:
        try:
            check(mutant)
        except DoesNotApply as reason:
            raise CannotRun(str(reason)) from None


def _list(chosen: Sequence[Mutant], *, as_json: bool) -> None:
    rows = {mutant.name: _as_json(mutant) for mutant in chosen}
    result = Result("mutants --list", None, {"mutants": len(rows)}, {"mutants": rows})
    finish(result, as_json=as_json, table=catalogue(chosen))


def _show(chosen: Sequence[Mutant], *, as_json: bool) -> None:
    rows = {mutant.name: {**_as_json(mutant), "diff": text_of(mutant)} for mutant in chosen}
    result = Result("mutants --show", None, {"mutants": len(rows)}, {"mutants": rows})
    finish(result, as_json=as_json, table=Group(*(part for mutant in chosen for part in shown(mutant))))


def _as_json(mutant: Mutant) -> dict[str, Any]:
    return {
        "side": mutant.side.value,
        "rules": mutant.rules,
        "origin": mutant.origin,
        "text": mutant.words,
        "found_by": killers.pinned().get(mutant.name, ()),
        "replacements": [asdict(each) for each in mutant.replacements],
    }


def catalogue(chosen: Sequence[Mutant] = tuple(MUTANTS.values())) -> Listing:
    """Return a table of the mutants."""
    listing = Listing(("mutant", "side", "breaks", "origin", "what it does"))
    for mutant in chosen:
        listing.add(
            mutant.name, mutant.side.value, ", ".join(mutant.rules), mutant.origin or "the rule", escape(mutant.words)
        )
    return listing
