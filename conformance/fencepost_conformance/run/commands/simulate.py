"""``fencepost simulate``: brokers with many coordinators, members and committing clients, through elections."""

from __future__ import annotations

from collections import Counter
from typing import Annotated

import typer

from ...common.counting import counted
from ...common.errors import CannotRun
from ...common.interruption import interruptible
from ...generate.simulate.cluster import ClusterReport, draw_cluster_plan, simulate_cluster
from ...judge.verdict import Tally, Unsettled, Verdict
from ...show.console import Result, finish, progress
from ...show.listing import Listing
from ..seeds import seed_of_run

WORDS = {"runs": "runs", "loads_with_a_tail": "loads with unreplicated records"}


def simulate(
    runs: Annotated[int, typer.Option(min=1, help="number of plans, one for each seed")] = 50,
    seed: Annotated[int | None, typer.Option(help="seed of the first plan; default: a new one")] = None,
    brokers: Annotated[int | None, typer.Option(min=1, max=9, help="number of brokers; default: drawn")] = None,
    partitions: Annotated[
        int | None, typer.Option(min=1, max=99, help="partitions of the offsets topic; default: drawn")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="one JSON object on standard output")] = False,
) -> None:
    """Move the coordinators of many partitions between brokers, under members of both protocols, commits and
    transactions. Checks every guarantee at every step, and that every group settles at the end."""
    first = seed_of_run() if seed is None else seed
    counts: Counter[str] = Counter()
    failed: list[ClusterReport] = []
    broken: list[Unsettled] = []
    done = 0
    with progress("simulating", total=runs) as meter, interruptible() as cut:
        for number in range(first, first + runs):
            done += 1
            try:
                report = simulate_cluster(draw_cluster_plan(number, brokers=brokers, partitions=partitions))
            except Exception as raised:  # of the core or of the simulation: this run has no verdict
                why = f"{type(raised).__name__}: {raised}"
                broken.append(Unsettled(Verdict.BROKEN, f"seed {number}", why, {"seed": number}))
                continue
            counts.update({"events": report.events, **report.counts})
            failed += [report] if report.broken is not None else []
            meter.advance()
    result = Result(
        "simulate",
        Tally(passed=done - len(failed) - len(broken), failed=len(failed), broken=len(broken)),
        counts={"runs": done, **counts},
        details={"seed": first, "failures": [_as_row(each) for each in failed]},
        words=WORDS,
        things="runs",
        unsettled=broken,
        stopped=cut.reason(f"{done} of {counted(runs, 'runs')} done"),
    )
    table = None
    if failed:
        table = Listing(("seed", "rule", "what"), title=f"Broken guarantees (seeds from {first})")
        for each in failed:
            table.add(str(each.plan.seed), each.broken.rule if each.broken else "", str(each.broken))
    if done and not as_json:
        typer.echo(f"seeds {first} to {first + done - 1}; repeat with: fencepost simulate --seed {first}")
    finish(result, as_json=as_json, table=table)


def _as_row(report: ClusterReport) -> dict[str, object]:
    if report.broken is None:
        raise CannotRun("a run that passed cannot be reported as broken")
    return {
        "seed": report.plan.seed,
        "rule": report.broken.rule,
        "text": report.broken.text,
        "last": list(report.last),
    }
