"""The pipeline on one and on two cores, and with Kafka: traces per second, and the time before a run begins."""

from __future__ import annotations

import shutil
import time

from fencepost.protocol.profiles import KAFKA_4_4

from ...common.errors import CannotRun
from ...judge.rows.job import Job
from ...targets.jvm.harness import command
from ...targets.jvm.releases import NEWEST
from ..cluster import needs
from ..cluster.folder import LocalFolder
from ..cluster.place import Place
from ..cluster.session import started
from ..pipeline.plan import Plan
from .measure import Row, rate

_STEPS = 60
_FEW, _MANY = 10, 400


def spark() -> list[Row]:
    if shutil.which("java") is None:
        raise CannotRun("Spark needs a Java runtime, 17 or later")
    command(NEWEST)  # fetch and compile before anything is timed
    one, two, kafka = _run(1), _run(2), _run(2, f"kafka:{NEWEST}")
    beside = "without Kafka"
    return [
        Row("spark", "traces on 2 cores", two[1], "traces a second", "on 1 core", one[1], two[1] / one[1], "2 times"),
        Row("spark", "the same, run by Kafka too", kafka[1], "traces a second", beside, two[1], kafka[1] / two[1]),
        Row("spark", "a run of hardly any traces, session included", two[0], "seconds", "on 1 core", one[0]),
    ]


def _run(cores: int, target: str = "core") -> tuple[float, float]:
    """Return the seconds of a tiny first run, and the rate of a larger one in the same session."""
    from ..pipeline.spark import run_spark  # noqa: PLC0415 — Spark is optional, and slow to import

    job = Job(target, KAFKA_4_4.name, _STEPS)
    began = time.perf_counter()
    with started(Place(cores=cores), needs.TRACES, light=True) as running:
        few, many = (LocalFolder(running.scratch / name) for name in ("few", "many"))
        run_spark(running, Plan(job, 0, _FEW, chunk=1), few)
        fixed = time.perf_counter() - began
        plan = Plan(job, 0, _MANY, chunk=20)
        return fixed, rate(lambda: run_spark(running, plan, many).traces)
