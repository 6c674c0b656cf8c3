"""The engines that can run a plan: this process and its children, or Spark."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from fencepost_model.classic.scala import KAFKA_3_9

from ...common.errors import CannotRun, NotOffered
from ...common.interruption import INTERRUPTED, interruptible
from ...common.nearest import unknown
from ...generate.plan import GroupProtocol
from ...judge.rows.summary import Summary
from ...targets.jvm import harness
from ...targets.jvm.builds import numbers
from ...targets.jvm.process import ProcessFault, in_a_line
from ...targets.registry import TargetName, parse_target
from ...traces.wire.settings import spelled
from ..cluster import needs
from ..cluster.folder import folder_of, is_url
from ..cluster.place import Place, is_cluster
from ..cluster.session import started
from .local import Crew, run_local
from .plan import Plan

#: initial rebalance delay of a broker that a run starts: half a second shortens the waiting in every trace
_DELAY_MS = 500

#: the first release of Kafka with the released consumer protocol
_KIP_848 = (4, 0)

#: arguments: plan, workers, directory for rows (None: keep nothing), callback with the number of finished traces.
#: Ctrl-C or SIGTERM ends it with the summary of the finished part, which says so (``Summary.stopped``)
Engine = Callable[[Plan, int, Path | None, Callable[[int], None]], Summary]


def _local(
    plan: Plan, workers: int, out: Path | None, advance: Callable[[int], None], crew: Crew | None = None
) -> Summary:
    target = parse_target(plan.job.target)
    if target.kind == "broker":
        return _broker(plan, target, workers, advance)
    _require_harness(target)
    del out  # a local run keeps no rows, since it is quick to repeat
    summary = Summary(plan.job)
    with interruptible() as cut:
        try:
            for rows in run_local(plan, workers) if crew is None else crew.run(plan, workers):
                summary.add_all(rows)
                advance(len(rows))
        except ProcessFault as fault:
            if not summary.traces:
                raise
            summary.stopped = in_a_line(fault)
    summary.stopped = INTERRUPTED if cut.happened else summary.stopped
    return summary


def _broker(plan: Plan, target: TargetName, workers: int, advance: Callable[[int], None]) -> Summary:
    from ...targets.broker import SCALA_COORDINATOR, Broker  # noqa: PLC0415 — these and kio are of no use to the other targets
    from .over_wire import run_over_wire  # noqa: PLC0415

    if target.program:
        raise CannotRun(
            f"{target.program} is started for the named cases, which random traces follow: "
            f"fencepost conform {target.program} --traces {plan.count}"
        )
    summary = Summary(plan.job)
    if target.release and numbers(target.release) < _KIP_848 and plan.job.protocol is not GroupProtocol.CLASSIC:
        raise NotOffered(
            f"Kafka {target.release} has KIP-848 in early access only; --protocol {plan.job.protocol} needs 4.0 "
            "or later (--protocol classic works)"
        )
    if plan.job.profile == KAFKA_3_9.name and plan.job.protocol is not GroupProtocol.CLASSIC:
        raise NotOffered(f"profile {KAFKA_3_9.name} judges --protocol classic only, not {plan.job.protocol}")
    with interruptible() as cut:
        if target.release:
            own = dict(spelled(field, value).split("=", 1) for field, value in plan.job.given)
            if plan.job.profile == KAFKA_3_9.name:
                own |= SCALA_COORDINATOR
            with Broker(target.release, initial_rebalance_delay_ms=_DELAY_MS, settings=own) as broker:
                here = TargetName("broker", host="127.0.0.1", port=broker.port)
                run_over_wire(plan, here, summary, advance, workers)
        else:
            run_over_wire(plan, target, summary, advance, workers)
    summary.stopped = INTERRUPTED if cut.happened else summary.stopped
    return summary


def _require_harness(target: TargetName) -> None:
    """Fetch and compile the workers' dependencies once, before any of them starts. Raises ``CannotRun``."""
    if target.kind == "kafka":
        harness.command(target.build)


def _spark(plan: Plan, workers: int, out: Path | None, advance: Callable[[int], None]) -> Summary:
    with _spark_at(Place(cores=workers), parse_target(plan.job.target), None) as run:
        return run(plan, workers, out, advance)


@contextmanager
def _spark_at(place: Place, target: TargetName, rows: str | None) -> Iterator[Engine]:
    """Yield an engine that runs plans about one target in one session; ``rows``: path or URL for rows, default
    ``out``."""
    if target.kind == "broker":
        raise CannotRun("a broker target needs --engine local")
    _require_shared(place.master, rows)
    _require_harness(target)
    with started(place, needs.TRACES, [target.build] if target.kind == "kafka" else [], light=True) as running:
        from .spark import run_spark  # noqa: PLC0415 — Spark is optional, and slow to import

        _require_shared(running.master, rows)  # spark-submit may have set it

        def run(plan: Plan, _: int, out: Path | None, advance: Callable[[int], None]) -> Summary:
            kept = f"{rows.rstrip('/')}/{plan.job.profile}-{plan.job.protocol}" if rows else out
            with tempfile.TemporaryDirectory(dir=running.scratch) as scratch:
                return run_spark(running, plan, folder_of(running.session, kept or Path(scratch)), advance)

        yield run


def _require_shared(master: str, rows: str | None) -> None:
    """Raise ``CannotRun`` if rows would go where the executors of a cluster cannot find each other's."""
    if master and is_cluster(master) and not (rows and is_url(rows)):
        raise CannotRun(
            "on a cluster each machine writes its own rows: give the URL of a folder that all machines can reach, "
            "--rows hdfs://… or s3a://…, or file:///… where it is mounted on all"
        )


ENGINES: dict[str, Engine] = {"local": _local, "spark": _spark}


@contextmanager
def opened(name: str, target: TargetName, place: Place, rows: str | None) -> Iterator[Engine]:
    """Yield the engine of that name, for plans about one target. ``place``, ``rows``: for Spark. Raises
    ``CannotRun``."""
    if name not in ENGINES:
        raise CannotRun(unknown("engine", name, ENGINES, f"known: {', '.join(ENGINES)}"))
    if name == "spark":
        with _spark_at(place, target, rows) as engine:
            yield engine
        return
    if rows is not None:
        raise CannotRun("--rows needs --engine spark; the local engine keeps no rows")
    with Crew() as crew:
        yield partial(_local, crew=crew)
