"""Files of traces, spread over the executors of a Spark session."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from ..spark_session import started
from .run import check_one

if TYPE_CHECKING:
    from .run import Plan
    from .verdict import Verdict


def on_spark(plan: Plan) -> Iterator[list[Verdict]]:
    """The verdicts of each file, in the order of the files. Raises CannotRun."""
    cores = plan.workers or os.cpu_count() or 1
    limits, profile = plan.limits, plan.profile
    with started(cores) as (session, _):
        names = session.sparkContext.parallelize([str(path) for path in plan.files], min(len(plan.files), cores * 4))
        yield from names.map(lambda name: check_one(Path(name), limits, profile)).toLocalIterator()
