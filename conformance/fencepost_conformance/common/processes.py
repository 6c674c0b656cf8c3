"""Work spread over processes that end with the command.

Ctrl-C reaches every process of a terminal, SIGTERM often only the one that was started by hand. Workers ignore Ctrl-C;
the process that started them ends them at either signal, since a worker may need minutes to finish and its result is
no longer needed. They start with the signal blocked, because they import for a long time before they could ignore it.

Neither signal interrupts the start of a worker. A worker whose start was cut short would be in no list of processes: it
would wait for work for ever, and so would a reader of the command's output, which the worker has inherited.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import active_children
from multiprocessing.context import SpawnContext, SpawnProcess
from typing import Any

from .errors import CannotRun


class _Worker(SpawnProcess):
    def run(self) -> None:
        try:
            super().run()
        except Exception as reason:  # exceptions of a task are results; this one could not be transferred
            print(f"fencepost: a worker process: {type(reason).__name__}: {reason}", file=sys.stderr)
            sys.exit(1)

    def start(self) -> None:
        with _put_off(signal.SIGINT, signal.SIGTERM):
            before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # a child inherits what is blocked
            try:
                super().start()
            finally:
                signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _put_off(*numbers: signal.Signals) -> Iterator[None]:
    """Handle these signals after the block. Blocking them is not enough: another thread takes a blocked signal, and the
    main thread raises the exception nevertheless. Only the main thread does, so other threads need nothing."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    before = {number: signal.signal(number, lambda number, _: came.append(number)) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
        for late in came:
            signal.raise_signal(late)


class _Context(SpawnContext):
    """Like ``multiprocessing.get_context("spawn")``; its processes ignore Ctrl-C. ``made``: all of them."""

    def __init__(self) -> None:
        self.made: list[_Worker] = []

    def Process(self, *positional: Any, **named: Any) -> _Worker:  # type: ignore[override]
        self.made.append(_Worker(*positional, **named))
        return self.made[-1]


@contextmanager
def worker_processes(count: int) -> Iterator[ProcessPoolExecutor]:
    """Open a pool of ``count`` processes. If the block ends by an exception they are ended at once.

    Raises ``CannotRun`` if one of them was ended from outside, for example when memory ran out, or could not start, for
    example because the program was changed meanwhile. Work that needs new processes from time to time must open a new
    pool: pools of the standard library that renew theirs may end up with none (``max_tasks_per_child``, if all tasks
    are submitted together, in Python 3.11 and 3.12).
    """
    context = _Context()
    pool = ProcessPoolExecutor(count, mp_context=context)
    try:
        yield pool
    except BaseException as reason:
        broken = isinstance(reason, BrokenProcessPool)  # then the pool ends the workers itself
        pool.shutdown(wait=broken, cancel_futures=True)
        for child in active_children():
            child.terminate()
        if broken:
            if any((worker.exitcode or 0) > 0 for worker in context.made):  # a signal's number is below 0
                raise CannotRun(
                    "a worker process could not start or continue, for the reason above; if the program was changed "
                    "while it ran, run it again"
                ) from None
            raise CannotRun(
                "a worker process was ended from outside, perhaps for lack of memory; try fewer --workers"
            ) from None
        raise
    pool.shutdown()
