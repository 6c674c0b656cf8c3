"""The engines that can run a plan: this process and its children, or Spark."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

from ..console import CannotRun
from .local import run_local
from .plan import Plan
from .summary import Summary

#: plan, workers, directory for what is kept (None: nothing is), told of traces as they are done
Engine = Callable[[Plan, int, Path | None, Callable[[int], None]], Summary]


def _local(plan: Plan, workers: int, out: Path | None, advance: Callable[[int], None]) -> Summary:
    del out  # rows are not kept: a local run is quick to do again
    summary = Summary(plan.job)
    for rows in run_local(plan, workers):
        summary.add_all(rows)
        advance(len(rows))
    return summary


def _spark(plan: Plan, workers: int, out: Path | None, advance: Callable[[int], None]) -> Summary:
    try:
        from .spark import run_spark, spark_session  # noqa: PLC0415 — optional
    except ModuleNotFoundError as missing:
        raise CannotRun(
            f"the Spark engine needs {missing.name}; install it with: pip install 'fencepost[spark]'"
        ) from None
    with tempfile.TemporaryDirectory(prefix="fencepost-spark-") as scratch:
        session = spark_session(workers, Path(scratch))
        try:
            return run_spark(session, plan, out or Path(scratch) / "run", advance)
        finally:
            session.stop()


ENGINES: dict[str, Engine] = {"local": _local, "spark": _spark}
