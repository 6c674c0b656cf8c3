"""Many traces: which files, on which engine."""

from __future__ import annotations

import glob
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from fencepost.protocol.settings import PROFILES, Profile

from ..cluster.place import Place
from ..console import CannotRun, progress
from ..interruption import interruptible
from ..nearest import unknown
from ..processes import worker_processes
from ..trace.lines import Setting
from .check import check_file
from .search import Limits
from .verdict import Verdict

#: What a folder is searched for.
PATTERNS = ("*.jsonl", "*.jsonl.gz")
#: Below this many bytes of files, starting processes costs more than it saves.
_WORTH_PROCESSES = 400_000


@dataclass(frozen=True, slots=True)
class Plan:
    """``profile`` "" takes the one that each trace names; ``workers`` 0 takes one process a core; ``urls``: traces that
    Spark reads, ``place``: where it is; ``given``: settings (by field) over those of the headers."""

    files: tuple[Path, ...]
    engine: str = "local"
    profile: str = ""
    limits: Limits = field(default_factory=Limits)
    workers: int = 0
    urls: tuple[str, ...] = ()
    place: Place = field(default_factory=Place)
    given: Mapping[str, Setting] = field(default_factory=dict)


def find_traces(names: Sequence[str]) -> tuple[Path, ...]:
    """The files that the names mean: a file, a folder (searched to the bottom), or a pattern. Raises CannotRun."""
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


def check_one(path: Path, limits: Limits, profile: str, given: Mapping[str, Setting]) -> list[Verdict]:
    return list(check_file(path, limits, profile_named(profile), given))


def profile_named(name: str) -> Profile | None:
    """The profile of that name; None, that each trace names its own, for ""."""
    return PROFILES[name] if name else None


def _local(plan: Plan) -> Iterator[list[Verdict]]:
    work = partial(check_one, limits=plan.limits, profile=plan.profile, given=plan.given)
    size = sum(path.stat().st_size for path in plan.files if path.is_file())
    workers = min(plan.workers or os.cpu_count() or 1, len(plan.files))
    if workers == 1 or size < _WORTH_PROCESSES:
        yield from map(work, plan.files)
        return
    with worker_processes(workers) as pool:
        yield from pool.map(work, plan.files, chunksize=max(1, len(plan.files) // (workers * 8)))


def validate_traces(plan: Plan) -> tuple[list[Verdict], float, bool]:
    """The verdicts in the order of the files, the seconds it took, and whether it was interrupted, so that the verdicts
    are those of the first files only. Raises CannotRun."""
    if plan.profile and plan.profile not in PROFILES:
        raise CannotRun(unknown("profile", plan.profile, PROFILES, f"known: {', '.join(sorted(PROFILES))}"))
    if plan.engine not in ("local", "spark"):
        raise CannotRun(unknown("engine", plan.engine, ("local", "spark"), "known: local, spark"))
    if plan.urls and plan.engine != "spark":
        raise CannotRun(f"{plan.urls[0]} is for Spark to read: --engine spark")
    began = time.perf_counter()
    verdicts: list[Verdict] = []
    with progress("validating", len(plan.files) if not plan.urls else None) as meter, interruptible() as cut:
        if plan.engine == "spark":
            from .on_spark import on_spark  # noqa: PLC0415

            for batch in on_spark(plan, meter.advance):
                verdicts.extend(batch)
        else:
            for batch in _local(plan):
                verdicts.extend(batch)
                meter.advance()
    return verdicts, time.perf_counter() - began, cut.happened
