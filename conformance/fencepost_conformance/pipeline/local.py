"""A run on this machine: chunks of seeds, in this process or in a few of its children."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from ..processes import worker_processes
from .check import Checker
from .job import Job, Row
from .plan import Plan

_checkers: dict[Job, Checker] = {}


def run_local(plan: Plan, workers: int) -> Iterator[list[Row]]:
    """The rows of each chunk, in order of seeds. Raises ``CannotRun`` if a worker was ended from outside."""
    chunks = plan.chunks(range(plan.first, plan.first + plan.count))
    if workers < 2 or len(chunks) < 2:
        checker = Checker(plan.job)
        try:
            for chunk in chunks:
                yield checker.check(chunk)
        finally:
            checker.close()
        return
    with worker_processes(min(workers, len(chunks))) as pool:
        yield from pool.map(partial(_check, plan.job), chunks)


def _check(job: Job, chunk: range) -> list[Row]:
    """In a worker, which keeps its checker (and with it its JVM) as long as it lives."""
    if job not in _checkers:
        _checkers[job] = Checker(job)
    return _checkers[job].check(chunk)
