"""``python -m tools.virtual``: run schedules of asyncio code in virtual time, with new random seeds."""

from __future__ import annotations

import os
import sys
from collections import Counter
from itertools import repeat
from typing import Annotated

import typer

from fencepost_conformance.common.counting import counted
from fencepost_conformance.common.errors import CannotRun
from fencepost_conformance.common.interruption import interruptible, listen_to_sigterm
from fencepost_conformance.common.processes import worker_processes
from fencepost_conformance.generate.virtual.kinds import KINDS, Judged, judge
from fencepost_conformance.judge.verdict import Tally, Verdict, outcome_of
from fencepost_conformance.run.seeds import seed_of_run
from fencepost_conformance.show.console import progress


def main(
    kind: Annotated[list[str] | None, typer.Option(help=f"{', '.join(KINDS)}; may be given several times")] = None,
    schedules: Annotated[int, typer.Option(min=1, help="schedules of each kind")] = 500,
    seed: Annotated[int | None, typer.Option(min=0, help="the first seed; a random one if not given")] = None,
    workers: Annotated[int, typer.Option(min=0, help="processes; 0: one per core")] = 0,
) -> None:
    """Run brokers and workers on an event loop in virtual time, with failures, and check their guarantees."""
    try:
        kinds = kind or list(KINDS)
        if unknown := [each for each in kinds if each not in KINDS]:
            raise CannotRun(f"--kind must be one of {', '.join(KINDS)} (got {unknown[0]})")
        first = seed_of_run() if seed is None else seed
    except CannotRun as reason:
        print(f"virtual: {reason}", file=sys.stderr)
        raise SystemExit(2) from None
    print(f"first seed {first}")
    seen: dict[str, Counter[str]] = {each: Counter() for each in kinds}
    tally, failed = Tally(), list[Judged]()
    processes = min(workers or os.cpu_count() or 1, schedules)
    with (
        interruptible() as cut,
        worker_processes(processes) as pool,
        progress("schedules", schedules * len(kinds)) as meter,
    ):
        for each in kinds:
            for judged in pool.map(judge, repeat(each), range(first, first + schedules), chunksize=10):
                seen[each] += judged.seen
                tally += Tally.of([Verdict.FAILED if judged.broken else Verdict.PASSED])
                if judged.broken:
                    failed.append(judged)
                meter.advance()
    for each, counts in seen.items():
        print(f"{each}: " + ", ".join(f"{number:,} {what}" for what, number in sorted(counts.items())))
    for judged in failed:
        print(f"failed: {judged.kind} {judged.seed}: {judged.broken}")
        print(f"  again: python -m tools.virtual --kind {judged.kind} --schedules 1 --seed {judged.seed}")
    outcome = outcome_of(tally, stopped=cut.happened)
    print(f"{outcome}: {tally.passed:,} of {counted(tally.total, 'schedules')} passed")
    raise SystemExit(outcome.status)


if __name__ == "__main__":
    listen_to_sigterm()
    typer.run(main)
