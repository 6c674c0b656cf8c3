"""The progress of a Spark job."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: how often to check the progress of a job
_LOOK_S = 0.5


@contextmanager
def job_progress(session: SparkSession, count: int, tasks: int, advance: Callable[[int], None]) -> Iterator[None]:
    """Report the ``count`` pieces of work of the job in the block as its ``tasks`` end, and the rest when it is
    done."""
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # noqa: PLC0415 — comes with Spark

    tracker = session.sparkContext.statusTracker()
    said, over = 0, threading.Event()

    def watch() -> None:
        nonlocal said
        while not over.wait(_LOOK_S):
            try:
                stages = [tracker.getStageInfo(number) for number in tracker.getActiveStageIds()]
            except (Py4JError, OSError):  # Spark has ended; the job in the block reports that better
                return
            done = max((each.numCompletedTasks for each in stages if each and each.numTasks == tasks), default=0)
            more = count * done // tasks - said
            if more > 0:
                said += more
                advance(more)

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()
    advance(count - said)
