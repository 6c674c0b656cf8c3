"""Work spread over processes that end with the command.

Ctrl-C reaches every process of a terminal, SIGTERM often only the one that was started by hand. The workers leave
Ctrl-C to the one that started them, which ends them at either: each may be minutes from the end of what it is at, and
nobody waits for that any more. They begin with the signal blocked, since much of a worker's life is its imports, when
nothing of ours could say so yet.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import active_children
from multiprocessing.context import SpawnContext, SpawnProcess
from typing import Any

from .console import CannotRun


class _Worker(SpawnProcess):
    def run(self) -> None:
        try:
            super().run()
        except Exception as reason:  # a task's own exceptions are answers; this one could not be read, or answered
            print(f"fencepost: a worker process: {type(reason).__name__}: {reason}", file=sys.stderr)
            sys.exit(1)

    def start(self) -> None:
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # a child inherits what is blocked
        try:
            super().start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


class _Context(SpawnContext):
    """As ``multiprocessing.get_context("spawn")``; its processes do not hear Ctrl-C. ``made``: all of them."""

    def __init__(self) -> None:
        self.made: list[_Worker] = []

    def Process(self, *told: Any, **named: Any) -> _Worker:  # type: ignore[override]
        self.made.append(_Worker(*told, **named))
        return self.made[-1]


@contextmanager
def worker_processes(count: int) -> Iterator[ProcessPoolExecutor]:
    """A pool of ``count`` processes. If the block ends by an exception they are ended, whatever they are at.

    Raises ``CannotRun`` if one of them was ended from outside, as it is where memory runs out, or could not start, as
    where the program was changed meanwhile. Work that wants new processes now and then takes a new pool: those of the
    standard library that renew theirs may end up with none (``max_tasks_per_child``, where all tasks are handed in at
    once, in Python 3.11 and 3.12).
    """
    context = _Context()
    pool = ProcessPoolExecutor(count, mp_context=context)
    try:
        yield pool
    except BaseException as reason:
        broken = isinstance(reason, BrokenProcessPool)  # which ends the workers itself
        pool.shutdown(wait=broken, cancel_futures=True)
        for child in active_children():
            child.terminate()
        if broken:
            if any((worker.exitcode or 0) > 0 for worker in context.made):  # a signal's number is below 0
                raise CannotRun(
                    "a worker process could not start or go on, for the reason above; if the program was changed "
                    "while it ran, run it again"
                ) from None
            raise CannotRun(
                "a worker process was ended from outside, as for want of memory; try fewer --workers"
            ) from None
        raise
    pool.shutdown()
