"""Runs traces on both sides, in this process or in a few of its children."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from types import TracebackType
from typing import Self

from fencepost.protocol.profile import Profile
from fencepost.protocol.profiles import PROFILES
from fencepost.protocol.settings import Settings

from ...common.processes import worker_processes
from ...generate.generator import Generated, generate
from ...generate.plan import GroupProtocol
from ...generate.world import World
from ...targets.jvm.process import NoStart, ProcessFault, in_a_line
from ...targets.kafka_jvm import KafkaJvm
from ..rows.check import IN_A_ROW
from .job import Found, Job, Row
from .job import Side as SideName
from .pair import Pair
from .side import CoreLive, Live

CHUNK = 20


class Runner:
    """Runs traces of one job; holds its JVMs until ``close``."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.profile = PROFILES[job.one.profile]
        self._jvms: dict[str, KafkaJvm] = {}
        self._broken = 0  #: number of traces in a row that could not be run
        #: two sides with the same name have a JVM each, which holds one trace at a time
        for place, side in (("one", job.one), ("other", job.other)):
            if side.target.kind == "kafka":
                self._jvms[place] = KafkaJvm(side.target.build)

    def pair(self, settings: Settings) -> Pair:
        """Return both sides at the beginning of a trace; ends the previous pair."""
        return Pair(self._live("one", self.job.one, settings), self._live("other", self.job.other, settings))

    def _live(self, place: str, side: SideName, settings: Settings) -> Live:
        if place in self._jvms:
            return self._jvms[place].live(settings)
        return CoreLive(settings, PROFILES[side.profile])

    def make(self, seed: int) -> tuple[Generated, Pair]:
        """Return the trace of a seed, made for the first side, and the pair after it."""
        job = self.job
        return side_by_side(seed, self.profile, job.steps, job.protocol, self.pair)

    def row(self, seed: int) -> Row:
        """Return a seed's row. Raises ``ProcessFault`` if a JVM does not start, or many traces in a row cannot be
        run."""
        try:
            _, pair = self.make(seed)
        except NoStart:
            raise
        except ProcessFault as fault:
            self.close()  # they start again for the next trace
            self._broken += 1
            if self._broken == IN_A_ROW:
                raise ProcessFault(
                    f"{IN_A_ROW} traces in a row could not be run; the last, of seed {seed}: {in_a_line(fault)}"
                ) from None
            return Row(seed, self.job.protocol, 0, (), {}, in_a_line(fault))
        self._broken = 0
        return row_of(self.job, seed, pair)

    def close(self) -> None:
        for jvm in self._jvms.values():
            jvm.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, at: TracebackType | None) -> None:
        self.close()


def side_by_side(
    seed: int, profile: Profile, steps: int, protocol: GroupProtocol, pair: Callable[[Settings], Pair]
) -> tuple[Generated, Pair]:
    """Return the trace of a seed, made for the first side of a ``pair``, and the pair after it."""
    made: list[Pair] = []

    def session(settings: Settings, _: Profile) -> Pair:
        made.append(pair(settings))
        return made[0]

    def between(world: World) -> None:
        made[0].bring_together(world)

    trace = generate(seed, profile, steps, protocol, session=session, between=between, offsets=None, fails_within=False)
    if trace.failure is not None:
        for fault in (NoStart, ProcessFault):
            if trace.failure.startswith(fault.__name__):
                raise fault(trace.failure)
        made[0].note_failure(trace.events[-1], trace.failure)
    return trace, made[0]


def row_of(job: Job, seed: int, pair: Pair) -> Row:
    found: dict[str, Found] = {}
    for cause in pair.causes:
        before = found.get(cause.key)
        if before is None:
            leaf = cause.leaf
            found[cause.key] = Found(cause.key, cause.event, leaf.left, leaf.right, cause.others, 1)
        else:
            found[cause.key] = Found(
                before.key, before.event, before.left, before.right, before.others, before.times + 1
            )
    return Row(seed, job.protocol, pair.steps, tuple(found.values()), dict(pair.following))


def run(job: Job, seeds: range, workers: int) -> Iterator[list[Row]]:
    """Yield the rows of a few traces at a time, in order of seeds."""
    chunks = [seeds[start : start + CHUNK] for start in range(0, len(seeds), CHUNK)]
    if workers < 2 or len(chunks) < 2:
        with Runner(job) as runner:
            for chunk in chunks:
                yield [runner.row(seed) for seed in chunk]
        return
    with worker_processes(min(workers, len(chunks))) as pool:
        yield from pool.map(partial(_rows, job), chunks)


_runners: dict[Job, Runner] = {}


def _rows(job: Job, chunk: range) -> list[Row]:
    """Run seeds in a worker, which keeps its runner (and with it its JVMs)."""
    if job not in _runners:
        _runners[job] = Runner(job)
    return [_runners[job].row(seed) for seed in chunk]
