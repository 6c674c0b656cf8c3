"""``python -m fencepost_conformance.falsify``: is every falsified copy of these traces refused, and where?"""

from __future__ import annotations

import os
import sys
from collections import Counter
from functools import partial
from typing import Annotated

import typer

from ..checker.run import find_traces
from ..console import CannotRun, progress
from ..counting import counted
from ..interruption import listen_to_sigterm
from ..processes import worker_processes
from .falsehoods import KINDS
from .judge import judge  # not of this module: a worker cannot import a ``__main__``


def falsify(
    traces: Annotated[list[str] | None, typer.Argument(help="trace files, folders of them, or patterns")] = None,
    per_kind: Annotated[int, typer.Option(min=0, help="copies of each kind for each trace; 0: all")] = 0,
    workers: Annotated[int, typer.Option(min=0, help="processes; 0: one a core")] = 0,
) -> None:
    """Falsify traces in every way and check that each copy is refused where it breaks."""
    total: Counter[str] = Counter()
    wrong: list[str] = []
    try:
        files = find_traces(traces or ["tests/corpus"])
        some = min(workers or os.cpu_count() or 1, len(files))
        with worker_processes(some) as pool, progress("falsifying", len(files)) as meter:
            for made, complaints in pool.map(partial(judge, per_kind=per_kind or None), files):
                total += made
                wrong += complaints
                meter.advance()
    except CannotRun as reason:
        print(f"falsify: {reason}", file=sys.stderr)
        raise SystemExit(2) from None
    for kind in KINDS:
        print(f"{total[kind]:6} {kind}")
    print(*wrong, sep="\n", end="\n" if wrong else "")
    right = total.total() - len(wrong)
    print(f"{right} of {total.total()} falsified copies of {counted(len(files), 'files')} refused where they break")
    raise SystemExit(1 if wrong else 0)


if __name__ == "__main__":
    listen_to_sigterm()
    typer.run(falsify)
