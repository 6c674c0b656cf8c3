"""``python -m fencepost_conformance.falsify``: is every falsified copy of these traces refused, and where?"""

from __future__ import annotations

import os
import sys
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from ..checker.check import check_trace
from ..checker.run import find_traces
from ..console import CannotRun, progress
from ..processes import worker_processes
from ..trace.files import WireTrace, read_traces
from .falsehoods import KINDS, falsehoods


def judge(path: Path, per_kind: int | None) -> tuple[Counter[str], list[str]]:
    """How many copies of each kind were made of a file's traces, and what is wrong with the verdict about some."""
    made: Counter[str] = Counter()
    wrong: list[str] = []
    for trace in read_traces(path):
        if not isinstance(trace, WireTrace):
            continue
        for false in falsehoods(trace, per_kind):
            made[false.kind] += 1
            verdict = check_trace(false.trace)
            if verdict.outcome != "refused":
                wrong.append(f"{path}: {false.kind} at event {false.first}: {verdict.outcome}")
            elif not false.first <= verdict.refusals[0].line <= false.last:
                at = verdict.refusals[0].line
                wrong.append(f"{path}: {false.kind}: refused at {at}, not within {false.first}…{false.last}")
    return made, wrong


def falsify(
    traces: Annotated[list[str] | None, typer.Argument(help="trace files, folders of them, or patterns")] = None,
    per_kind: Annotated[int, typer.Option(help="copies of each kind for each trace; 0: all")] = 0,
) -> None:
    """Falsify traces in every way and check that each copy is refused where it breaks."""
    try:
        files = find_traces(traces or ["tests/corpus"])
    except CannotRun as reason:
        print(f"falsify: {reason}", file=sys.stderr)
        raise SystemExit(2) from None
    total: Counter[str] = Counter()
    wrong: list[str] = []
    with worker_processes(os.cpu_count() or 1) as pool, progress("falsifying", len(files)) as meter:
        for made, complaints in pool.map(partial(judge, per_kind=per_kind or None), files):
            total += made
            wrong += complaints
            meter.advance()
    for kind in KINDS:
        print(f"{total[kind]:6} {kind}")
    print(*wrong, sep="\n", end="\n" if wrong else "")
    right = total.total() - len(wrong)
    print(f"{right} of {total.total()} falsified copies of {len(files)} files refused where they break")
    raise SystemExit(1 if wrong else 0)


if __name__ == "__main__":
    typer.run(falsify)
