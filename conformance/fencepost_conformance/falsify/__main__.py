"""``python -m fencepost_conformance.falsify TRACE…``: is every falsified copy of these traces refused, and where?"""

from __future__ import annotations

import os
import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from ..checker.check import check_trace
from ..checker.run import find_traces
from ..console import CannotRun, progress
from ..trace.files import WireTrace, read_traces
from .falsehoods import KINDS, falsehoods


def judge(path: Path) -> tuple[Counter[str], list[str]]:
    """How many copies of each kind there are of a file's traces, and what is wrong with the verdict about some."""
    made: Counter[str] = Counter()
    wrong: list[str] = []
    for trace in read_traces(path):
        if not isinstance(trace, WireTrace):
            continue
        for false in falsehoods(trace):
            made[false.kind] += 1
            verdict = check_trace(false.trace)
            if verdict.outcome != "refused":
                wrong.append(f"{path}: {false.kind} at event {false.first}: {verdict.outcome}")
            elif not false.first <= verdict.refusals[0].line <= false.last:
                at = verdict.refusals[0].line
                wrong.append(f"{path}: {false.kind}: refused at {at}, not within {false.first}…{false.last}")
    return made, wrong


def main(names: list[str]) -> int:
    try:
        files = find_traces(names or ["tests/corpus"])
    except CannotRun as reason:
        print(f"falsify: {reason}", file=sys.stderr)
        return 2
    total: Counter[str] = Counter()
    wrong: list[str] = []
    with ProcessPoolExecutor(os.cpu_count()) as pool, progress("falsifying", len(files)) as meter:
        for made, complaints in pool.map(judge, files):
            total += made
            wrong += complaints
            meter.advance()
    for kind in KINDS:
        print(f"{total[kind]:6} {kind}")
    print(*wrong, sep="\n", end="\n" if wrong else "")
    print(
        f"{total.total() - len(wrong)} of {total.total()} falsified copies of {len(files)} files refused where they break"
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
