"""``fencepost diff``: run two targets side by side over random traces, and group their differences by cause."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Annotated

import typer

from fencepost.rulebook.book import read_book
from fencepost_server.look.made import made_now

from ...common import repository
from ...common.counting import counted
from ...common.errors import CannotRun
from ...common.interruption import interruptible
from ...judge.diff.groups import Groups
from ...judge.diff.job import Job, Side, parse_side
from ...judge.diff.run import run
from ...judge.diff.shortest import Shortest, shortest
from ...judge.known import Accepted, read_known
from ...show.console import Result, finish, progress
from ...show.diff.files import write_files
from ...show.diff.results import details, tables
from ...targets.jvm import harness
from ...targets.jvm.process import ProcessFault, in_a_line
from ...targets.registry import report_build
from .conform import protocols_of, require_folder


def diff(  # noqa: PLR0917 — options of a command line
    one: Annotated[str, typer.Argument(metavar="A", help="core:PROFILE, kafka:RELEASE or kafka:DIR")],
    other: Annotated[str, typer.Argument(metavar="B", help="the target to compare it with")],
    traces: Annotated[int, typer.Option(min=1, help="number of traces of each protocol")] = 1_000,
    steps_per_trace: Annotated[
        int, typer.Option("--steps-per-trace", "--steps", min=1, help="events in each trace")
    ] = 60,
    seed: Annotated[int, typer.Option(min=0, help="the first seed; the others follow it")] = 0,
    protocol: Annotated[str, typer.Option(help="protocol of the clients: classic, consumer, mixed or all")] = "all",
    workers: Annotated[int, typer.Option(min=0, help="processes; 0: one for each core")] = 0,
    known: Annotated[Path | None, typer.Option(help="file of accepted groups: KEY -- REASON in each line")] = None,
    out: Annotated[
        Path | None, typer.Option("--output", "-o", help="directory for report.html, diff.json, a trace of each group")
    ] = None,
    shrunk: Annotated[bool, typer.Option("--shrink/--no-shrink", help="find a short trace of each group")] = True,
    as_json: Annotated[bool, typer.Option("--json", help="one JSON object on standard output")] = False,
) -> None:
    """Run random traces on two targets, continue after differences, and group them by cause."""
    sides = parse_side(one), parse_side(other)
    accepted = {} if known is None else read_known(known)
    protocols = protocols_of(protocol)
    if out is not None:
        require_folder(out)
    for side in sides:
        report_build(side.target, side.profile)
        if side.target.kind == "kafka":  # fetched and compiled once, before any worker starts
            harness.command(side.target.build)
    jobs = [Job(*sides, steps_per_trace, each) for each in protocols]
    total = traces * len(jobs)
    processes = workers or os.cpu_count() or 1
    found, small = Groups(), dict[str, Shortest]()
    began = time.monotonic()
    stopped = ""
    with interruptible() as cut:
        try:
            _compare(jobs, range(seed, seed + traces), processes, found)
            if shrunk:
                _shorten(jobs, found, processes, small)
        except ProcessFault as fault:
            if not found.traces:
                raise CannotRun(str(fault)) from None
            stopped = in_a_line(fault)
    result = _result(sides, found, small, accepted, time.monotonic() - began)
    done = f"{found.traces:,} of {counted(total, 'traces')} done"
    result.stopped = cut.reason(done) or (f"{stopped}; {done}" if stopped else None)
    if out is not None:
        book = read_book(repository.root() / "docs" / "rules")
        made = made_now(
            a=sides[0].name,
            b=sides[1].name,
            profiles=f"{sides[0].profile}, {sides[1].profile}",
            seeds=f"{seed} to {seed + traces - 1}",
        )
        write_files(out, sides, found, small, accepted, result.as_json(), book, made)
    finish(result, as_json=as_json, table=None if as_json else tables(sides, found, small, accepted))


def _compare(jobs: list[Job], seeds: range, workers: int, found: Groups) -> None:
    for job in jobs:
        with progress(f"{job.one.name}, {job.other.name}, {job.protocol}", total=len(seeds)) as meter:
            for rows in run(job, seeds, workers):
                found.add_all(rows)
                meter.advance(len(rows))


def _shorten(jobs: list[Job], found: Groups, workers: int, small: dict[str, Shortest]) -> None:
    groups = found.ordered()
    if groups:
        with progress("shrinking a trace of each group", total=len(groups)) as meter:
            for each in shortest(jobs, groups, workers):
                small[each.key] = each
                meter.advance()


def _result(
    sides: tuple[Side, Side],
    found: Groups,
    small: dict[str, Shortest],
    accepted: dict[str, Accepted],
    seconds: float,
) -> Result:
    counts: dict[str, int | float] = {
        "traces": found.traces,
        "steps": found.steps,
        "traces_that_differ": found.differing,
        "groups": len(found.groups),
        "known": sum(key in accepted for key in found.groups),
        "following": sum(group.following for group in found.groups.values()),
        "seconds": round(seconds),
    }
    described = details(sides, found, small, accepted)
    return Result("diff", found.tally(accepted), counts, described, unsettled=found.unsettled())
