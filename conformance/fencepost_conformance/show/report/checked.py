"""The results of ``check``, and the list of configurations, for the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rich.console import Group, RenderableType
from rich.markup import escape

from fencepost_model.system.checking import Row
from fencepost_model.system.manifest import Entry

from ...judge.verdict import Unsettled, Verdict
from ..listing import Listing
from .counter_example import steps_as_json

#: more rows than this are summed up, unless each is requested
MOST = 20
_NUMBERS = frozenset(("configurations", "must hold", "must break", "states", "transitions", "depth", "seconds"))


def table(rows: list[Row], entries: Mapping[str, Entry], *, each: bool) -> RenderableType:
    """Return a row for each configuration; of many, only the unexpected ones, below sums by protocol."""
    if each or len(rows) <= MOST:
        return _rows(rows)
    wrong = [row for row in rows if not row.as_expected]
    sums = _sums(rows, entries)
    return Group(sums, _rows(wrong)) if wrong else sums


def _rows(rows: Iterable[Row]) -> Listing:
    listing = Listing(("configuration", "found", "states", "transitions", "depth", "seconds"), numbers=_NUMBERS)
    for row in rows:
        found = " ".join(_found(row)) if row.as_expected else f"[red]{escape(why(row))}[/]"
        numbers = (f"{row.states:,}", f"{row.transitions:,}", str(row.depth), f"{row.seconds:.1f}")
        listing.add(f"{'[green]✓[/]' if row.as_expected else '[red]✗[/]'} {row.name}", found, *numbers)
    return listing


def verdict_of(row: Row) -> Verdict:
    """Return the verdict. An unexpected violation fails, however the exploration ended."""
    if row.wrong:
        return Verdict.FAILED
    if row.broken:
        return Verdict.BROKEN
    return Verdict.UNDECIDED if row.stopped else Verdict.PASSED


def why(row: Row) -> str:
    """Return why a row has not passed."""
    return "; ".join(row.wrong) or row.broken or f"stopped early: {row.stopped}"


def row_as_json(row: Row, *, states: bool = False) -> dict[str, object]:
    """Return the row as JSON data. ``states``: each step of a counter-example has the whole state."""
    document = row.as_json()
    steps = {"steps": steps_as_json(row.steps, states=states)} if row.steps else {}
    return {"name": document.pop("name"), "verdict": verdict_of(row), **document, **steps}


def unsettled(row: Row) -> Unsettled:
    """Describe a row that was undecided or broken."""
    return Unsettled(verdict_of(row), row.name, why(row), {"configuration": row.name})


def _found(row: Row) -> Iterable[str]:
    yield f"breaks {', '.join(row.violated)}" if row.violated else "holds"
    if row.expected != "holds":
        yield "as it must"
    if row.compared:
        yield "(graph equal to TLC's)"


def _sums(rows: list[Row], entries: Mapping[str, Entry]) -> Listing:
    listing = Listing(
        ("groups", "configurations", "must hold", "must break", "as expected", "states", "seconds"),
        numbers=_NUMBERS,
        caption="A configuration without a guard, or of Kafka as it is, must break its property. "
        "Show each one: fencepost check --each; explain them: fencepost check --list.",
    )
    for protocol in dict.fromkeys(entries[row.name].protocol for row in rows):
        own = [row for row in rows if entries[row.name].protocol == protocol]
        holding = sum(row.expected == "holds" for row in own)
        right = sum(row.as_expected for row in own)
        listing.add(
            protocol,
            str(len(own)),
            str(holding),
            str(len(own) - holding),
            "[green]✓ all[/]" if right == len(own) else f"[red]✗ all but {len(own) - right}[/]",
            f"{sum(row.states for row in own):,}",
            f"{sum(row.seconds for row in own):.0f}",
        )
    return listing


def catalogue(entries: Iterable[Entry]) -> Listing:
    """Return a table of all configurations."""
    listing = Listing(("configuration", "groups", "size", "must", "about"))
    for entry in entries:
        listing.add(entry.name, entry.protocol, entry.size, must(entry), escape(entry.about))
    return listing


def must(entry: Entry) -> str:
    """Return the expected result of a configuration in words."""
    return "hold" if entry.expected == "holds" else f"break {entry.breaks or 'by a deadlock'}"


def entry_as_json(entry: Entry) -> dict[str, object]:
    return {
        "name": entry.name,
        "protocol": entry.protocol,
        "size": entry.size,
        "expected": entry.expected,
        "property": entry.breaks,
        "about": entry.about,
    }
