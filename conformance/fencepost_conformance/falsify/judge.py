"""Falsified copies of one file, and what the checker says of each."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from ..checker.check import check_trace
from ..trace.files import WireTrace, read_traces
from .falsehoods import falsehoods


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
