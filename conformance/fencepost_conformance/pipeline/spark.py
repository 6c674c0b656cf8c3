"""A run on Spark: plan → rows in Parquet → aggregates.

Each wave of the plan is one Spark job. Its chunks are spread over the executors as Arrow batches; a Python worker
keeps its checker, and with it its JVM, from chunk to chunk and from wave to wave. Rows say nothing of where they were
made, so they are equal on any number of cores. A wave's rows are committed by Spark's own writer; a wave that has been
committed is not run again.
"""

from __future__ import annotations

import os
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ..coverage import catalogue
from .check import Checker
from .job import Job, Row, Verdict
from .plan import Plan, claim
from .summary import KEPT, Summary

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROWS = "rows"
#: how often to look how far a job is
_LOOK_S = 0.5
_COMMITTED = "_SUCCESS"
_SCHEMA = (
    "seed bigint, verdict string, divergence string, event int, field string, left string, right string, steps int, "
    "replies int, records int, timers int, followed int, coverage array<int>, digest string"
)
_ARROW = pa.schema(
    [
        ("seed", pa.int64()),
        *((name, pa.string()) for name in ("verdict", "divergence")),
        ("event", pa.int32()),
        *((name, pa.string()) for name in ("field", "left", "right")),
        *((name, pa.int32()) for name in ("steps", "replies", "records", "timers", "followed")),
        ("coverage", pa.list_(pa.int32())),
        ("digest", pa.string()),
    ]
)
_QUIET = """\
status = error
rootLogger.level = error
rootLogger.appenderRef.console.ref = console
logger.gateway.name = org.apache.spark.api.python.PythonGatewayServer
logger.gateway.level = error
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %p %c{1}: %m%n
"""


def spark_session(cores: int, scratch: Path) -> SparkSession:
    """A quiet session on this machine: no web pages, nothing that listens beyond loopback."""
    # only map and read are used, none of which concerns the version of pandas
    warnings.filterwarnings("ignore", message="PySpark does not yet fully support pandas", category=FutureWarning)
    from pyspark.sql import SparkSession  # noqa: PLC0415 — Spark is optional, and slow to import

    scratch.mkdir(parents=True, exist_ok=True)
    logging = scratch / "log4j2.properties"
    logging.write_text(_QUIET)
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder: Any = SparkSession.builder
    builder = (
        builder.master(f"local[{cores}]")
        .appName("fencepost")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.extraJavaOptions", f"-Dlog4j2.configurationFile={logging.resolve().as_uri()}")
        .config("spark.local.dir", str((scratch / "spark").resolve()))
        .config("spark.sql.warehouse.dir", str((scratch / "warehouse").resolve()))
        .config("spark.sql.execution.arrow.maxRecordsPerBatch", "1")  # a batch of the plan is one chunk
        .config("spark.sql.shuffle.partitions", str(cores))
        .config("spark.python.worker.reuse", "true")
    )
    with _words_kept_in(scratch / "start.log"):
        session: SparkSession = builder.getOrCreate()
    return session


@contextmanager
def _words_kept_in(file: Path) -> Iterator[None]:
    """What this process and its children write on standard error goes to a file; a failure shows it after all."""
    sys.stderr.flush()
    kept = os.dup(2)
    with file.open("wb") as stream:
        os.dup2(stream.fileno(), 2)
    try:
        yield
    except BaseException:
        os.write(kept, file.read_bytes())
        raise
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def run_spark(
    session: SparkSession, plan: Plan, directory: Path, advance: Callable[[int], None] = lambda _: None
) -> Summary:
    """Run what of the plan is not committed yet, and sum up everything. ``advance`` is told of traces as they are done.

    Raises ``CannotRun`` if the directory holds another run."""
    claim(directory, plan)
    for seeds in plan.waves():
        target = wave_directory(directory, seeds)
        if (target / _COMMITTED).exists():
            advance(len(seeds))
            continue
        with _told(session, len(seeds), _tasks(session, plan, seeds), advance):
            check_wave(session, plan, seeds).write.mode("overwrite").parquet(str(target))
    return summarise(plan.job, all_rows(session, plan, directory))


