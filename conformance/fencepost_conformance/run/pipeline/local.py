"""A run on this machine: chunks of seeds, in this process or in a few of its children."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from functools import partial
from types import TracebackType
from typing import Self

from ...common.processes import worker_processes
from ...judge.rows.job import Job, Row
from .kept import close_kept, kept_checker
from .plan import Plan


class Crew:
    """Processes that run one plan after another. Each starts its resources, above all a JVM, only once."""

    def __init__(self) -> None:
        self._pool: ProcessPoolExecutor | None = None
        self._size = 0
        self._open = ExitStack()

    def run(self, plan: Plan, workers: int) -> Iterator[list[Row]]:
        """Yield the rows of each chunk, in order of seeds. Raises ``CannotRun`` if a worker was ended from outside."""
        chunks = plan.chunks(range(plan.first, plan.first + plan.count))
        size = min(workers, len(chunks))
        if size < 2:
            for chunk in chunks:
                yield _check(plan.job, chunk)
            return
        try:
            yield from self._of(size).map(partial(_check, plan.job), chunks)
        except BaseException:  # also when the caller stops early: end the workers at once
            self.__exit__(*sys.exc_info())
            raise

    def _of(self, size: int) -> ProcessPoolExecutor:
        if self._pool is None or self._size != size:
            self._open.close()
            self._pool, self._size = self._open.enter_context(worker_processes(size)), size
        return self._pool

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, at: TracebackType | None) -> None:
        close_kept()
        self._pool = None
        self._open.pop_all().__exit__(kind, value, at)


def run_local(plan: Plan, workers: int) -> Iterator[list[Row]]:
    """Run one plan with its own crew; as ``Crew.run``."""
    with Crew() as crew:
        yield from crew.run(plan, workers)


def _check(job: Job, chunk: range) -> list[Row]:
    return kept_checker(job).check(chunk)
