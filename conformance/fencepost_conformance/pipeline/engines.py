"""The engines that can run a plan: this process and its children, or Spark."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ..console import CannotRun
from ..jvm import harness
from ..spark_session import started
from ..targets.registry import TargetName, parse_target
from .local import run_local
from .plan import Plan
from .summary import Summary

#: initial rebalance delay of a broker that is started for a run: half a second spares every trace some of its waiting
_DELAY_MS = 500

#: plan, workers, directory for what is kept (None: nothing is), told of traces as they are done
Engine = Callable[[Plan, int, Path | None, Callable[[int], None]], Summary]


def _local(plan: Plan, workers: int, out: Path | None, advance: Callable[[int], None]) -> Summary:
    target = parse_target(plan.job.target)
    if target.kind == "broker":
        return _broker(plan, target, advance)
    _require_harness(target)
    del out  # rows are not kept: a local run is quick to do again
    summary = Summary(plan.job)
    for rows in run_local(plan, workers):
        summary.add_all(rows)
        advance(len(rows))
    return summary


def _broker(plan: Plan, target: TargetName, advance: Callable[[int], None]) -> Summary:
    from ..targets.broker import Broker  # noqa: PLC0415 — these and kio are of no use to the other targets
    from .over_wire import run_over_wire  # noqa: PLC0415

    if not target.release:
        return run_over_wire(plan, target, advance)
    with Broker(target.release, initial_rebalance_delay_ms=_DELAY_MS) as broker:
        return run_over_wire(plan, TargetName("broker", host="127.0.0.1", port=broker.port), advance)


def _require_harness(target: TargetName) -> None:
    """Fetch and compile what the workers will need, once, before any of them starts. Raises ``CannotRun``."""
    if target.kind == "kafka":
        harness.command(target.build)


def _spark(plan: Plan, workers: int, out: Path | None, advance: Callable[[int], None]) -> Summary:
    target = parse_target(plan.job.target)
    if target.kind == "broker":
        raise CannotRun("a broker is played against by one process; use --engine local")
    _require_harness(target)
    with started(workers) as (session, scratch):
        from .spark import run_spark  # noqa: PLC0415 — Spark is optional, and slow to import

        return run_spark(session, plan, out or scratch / "run", advance)


ENGINES: dict[str, Engine] = {"local": _local, "spark": _spark}
