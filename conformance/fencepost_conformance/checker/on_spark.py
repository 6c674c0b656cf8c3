"""Files of traces, spread over the executors of a Spark session."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from ..console import CannotRun
from .run import check_one

if TYPE_CHECKING:
    from .run import Plan
    from .verdict import Verdict


def on_spark(plan: Plan) -> Iterator[list[Verdict]]:
    """The verdicts of each file, in the order of the files. Raises CannotRun."""
    try:
        from ..pipeline.spark import spark_session  # noqa: PLC0415

        scratch = tempfile.TemporaryDirectory(prefix="fencepost-spark-", ignore_cleanup_errors=True)
        cores = plan.workers or os.cpu_count() or 1
        session = spark_session(cores, Path(scratch.name))
    except ModuleNotFoundError as missing:
        raise CannotRun(f"the Spark engine needs {missing.name}: pip install 'fencepost[spark]'") from None
    limits, profile = plan.limits, plan.profile
    try:
        names = session.sparkContext.parallelize([str(path) for path in plan.files], min(len(plan.files), cores * 4))
        yield from names.map(lambda name: check_one(Path(name), limits, profile)).toLocalIterator()
    finally:
        session.stop()
        scratch.cleanup()
