"""The shortest trace of every group, with an explanation of its difference; a process handles one group at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fencepost.protocol.events import Event
from fencepost.protocol.settings import Settings

from ...common.processes import worker_processes
from ...targets.jvm.process import NoStart, ProcessFault
from ...traces.observation import Observation
from .explain import Explanation, explain
from .groups import Group
from .job import Found, Job
from .run import Runner
from .shrinking import Shortened


@dataclass(frozen=True, slots=True)
class Shortest:
    """``mine`` and ``theirs``: both sides' events and observations up to the difference; ``left`` and ``right``: the
    values there."""

    key: str
    seed: int
    job: Job
    settings: Settings
    mine: tuple[tuple[Event, Observation], ...]
    theirs: tuple[tuple[Event, Observation], ...]
    left: str
    right: str
    explanation: Explanation


@dataclass(frozen=True, slots=True)
class _Task:
    job: Job
    seed: int
    found: Found


def shortest(jobs: Sequence[Job], groups: Sequence[Group], workers: int) -> Iterator[Shortest]:
    """Yield one for each group, in order. Groups are left out if their difference does not occur when the trace runs
    again, or if a side cannot run some part of it."""
    of_protocol = {job.protocol: job for job in jobs}
    tasks = [
        _Task(of_protocol[group.example[0]], group.example[1], group.example[2])
        for group in groups
        if group.example is not None
    ]
    if workers < 2 or len(tasks) < 2:
        try:
            yield from (each for task in tasks if (each := _shorten(task)) is not None)
        finally:
            _close()
        return
    with worker_processes(min(workers, len(tasks))) as pool:
        yield from (each for each in pool.map(_shorten, tasks) if each is not None)


_runner: Runner | None = None


def _shorten(task: _Task) -> Shortest | None:
    global _runner  # noqa: PLW0603 — one a worker process, for as long as its protocol is the one that is asked for
    if _runner is None or _runner.job != task.job:
        _close()
        _runner = Runner(task.job)
    try:
        shortened = Shortened(_runner, task.found.key).of(task.seed, task.found)
    except NoStart:
        raise
    except ProcessFault:  # some part of the trace cannot be run: the group is reported without it
        _close()
        return None
    if shortened is None:
        return None
    trace, pair, cause = shortened
    steps = zip(pair.events, (mine for mine, _ in pair.seen), strict=False)
    return Shortest(
        cause.key,
        task.seed,
        task.job,
        trace.settings,
        tuple(steps)[: cause.event + 1],
        tuple(pair.theirs[: cause.own + 1]),
        cause.leaf.left,
        cause.leaf.right,
        explain(task.job, trace, pair, cause),
    )


def _close() -> None:
    global _runner  # noqa: PLW0603
    if _runner is not None:
        _runner.close()
    _runner = None