@contextmanager
def _told(session: SparkSession, count: int, tasks: int, advance: Callable[[int], None]) -> Iterator[None]:
    """Tell of the ``count`` traces of the job within as its ``tasks`` end, and of the rest when it is done."""
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # noqa: PLC0415 — comes with Spark

    tracker = session.sparkContext.statusTracker()
    told, over = 0, threading.Event()

    def watch() -> None:
        nonlocal told
        while not over.wait(_LOOK_S):
            try:
                stages = [tracker.getStageInfo(number) for number in tracker.getActiveStageIds()]
            except (Py4JError, OSError):  # Spark has ended, which the job within will say better
                return
            # another stage deals out the plan, with a task for each core
            done = max((each.numCompletedTasks for each in stages if each and each.numTasks == tasks), default=0)
            more = count * done // tasks - told
            if more > 0:
                told += more
                advance(more)

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()
    advance(count - told)


def wave_directory(directory: Path, seeds: range) -> Path:
    return directory / ROWS / f"seeds-{seeds.start}-{seeds.stop}"


def all_rows(session: SparkSession, plan: Plan, directory: Path) -> DataFrame:
    """The rows of every wave of the plan."""
    return session.read.schema(_SCHEMA).parquet(*(str(wave_directory(directory, seeds)) for seeds in plan.waves()))


def check_wave(session: SparkSession, plan: Plan, seeds: range) -> DataFrame:
    """The rows of some seeds, made where the executors are; lazily, as Spark does."""
    chunks = [(chunk.start, chunk.stop) for chunk in plan.chunks(seeds)]
    planned = session.createDataFrame(chunks, "start bigint, stop bigint").repartition(_tasks(session, plan, seeds))
    return planned.mapInArrow(_worker(plan.job), _SCHEMA)


def _tasks(session: SparkSession, plan: Plan, seeds: range) -> int:
    """More than cores, so that a core which is done early takes another."""
    return min(len(plan.chunks(seeds)), session.sparkContext.defaultParallelism * 4)


_checkers: dict[Job, Checker] = {}


def _worker(job: Job) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def check(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        checker = kept_checker(job)
        for batch in batches:
            for chunk in batch.to_pylist():
                yield as_arrow(checker.check(range(chunk["start"], chunk["stop"])))

    return check


def kept_checker(job: Job) -> Checker:
    """This process's checker of the job. It lives as long as the worker, which ends its JVM with it."""
    if job not in _checkers:
        _checkers[job] = Checker(job)
    return _checkers[job]


def as_arrow(rows: list[Row]) -> pa.RecordBatch:
    """Rows as an Arrow batch; the coverage bitmap as the places of its bits."""
    columns = {name: [getattr(row, name) for row in rows] for name in _ARROW.names}
    columns["coverage"] = [catalogue.places(row.coverage) for row in rows]
    return pa.RecordBatch.from_pydict(columns, schema=_ARROW)


def summarise(job: Job, rows: DataFrame) -> Summary:
    """The rows summed up by Spark."""
    from pyspark.sql import functions as f  # noqa: PLC0415

    summary = Summary(job)
    sums = ("steps", "replies", "records", "timers", "followed")
    total = rows.agg(f.count("*").alias("traces"), *(f.sum(name).alias(name) for name in sums)).first()
    assert total is not None
    summary.traces = total["traces"]
    for name in sums:
        setattr(summary, name, total[name] or 0)
    for row in rows.groupBy("verdict", "divergence").count().collect():
        if row["verdict"] == Verdict.DIVERGED:
            summary.divergences[row["divergence"]] += row["count"]
        elif not Verdict(row["verdict"]).held:
            summary.failed += row["count"]
    reached = rows.select(f.explode("coverage").alias("place")).distinct().collect()
    summary.reached = catalogue.bitmap(catalogue.FEATURES[row["place"]] for row in reached)
    held = [verdict.value for verdict in Verdict if verdict.held]
    failures = rows.where(~f.col("verdict").isin(held)).orderBy("seed").limit(KEPT).collect()
    summary.failures = [from_spark(row.asDict()) for row in failures]
    return summary


def from_spark(values: dict[str, Any]) -> Row:
    """A row as Spark read it."""
    return Row(**{**values, "coverage": catalogue.bitmap(catalogue.FEATURES[place] for place in values["coverage"])})
