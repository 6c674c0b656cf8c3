"""Run many schedules, in this process or in a few children, and group the differences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from fencepost.protocol.profiles import PROFILES

from ...common.processes import worker_processes
from ...targets.jvm.builds import Build
from ...targets.jvm.process import NoStart, ProcessFault, in_a_line
from ..rows.check import IN_A_ROW
from ..verdict import Tally
from .judge import Difference, Judge, Judged
from .kinds import Half, MemberProtocol

CHUNK = 20
#: number of differences kept for each group
KEPT = 3


@dataclass(frozen=True, slots=True)
class Job:
    """What to compare. ``length``: approximate number of events of a schedule."""

    build: Build
    profile: str
    protocol: MemberProtocol
    length: int
    half: Half = Half.MEMBER

    def judge(self) -> Judge:
        """Start a JVM that can run schedules of this job."""
        return Judge(self.build, PROFILES[self.profile], self.protocol, self.length, self.half)


@dataclass(slots=True)
class Group:
    """Schedules whose first difference is alike; the first few are kept."""

    schedules: int = 0
    first: list[Difference] = field(default_factory=list)


@dataclass(slots=True)
class Found:
    """The results of the schedules so far. ``steps``: events after which both were equal."""

    schedules: int = 0
    steps: int = 0
    groups: dict[str, Group] = field(default_factory=dict)
    broken: list[Judged] = field(default_factory=list)  #: schedules that could not be run

    @property
    def differing(self) -> int:
        return sum(group.schedules for group in self.groups.values())

    def add(self, judged: Judged) -> None:
        self.schedules += 1
        self.steps += judged.steps
        if judged.broken:
            self.broken.append(judged)
        if judged.difference is not None:
            group = self.groups.setdefault(judged.difference.group, Group())
            group.schedules += 1
            if len(group.first) < KEPT:
                group.first.append(judged.difference)

    def tally(self, accepted: Container[str] = ()) -> Tally:
        """Return the verdicts; a schedule of an ``accepted`` group has passed."""
        failed = sum(group.schedules for name, group in self.groups.items() if name not in accepted)
        broken = len(self.broken)
        return Tally(passed=self.schedules - failed - broken, failed=failed, broken=broken)

    def ordered(self) -> list[tuple[str, Group]]:
        """Return the groups, the most frequent first."""
        return sorted(self.groups.items(), key=lambda item: (-item[1].schedules, item[0]))

    def as_json(self) -> dict[str, Any]:
        """Return the groups with the kept schedules of each."""
        return {
            "groups": [
                {
                    "group": name,
                    "schedules": group.schedules,
                    "first": [
                        {
                            "seed": each.seed,
                            "event": each.event,
                            "given": each.given,
                            "fields": {key: {"core": ours, "kafka": its} for key, (ours, its) in each.fields.items()},
                        }
                        for each in group.first
                    ],
                }
                for name, group in self.ordered()
            ]
        }


def run(job: Job, seeds: range, workers: int) -> Iterator[list[Judged]]:
    """Yield the verdicts on a few schedules at a time, in order of seeds. Raises ``ProcessFault`` when no JVM starts,
    or when many schedules in a row cannot be run."""
    chunks = [seeds[start : start + CHUNK] for start in range(0, len(seeds), CHUNK)]
    if workers < 2 or len(chunks) < 2:
        try:
            for chunk in chunks:
                yield _judged(job, chunk)
        finally:
            forget(job)
        return
    with worker_processes(min(workers, len(chunks))) as pool:
        yield from pool.map(partial(_judged, job), chunks)


_judges: dict[Job, Judge] = {}
_broken: Counter[Job] = Counter()  #: schedules in a row that could not be run


def _judged(job: Job, chunk: range) -> list[Judged]:
    """Judge seeds in a worker, which keeps its JVM."""
    return [_attempt(job, seed) for seed in chunk]


def _attempt(job: Job, seed: int) -> Judged:
    try:
        judged = judge_of(job).judge(seed)
    except NoStart:
        raise
    except ProcessFault as fault:
        forget(job)  # the next schedule starts a new JVM
        _broken[job] += 1
        if _broken[job] == IN_A_ROW:
            raise ProcessFault(
                f"{IN_A_ROW} schedules in a row could not be run; the last, of seed {seed}: {in_a_line(fault)}"
            ) from None
        return Judged(seed, 0, None, in_a_line(fault))
    _broken[job] = 0
    return judged


def judge_of(job: Job) -> Judge:
    """Return this process's JVM for that job, started at first use. Raises ``NoStart`` if it cannot start."""
    if job not in _judges:
        try:
            _judges[job] = job.judge()
        except ProcessFault as fault:
            raise NoStart(str(fault)) from None
    return _judges[job]


def forget(job: Job) -> None:
    """End the JVM for that job; the next use starts another."""
    if job in _judges:
        _judges.pop(job).close()
