"""``fencepost bench``: measure the cost table again."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from ...common.errors import CannotRun
from ...common.nearest import unknown
from ...show.console import Result, finish, progress
from ...show.listing import Listing
from ..bench.measure import Measured, Row

#: Each is a function of that name in a module of that name.
BENCHES = (
    "core",
    "compiled",
    "steps",
    "explorer",
    "kafka",
    "recorded",
    "pipeline",
    "spark",
    "assignors",
    "growth",
    "records",
    "load",
    "start",
    "serve",
)


def bench(
    names: Annotated[list[str] | None, typer.Argument(help=f"benchmarks: {', '.join(BENCHES)}; default: all")] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="draw the benchmark growth into this SVG file", show_default=False),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="one JSON object on standard output")] = False,
) -> None:
    """Measure the cost table again, as ratios within one run. Nothing is asserted."""
    if output is not None and "growth" not in (names or BENCHES):
        raise CannotRun("--output draws only the benchmark growth: fencepost bench growth -o FILE.svg")
    for name in names or ():
        if name not in BENCHES:
            raise CannotRun(unknown("benchmark", name, BENCHES, f"there are {', '.join(BENCHES)}"))
    rows: list[Row] = []
    skipped: dict[str, str] = {}
    chosen = names or list(BENCHES)
    with progress("measuring", total=len(chosen)) as meter:
        for name in chosen:
            meter.update(description=f"measuring {name}")
            try:
                found = getattr(importlib.import_module(f"fencepost_conformance.run.bench.{name}"), name)()
                rows += found.rows if isinstance(found, Measured) else found
                skipped |= found.skipped if isinstance(found, Measured) else {}
            except CannotRun as reason:
                skipped[name] = str(reason)
            except ModuleNotFoundError as missing:
                skipped[name] = (
                    f"the Python package {missing.name!r} is not installed; in the checkout: pip install -e '.[dev]'"
                )
            meter.advance()
    if not rows:
        raise CannotRun("nothing could be measured: " + "; ".join(f"{name}: {why}" for name, why in skipped.items()))
    if output is not None and "growth" not in skipped:
        try:
            output.write_text(
                importlib.import_module("fencepost_conformance.run.bench.growth_plot").picture(rows), "utf-8"
            )
        except OSError as wrong:
            raise CannotRun(f"{output} cannot be written: {wrong.strerror}") from None
    result = Result(
        "bench",
        None,
        counts={"figures": len(rows)},
        details={"rows": [{field: getattr(row, field) for field in Row.__slots__} for row in rows]},
        skipped=skipped,
    )
    shown = (
        importlib.import_module("fencepost_conformance.run.bench.growth").listing(rows)
        if chosen == ["growth"]
        else table(rows)
    )
    finish(result, as_json=as_json, table=shown)


def table(rows: list[Row]) -> Listing:
    columns = ("benchmark", "what", "value", "beside it", "its value", "ratio", "goal")
    listing = Listing(columns, title="Cost, measured now", numbers=frozenset(("value", "its value", "ratio")))
    for row in rows:
        listing.add(
            row.name,
            escape(row.what),
            f"{row.value:,.1f} {row.unit}",
            escape(row.versus),
            "" if row.versus_value is None else f"{row.versus_value:,.1f}",
            "" if row.ratio is None else f"{row.ratio:.2f}",
            escape(row.goal),
        )
    return listing
