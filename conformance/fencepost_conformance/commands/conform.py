"""``fencepost conform``: random traces against a target, every step compared."""

from __future__ import annotations

import time
from collections import Counter
from typing import Annotated

import typer
from rich.table import Table

from fencepost.protocol.settings import PROFILES

from ..console import CannotRun, Result, finish, progress
from ..jvm.process import ProcessFault
from ..pipeline.job import Job, Row
from ..pipeline.local import run_local
from ..targets.registry import parse_target


def conform(  # noqa: PLR0917
    target: Annotated[str, typer.Option(help="core, kafka:RELEASE or HOST:PORT")] = "core",
    profile: Annotated[str, typer.Option(help=f"one of {', '.join(sorted(PROFILES))}")] = "kafka-4.3",
    traces: Annotated[int, typer.Option(min=1, help="how many traces")] = 1_000,
    steps_per_trace: Annotated[int, typer.Option(min=1, help="events in each trace")] = 150,
    seed: Annotated[int, typer.Option(help="the first seed; the others follow it")] = 0,
    engine: Annotated[str, typer.Option(help="local or spark")] = "local",
    workers: Annotated[int, typer.Option(min=1, help="processes (local) or cores (spark)")] = 1,
    model: Annotated[bool, typer.Option(help="let the model follow every step too")] = True,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON")] = False,
) -> None:
    """Run random traces against a target and compare every step."""
    if profile not in PROFILES:
        raise CannotRun(f"no profile {profile!r}; known: {', '.join(sorted(PROFILES))}")
    parse_target(target)
    job = Job(target, profile, steps_per_trace, model)
    rows: list[Row] = []
    began = time.monotonic()
    try:
        with progress(f"{target}", total=traces) as meter:
            for chunk in run_local(job, seed, traces, workers):
                rows.extend(chunk)
                meter.advance(len(chunk))
    except ProcessFault as fault:
        raise CannotRun(str(fault)) from None
    took = time.monotonic() - began
    failed = [row for row in rows if not row.held]
    result = Result(
        "conform",
        held=not failed,
        counts={
            "traces": len(rows),
            "steps": sum(row.steps for row in rows),
            "replies": sum(row.replies for row in rows),
            "records": sum(row.records for row in rows),
            "timers": sum(row.timers for row in rows),
            "steps_a_second": round(sum(row.steps for row in rows) / took),
        },
        details={
            "divergences": dict(Counter(row.divergence for row in rows if row.divergence)),
            "failures": [
                {
                    "seed": r.seed,
                    "verdict": r.verdict,
                    "event": r.event,
                    "field": r.field,
                    "left": r.left,
                    "right": r.right,
                }
                for r in failed[:100]
            ],
        },
    )
    finish(result, as_json=as_json, table=_failures(failed) if failed else None)


def _failures(failed: list[Row]) -> Table:
    table = Table("seed", "event", "field", "core", "target", title=f"{len(failed)} traces differ")
    for row in failed[:20]:
        table.add_row(str(row.seed), str(row.event), row.field, row.left[:80], row.right[:80])
    return table
