"""``python -m fencepost_conformance.run.falsify``: does the checker reject each falsified copy, in the right place?"""

from __future__ import annotations

import os
import sys
from functools import partial
from typing import Annotated

import typer

from ...common.counting import counted
from ...common.errors import CannotRun
from ...common.interruption import interruptible, listen_to_sigterm
from ...common.processes import worker_processes
from ...judge.verdict import gaps, outcome_of
from ...show.console import progress
from ..validate.run import find_traces
from .falsehoods import KINDS
from .judge import Judged, judge  # a worker process cannot import a ``__main__``


def falsify(
    traces: Annotated[list[str] | None, typer.Argument(help="trace files, folders of them, or patterns")] = None,
    per_kind: Annotated[int, typer.Option(min=0, help="copies of each kind for each trace; 0 makes all")] = 0,
    workers: Annotated[int, typer.Option(min=0, help="worker processes; 0 starts one per core")] = 0,
) -> None:
    """Falsify traces in every way and check that the checker rejects each copy where it breaks."""
    total = Judged()
    try:
        files = find_traces(traces or ["tests/corpus"])
        some = min(workers or os.cpu_count() or 1, len(files))
        with interruptible() as cut, worker_processes(some) as pool, progress("falsifying", len(files)) as meter:
            for found in pool.map(partial(judge, per_kind=per_kind or None), files):
                total.add(found)
                meter.advance()
    except CannotRun as reason:
        print(f"falsify: {reason}", file=sys.stderr)
        raise SystemExit(2) from None
    for kind in KINDS:
        print(f"{total.made[kind]:6} {kind}")
    for complaint in total.wrong:
        print(f"failed: {complaint}")
    for each in total.unsettled:
        print(f"{each.verdict}: {each.what}: {each.why}")
    tally = total.tally()
    stopped = cut.reason(f"{counted(meter.completed, 'files')} of {len(files):,} done")
    outcome = outcome_of(tally, stopped=cut.happened)
    print(
        f"{outcome}: {tally.passed} of {total.made.total()} falsified copies of {counted(len(files), 'files')} "
        "rejected where they break"
    )
    for gap in gaps(tally, total.unsettled, "falsified copies and broken traces", stopped):
        print(f"falsify: {gap}", file=sys.stderr)
    raise SystemExit(outcome.status)


if __name__ == "__main__":
    listen_to_sigterm()
    typer.run(falsify)
