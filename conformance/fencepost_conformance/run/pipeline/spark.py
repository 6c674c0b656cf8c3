"""A run on Spark: plan → rows in Parquet → aggregates.

Each wave of the plan is one Spark job of one stage. Nothing is shuffled, so a lost executor costs only its current
tasks. A task's chunks reach a Python worker as Arrow batches; the worker keeps its checker, and with it its JVM,
between chunks and waves. Rows do not say where they were made, so they are equal on any number of cores. Spark's own
writer commits a wave's rows, each task's from one of its attempts. A committed wave is not run again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ...common.errors import CannotRun
from ...common.interruption import INTERRUPTED, interruptible
from ...judge.coverage import catalogue
from ...judge.rows.job import Row, TraceOutcome
from ...judge.rows.summary import KEPT, UNSETTLED_KEPT, FailureGroup, Summary
from ...judge.verdict import Verdict
from ...targets.jvm.process import NoStart, ProcessFault
from ...targets.registry import TargetName, parse_target
from ..cluster.folder import Folder
from ..cluster.progress import job_progress
from ..cluster.session import Running, cause
from ..cluster.shipping import Kit
from .kept import kept_checker
from .plan import Plan, claim

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROWS = "rows"
#: tasks of a wave for each core, so that a core that is finished early takes another
_TASKS = 4
#: traces of a wave for each core of a cluster: a minute or more, so that the end of a wave matters little
_WAVE = 4_000
_COMMITTED = "_SUCCESS"
_SCHEMA = (
    "seed bigint, outcome string, divergence string, event int, field string, left string, right string, steps int, "
    "replies int, records int, timers int, followed int, coverage array<int>, digest string, "
    "group string"
)
_ARROW = pa.schema(
    [
        ("seed", pa.int64()),
        *((name, pa.string()) for name in ("outcome", "divergence")),
        ("event", pa.int32()),
        *((name, pa.string()) for name in ("field", "left", "right")),
        *((name, pa.int32()) for name in ("steps", "replies", "records", "timers", "followed")),
        ("coverage", pa.list_(pa.int32())),
        ("digest", pa.string()),
        ("group", pa.string()),
    ]
)


def run_spark(running: Running, plan: Plan, folder: Folder, advance: Callable[[int], None] = lambda _: None) -> Summary:
    """Run the waves that are not committed yet, and sum up everything. ``advance`` gets the number of finished traces.

    If it is interrupted, or the target stops running traces, it sums up the committed waves. Raises ``CannotRun`` if
    the folder holds another run, or does not hold one row for each trace at the end."""
    session = running.session
    if running.cluster:
        plan = replace(plan, wave=max(plan.wave, _WAVE * running.cores))
    plan = claim(folder, plan)
    done, stopped = 0, ""
    with interruptible() as cut:
        for seeds in plan.waves():
            target = wave_folder(seeds)
            if folder.exists(f"{target}/{_COMMITTED}"):
                advance(len(seeds))
            else:
                with job_progress(session, len(seeds), _tasks(session, plan, seeds), advance):
                    fault = _written(running, plan, seeds, folder.for_spark(target))
                if fault is not None and done:
                    stopped = fault
                    break
                if fault is not None:
                    raise CannotRun(fault)
            done += len(seeds)
    if not cut.happened and not stopped:
        return summarise(plan, all_rows(session, plan, folder), folder.name)
    if cut.happened:
        session.sparkContext.cancelAllJobs()  # after SIGTERM the last job still runs
    part = replace(plan, count=done)
    summary = summarise(part, all_rows(session, part, folder), folder.name) if done else Summary(plan.job)
    summary.stopped = stopped or INTERRUPTED
    return summary


def _written(running: Running, plan: Plan, seeds: range, where: str) -> str | None:
    """Write the rows of a wave; returns why the target stopped running traces, or None."""
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # noqa: PLC0415 — comes with Spark
    from pyspark.errors import PySparkException  # noqa: PLC0415

    try:
        check_wave(running, plan, seeds).write.mode("overwrite").parquet(where)
    except (PySparkException, Py4JError) as broken:
        name, _, words = cause(broken).partition(": ")
        if name not in (f"{ProcessFault.__module__}.{kind.__name__}" for kind in (ProcessFault, NoStart)):
            raise
        return words
    return None


def wave_folder(seeds: range) -> str:
    """Return the folder of a wave's rows within the folder of their run."""
    return f"{ROWS}/seeds-{seeds.start}-{seeds.stop}"


