"""A run on this machine: chunks of seeds, in this process or in a few of its children."""

from __future__ import annotations

from collections.abc import Iterator

from ..processes import WORKERS
from .check import Checker
from .job import Job, Row
from .plan import Plan

_checker: Checker | None = None


def run_local(plan: Plan, workers: int) -> Iterator[list[Row]]:
    """The rows of each chunk, in order of seeds."""
    chunks = plan.chunks(range(plan.first, plan.first + plan.count))
    if workers < 2 or len(chunks) < 2:
        checker = Checker(plan.job)
        try:
            for chunk in chunks:
                yield checker.check(chunk)
        finally:
            checker.close()
        return
    with WORKERS.Pool(min(workers, len(chunks)), _start, (plan.job,)) as pool:
        yield from pool.imap(_check, chunks)


def _start(job: Job) -> None:
    global _checker  # noqa: PLW0603 — one checker a worker process, which lives as long as the pool
    _checker = Checker(job)


def _check(chunk: range) -> list[Row]:
    assert _checker is not None
    return _checker.check(chunk)
