"""Files of traces, spread over the executors of a Spark session."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from ..console import CannotRun
from .run import check_one

if TYPE_CHECKING:
    from .run import Plan
    from .verdict import Verdict


def on_spark(plan: Plan) -> Iterator[list[Verdict]]:
    """The verdicts of each file, in the order of the files. The executors must see the same files. Raises CannotRun."""
    try:
        from pyspark.sql import SparkSession  # noqa: PLC0415
    except ModuleNotFoundError:
        raise CannotRun("the Spark engine needs PySpark: pip install 'fencepost[spark]'") from None
    limits, profile = plan.limits, plan.profile
    session = (
        SparkSession.builder.appName("fencepost validate")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .getOrCreate()
    )
    try:
        context = session.sparkContext
        slices = min(len(plan.files), context.defaultParallelism * 4)
        names = context.parallelize([str(path) for path in plan.files], slices)
        yield from names.map(lambda name: check_one(Path(name), limits, profile)).toLocalIterator()
    finally:
        session.stop()
