"""``fencepost conform``: random traces against a target, every step compared."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Annotated

import typer

from fencepost.protocol.settings import PROFILES

from ..console import CannotRun, Result, finish, progress
from ..jvm.process import ProcessFault
from ..pipeline.engines import ENGINES
from ..pipeline.job import Job
from ..pipeline.plan import Plan
from ..report.files import write_report
from ..report.terminal import counts, details, tables
from ..targets.broker import BrokerFault
from ..targets.registry import parse_target, profile_for


def conform(  # noqa: PLR0917 — options of a command line
    target: Annotated[str, typer.Option(help="core, kafka:RELEASE, broker:RELEASE or HOST:PORT")] = "core",
    profile: Annotated[str | None, typer.Option(help=f"{', '.join(sorted(PROFILES))}; default: the target's")] = None,
    traces: Annotated[int, typer.Option(min=1, help="how many traces")] = 1_000,
    steps_per_trace: Annotated[int, typer.Option(min=1, help="events in each trace")] = 60,
    seed: Annotated[int, typer.Option(help="the first seed; the others follow it")] = 0,
    engine: Annotated[str, typer.Option(help="local or spark")] = "local",
    workers: Annotated[int, typer.Option(min=0, help="processes (local) or cores (spark); 0: all cores")] = 0,
    model: Annotated[bool, typer.Option(help="let the model follow every step too")] = True,
    out: Annotated[Path | None, typer.Option("-o", help="directory for rows, report.html, junit.xml, failures")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON")] = False,
) -> None:
    """Run random traces against a target and compare every step."""
    if engine not in ENGINES:
        raise CannotRun(f"no engine {engine!r}; known: {', '.join(ENGINES)}")
    job = Job(target, profile_for(parse_target(target), profile), steps_per_trace, model)
    plan = Plan(job, seed, traces)
    began = time.monotonic()
    try:
        with progress(target, total=traces) as meter:
            summary = ENGINES[engine](plan, workers or os.cpu_count() or 1, out, meter.advance)
        seconds = time.monotonic() - began
        if out is not None:
            write_report(out, summary, seconds)
    except (ProcessFault, BrokerFault) as fault:
        raise CannotRun(str(fault)) from None
    result = Result("conform", held=summary.held, counts=counts(summary, seconds), details=details(summary))
    finish(result, as_json=as_json, table=None if as_json else tables(summary))