def all_rows(session: SparkSession, plan: Plan, folder: Folder) -> DataFrame:
    """Return the rows of every wave of the plan."""
    return session.read.schema(_SCHEMA).parquet(*(folder.for_spark(wave_folder(seeds)) for seeds in plan.waves()))


def check_wave(running: Running, plan: Plan, seeds: range) -> DataFrame:
    """Return the rows of some seeds, computed lazily on the executors."""
    tasks = _tasks(running.session, plan, seeds)
    numbers = running.session.range(0, len(plan.chunks(seeds)), 1, tasks)
    return numbers.mapInArrow(_worker(plan, seeds, running.kit, parse_target(plan.job.target)), _SCHEMA)


def _tasks(session: SparkSession, plan: Plan, seeds: range) -> int:
    return min(len(plan.chunks(seeds)), session.sparkContext.defaultParallelism * _TASKS)


def _worker(
    plan: Plan, seeds: range, kit: Kit, target: TargetName
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return a function that turns the numbers of a wave's chunks into the rows of their traces."""

    def check(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        kit.open()
        checker = kept_checker(plan.job, target)
        for batch in batches:
            for number in batch.column("id").to_pylist():
                yield as_arrow(checker.check(plan.chunk_of(seeds, number)))

    return check


def as_arrow(rows: list[Row]) -> pa.RecordBatch:
    """Return rows as an Arrow batch, with the coverage bitmap as the positions of its bits."""
    columns = {name: [getattr(row, name) for row in rows] for name in _ARROW.names}
    columns["coverage"] = [catalogue.places(row.coverage) for row in rows]
    return pa.RecordBatch.from_pydict(columns, schema=_ARROW)


def summarise(plan: Plan, rows: DataFrame, where: str) -> Summary:
    """Let Spark sum up the rows. Raises ``CannotRun`` unless there is one for each trace: the storage is not under the
    suite's control, and its committer may not be Spark's own."""
    from pyspark.sql import functions as f  # noqa: PLC0415

    summary = Summary(plan.job)
    sums = ("steps", "replies", "records", "timers", "followed")
    total = rows.agg(
        f.count("*").alias("traces"),
        f.sum(f.col("seed") - plan.first).alias("places"),
        *(f.sum(name).alias(name) for name in sums),
    ).first()
    assert total is not None
    if (total["traces"], total["places"]) != (plan.count, plan.count * (plan.count - 1) // 2):
        raise CannotRun(
            f"{where} holds {total['traces']:,} rows for {plan.count:,} traces, not one for each: another program "
            "wrote there, or rows were lost; run again with another folder"
        )
    summary.traces = total["traces"]
    for name in sums:
        setattr(summary, name, total[name] or 0)
    for row in rows.groupBy("outcome", "divergence").count().collect():
        outcome = TraceOutcome(row["outcome"])
        summary.verdicts[outcome.verdict] += row["count"]
        if outcome is TraceOutcome.DIVERGED:
            summary.divergences[row["divergence"]] += row["count"]
    reached = rows.select(f.explode("coverage").alias("place")).distinct().collect()
    summary.reached = catalogue.bitmap(catalogue.FEATURES[row["place"]] for row in reached)
    failed = _of(rows, Verdict.FAILED)
    summary.failures = _first(failed, KEPT)
    if summary.verdicts[Verdict.UNDECIDED] or summary.verdicts[Verdict.BROKEN]:
        summary.unsettled_rows = _first(_of(rows, Verdict.UNDECIDED, Verdict.BROKEN), UNSETTLED_KEPT)
    first = f.struct("seed", "event", "left", "right")
    for row in failed.groupBy("group").agg(f.count("*").alias("traces"), f.min(first).alias("first")).collect():
        summary.groups[row["group"]] = FailureGroup(row["group"], row["traces"], *row["first"])
    return summary


def _of(rows: DataFrame, *verdicts: Verdict) -> DataFrame:
    """Return the rows with one of these verdicts."""
    from pyspark.sql import functions as f  # noqa: PLC0415

    return rows.where(f.col("outcome").isin([each.value for each in TraceOutcome if each.verdict in verdicts]))


def _first(rows: DataFrame, most: int) -> list[Row]:
    return [from_spark(row.asDict()) for row in rows.orderBy("seed").limit(most).collect()]


def from_spark(values: dict[str, Any]) -> Row:
    """Return a row as Spark read it."""
    return Row(**{**values, "coverage": catalogue.bitmap(catalogue.FEATURES[place] for place in values["coverage"])})
