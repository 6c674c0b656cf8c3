"""``fencepost mutants --area``: plant each fault of an area, and report which test of the area kills it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from rich.markup import escape

from ...common import repository
from ...common.counting import counted
from ...common.errors import CannotRun
from ...common.interruption import interruptible
from ...common.nearest import unknown
from ...judge.verdict import Tally, Unsettled, Verdict
from ...show.console import Result, finish, progress
from ...show.listing import Listing
from ..mutants.areas import kept, trial
from ..mutants.areas.catalogue import FAULTS
from ..mutants.areas.fault import Area, Fault
from ..mutants.areas.page import as_markdown


def chosen(area: str, names: Sequence[str]) -> list[Fault]:
    """Return the faults of an area, all or the named ones. Raises ``CannotRun`` for an unknown area or name."""
    there = [fault for fault in FAULTS.values() if fault.area.within(area)]
    if not there:
        areas = dict.fromkeys(part for each in Area for part in (each.value.partition("/")[0], each.value))
        raise CannotRun(unknown("area", area, areas, f"areas: {', '.join(areas)}"))
    by_name = {fault.name: fault for fault in there}
    for name in names:
        if name not in by_name:
            raise CannotRun(unknown(f"mutant of {area}", name, by_name, f"see fencepost mutants --area {area} --list"))
    return [by_name[name] for name in names] if names else there


def list_them(faults: Sequence[Fault], *, as_json: bool) -> NoReturn:
    """Print the faults and the tests that kill them, without a run."""
    known = kept.kept()
    listing = Listing(("mutant", "area", "what it does", "killed by"))
    for fault in faults:
        listing.add(fault.name, fault.area.value, escape(fault.words), escape(", ".join(known.get(fault.name, ()))))
    rows = {
        fault.name: {
            "area": fault.area.value,
            "text": fault.words,
            "shown": fault.shown,
            "source": fault.source,
            "killed_by": known.get(fault.name, ()),
        }
        for fault in faults
    }
    finish(
        Result("mutants --area --list", None, {"mutants": len(rows)}, {"mutants": rows}),
        as_json=as_json,
        table=listing,
    )


def print_page() -> None:
    """Print the section of ``docs/planted-faults.md`` on all areas."""
    print(as_markdown())


def try_them(faults: Sequence[Fault], *, workers: int, pin: bool, as_json: bool) -> NoReturn:
    """Run the tests against each fault; a fault that no test kills is a failure. ``pin``: store the results."""
    root = repository.root()
    trials: list[trial.Trial] = []
    with progress("mutants", total=len(faults)) as meter, interruptible() as cut:
        for one in trial.try_all(faults, root, workers):
            meter.update(description=one.fault)
            trials.append(one)
            meter.advance()
    broken = [
        Unsettled(Verdict.BROKEN, each.fault, each.broken, {"mutant": each.fault}) for each in trials if each.broken
    ]
    tried = [each for each in trials if not each.broken]
    if pin:
        kept.keep(tried)
    listing = Listing(("mutant", "killed by"))
    for each in tried:
        mark = "[green]✓[/]" if each.killer else "[red]✗[/]"
        listing.add(f"{mark} {each.fault}", escape(each.killer or "nothing: it survived"))
    survivors = [each.fault for each in tried if each.killer is None]
    killed = len(tried) - len(survivors)
    finish(
        Result(
            "mutants --area",
            Tally(killed, len(survivors), broken=len(broken)),
            {"mutants": len(trials), "killed": killed},
            {"survivors": survivors, "killers": {each.fault: each.killer for each in tried}},
            things="mutants",
            unsettled=broken,
            stopped=cut.reason(f"{len(trials)} of {counted(len(faults), 'mutants')} tried"),
        ),
        as_json=as_json,
        table=listing,
    )
