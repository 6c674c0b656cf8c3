"""Find the files of many traces, and check them on the engine of the plan."""

from __future__ import annotations

import glob
import os
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from ...common.errors import CannotRun
from ...common.interruption import interruptible
from ...common.nearest import unknown
from ...common.processes import worker_processes
from ...judge.checker.verdict import Verdict
from ...judge.tla.validate import Choices, check_by_tlc
from ...show.console import progress
from ...traces.profiles import JUDGED
from .plan import PATTERNS, Plan, check_one, profile_named

#: what can check traces: the cores of this machine, a Spark cluster, or TLC with the TLA+ specification
ENGINES = ("local", "spark", "tlc")
#: For fewer bytes of files than this, starting processes costs more time than it saves.
_WORTH_PROCESSES = 400_000
#: the most files of one run of TLC
_FILES_OF_TLC = 40


def find_traces(names: Sequence[str]) -> tuple[Path, ...]:
    """The files of each name: a file, a folder (with all folders in it), or a pattern. Raises CannotRun."""
    found: dict[Path, None] = {}
    for name in names:
        path = Path(name)
        if path.is_dir():
            inside = sorted(file for pattern in PATTERNS for file in path.rglob(pattern))
        elif path.exists():
            inside = [path]
        else:
            inside = sorted(map(Path, glob.glob(name, recursive=True)))
        if not inside:
            raise CannotRun(
                f"no trace at {name}: neither a file, nor a folder with *.jsonl or *.jsonl.gz, nor a pattern"
            )
        found.update(dict.fromkeys(inside))
    return tuple(found)


def _local(plan: Plan) -> Iterator[list[Verdict]]:
    work = partial(check_one, limits=plan.limits, profile=plan.profile, given=plan.given)
    size = sum(path.stat().st_size for path in plan.files if path.is_file())
    workers = min(plan.workers or os.cpu_count() or 1, len(plan.files))
    if workers == 1 or size < _WORTH_PROCESSES:
        yield from map(work, plan.files)
        return
    with worker_processes(workers) as pool:
        yield from pool.map(work, plan.files, chunksize=max(1, len(plan.files) // (workers * 8)))


def _by_tlc(plan: Plan) -> Iterator[list[Verdict]]:
    """As ``_local``, with a few files in each run of TLC, since starting one takes seconds."""
    workers = min(plan.workers or os.cpu_count() or 1, len(plan.files))
    size = max(1, min(_FILES_OF_TLC, -(-len(plan.files) // workers)))
    chunks = [plan.files[first : first + size] for first in range(0, len(plan.files), size)]
    work = partial(check_by_tlc, choices=Choices(profile_named(plan.profile), plan.given, plan.export))
    with ThreadPoolExecutor(workers) as pool:
        for found in pool.map(work, chunks):
            yield from found


def validate_traces(plan: Plan) -> tuple[list[Verdict], float, bool]:
    """The verdicts in the order of the files, the seconds that the check took, and whether it was interrupted. After an
    interruption, the verdicts are those of the first files only. Raises CannotRun."""
    if plan.profile and plan.profile not in JUDGED:
        raise CannotRun(unknown("profile", plan.profile, JUDGED, f"known: {', '.join(sorted(JUDGED))}"))
    if plan.engine not in ENGINES:
        raise CannotRun(unknown("engine", plan.engine, ENGINES, f"known: {', '.join(ENGINES)}"))
    if plan.export is not None and plan.engine != "tlc":
        raise CannotRun("--export needs --engine tlc: only TLC reads the modules that it keeps")
    if plan.urls and plan.engine != "spark":
        raise CannotRun(f"{plan.urls[0]}: only Spark reads URLs; add --engine spark")
    began = time.perf_counter()
    verdicts: list[Verdict] = []
    with progress("validating", len(plan.files) if not plan.urls else None) as meter, interruptible() as cut:
        if plan.engine == "spark":
            from .on_spark import on_spark  # noqa: PLC0415

            for batch in on_spark(plan, meter.advance):
                verdicts.extend(batch)
        else:
            for batch in _by_tlc(plan) if plan.engine == "tlc" else _local(plan):
                verdicts.extend(batch)
                meter.advance()
    return verdicts, time.perf_counter() - began, cut.happened
