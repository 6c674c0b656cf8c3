"""``fencepost diff``: two targets side by side over random traces; what differs, grouped by cause."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Annotated

import typer

from ..console import CannotRun, Result, finish, progress
from ..counting import counted
from ..diff.groups import Groups
from ..diff.job import Job, Side, parse_side
from ..diff.known import Known, read_known
from ..diff.run import run
from ..diff.tell import details, tables
from ..interruption import Interruption, interruptible
from ..jvm import harness
from ..jvm.process import ProcessFault
from ..targets.registry import tell_build
from .conform import protocols_of, require_folder


def diff(  # noqa: PLR0917 — options of a command line
    one: Annotated[str, typer.Argument(metavar="A", help="core:PROFILE, kafka:RELEASE or kafka:DIR")],
    other: Annotated[str, typer.Argument(metavar="B", help="what it is compared with")],
    traces: Annotated[int, typer.Option(min=1, help="how many traces of each protocol")] = 1_000,
    steps_per_trace: Annotated[
        int, typer.Option("--steps-per-trace", "--steps", min=1, help="events in each trace")
    ] = 60,
    seed: Annotated[int, typer.Option(min=0, help="the first seed; the others follow it")] = 0,
    protocol: Annotated[str, typer.Option(help="what the clients speak: classic, consumer, mixed or all")] = "all",
    workers: Annotated[int, typer.Option(min=0, help="processes; 0: one for each core")] = 0,
    known: Annotated[Path | None, typer.Option(help="file of accepted groups: KEY -- REASON in each line")] = None,
    out: Annotated[
        Path | None, typer.Option("--output", "-o", help="directory for report.html, diff.json, a trace of each group")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="one JSON object on standard output")] = False,
) -> None:
    """Run random traces on two targets, go on after differences, and group them by cause."""
    sides = parse_side(one), parse_side(other)
    accepted = {} if known is None else read_known(known)
    protocols = protocols_of(protocol)
    if out is not None:
        require_folder(out)
    for side in sides:
        tell_build(side.target, side.profile)
        if side.target.kind == "kafka":  # fetched and compiled once, before any worker starts
            harness.command(side.target.build)
    jobs = [Job(*sides, steps_per_trace, each) for each in protocols]
    began = time.monotonic()
    found, interrupted = _run(jobs, range(seed, seed + traces), workers or os.cpu_count() or 1)
    seconds = time.monotonic() - began
    planned = counted(traces * len(jobs), "traces")
    result = _result(sides, found, accepted, seconds)
    result.held = result.held and not interrupted.happened
    finish(
        result,
        as_json=as_json,
        table=None if as_json else tables(sides, found, accepted),
        incomplete=interrupted.told(f"{found.traces:,} of {planned} done"),
    )


def _run(jobs: list[Job], seeds: range, workers: int) -> tuple[Groups, Interruption]:
    """What was found, and whether that was cut short."""
    found = Groups()
    try:
        with interruptible() as cut:
            for job in jobs:
                with progress(f"{job.one.name}, {job.other.name}, {job.protocol}", total=len(seeds)) as meter:
                    for rows in run(job, seeds, workers):
                        found.add_all(rows)
                        meter.advance(len(rows))
    except ProcessFault as fault:
        raise CannotRun(str(fault)) from None
    return found, cut


def _result(sides: tuple[Side, Side], found: Groups, accepted: dict[str, Known], seconds: float) -> Result:
    counts: dict[str, int | float] = {
        "traces": found.traces,
        "steps": found.steps,
        "traces_that_differ": found.differing,
        "groups": len(found.groups),
        "known": sum(key in accepted for key in found.groups),
        "steps_a_second": round(found.steps / max(seconds, 0.001)),
    }
    return Result("diff", found.groups.keys() <= accepted.keys(), counts, details(sides, found, accepted))
