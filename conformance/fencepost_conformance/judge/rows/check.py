"""Make and check a few traces in this process. The same seeds give the same rows in any process and any order."""

from __future__ import annotations

import gc
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from fencepost.protocol.profiles import PROFILES
from fencepost_model.collector import uncollected

from ...generate.generator import Generated, generate
from ...targets.jvm.process import ProcessFault, in_a_line
from ...targets.kafka_jvm import KafkaJvm
from ...targets.registry import TargetName, parse_target
from ...traces.observation import Observation
from ..compare.difference import Difference
from ..compare.lockstep import Compared, compare
from ..compare.model import follow
from ..coverage.catalogue import bitmap
from ..coverage.features import features_of
from ..verdict import Verdict
from .group import group_of
from .job import Job, Row, TraceOutcome

#: number of traces in a row that cannot be run before the run ends: the cause is then not in the traces
IN_A_ROW = 10
NOT_COMPARED = "the core ran alone: neither the model nor another target was compared with it"


@dataclass(frozen=True, slots=True)
class Examined:
    """The result of one trace. ``steps`` agreed. ``difference`` is at the step after them; its ``left`` says why a
    trace was undecided or broken.

    ``ours`` are the core's observations, ``other`` the target's if it is not the core. ``rules``: those that decide at
    a step that the model rejected, if it names them.
    """

    outcome: TraceOutcome
    steps: int
    difference: Difference | None
    divergence: str
    ours: Sequence[Observation]
    other: Sequence[Observation] | None
    followed: int
    rules: tuple[str, ...] = ()


class Checker:
    """Checks traces for one job; holds the job's target (a JVM, if it is Kafka) until ``close``.

    ``target``: the resolved target, if this machine cannot resolve it. ``kafka``: an existing JVM of that target to
    use.
    """

    def __init__(self, job: Job, target: TargetName | None = None, kafka: KafkaJvm | None = None) -> None:
        self._job = job
        self.profile = PROFILES[job.profile]
        target = target or parse_target(job.target)
        self.kafka = kafka or (KafkaJvm(target.build) if target.kind == "kafka" else None)
        self._broken = 0  #: in a row

    def check(self, seeds: Sequence[int]) -> list[Row]:
        """Return one row for each seed, in order. Reference cycles of the traces are collected once, at the end.

        Raises ``ProcessFault`` if the target does not start, or runs none of many in a row."""
        with uncollected():
            rows = self._rows(seeds)
            gc.collect(0)
        for row in rows:
            self._broken = self._broken + 1 if row.verdict is Verdict.BROKEN else 0
            if self._broken == IN_A_ROW:
                raise ProcessFault(
                    f"{IN_A_ROW} traces in a row could not be run; the last, of seed {row.seed}: {row.left}"
                )
        return rows

    def _rows(self, seeds: Sequence[int]) -> list[Row]:
        traces = [generate(seed, self.profile, self._job.steps, self._job.protocol, offsets=None) for seed in seeds]
        return [as_row(trace, found) for trace, found in zip(traces, self.examine(traces), strict=True)]

    def examine(self, traces: Sequence[Generated]) -> list[Examined]:
        """Return the result of each trace, in order. Raises ``NoStart``."""
        if self.kafka is None:
            return [self._examine(trace, None) for trace in traces]
        others = self.kafka.run_each([(trace.settings, trace.events) for trace in traces])
        return [
            _not_run(other) if isinstance(other, ProcessFault) else self._examine(trace, other)
            for trace, other in zip(traces, others, strict=True)
        ]

    def close(self) -> None:
        if self.kafka is not None:
            self.kafka.close()

    def _examine(self, trace: Generated, other: Sequence[Observation] | None) -> Examined:
        ours: Sequence[Observation] = trace.observations
        found = Compared(len(ours), None, None, ours)
        if other is not None:
            other = other[: len(ours)]
            found = compare(trace.settings, trace.profile, trace.events, ours, other)
            ours = found.ours
        outcome, difference = TraceOutcome.AGREED, found.difference
        if difference is not None:
            outcome = TraceOutcome.DIVERGED if found.divergence else TraceOutcome.DIFFERED
        elif trace.failure is not None:
            outcome, difference = TraceOutcome.RAISED, Difference(len(ours), "core", trace.failure, "")
        elif other is not None and not found.followed and len(other) < len(ours):
            outcome, difference = TraceOutcome.DIFFERED, Difference(len(other), "trace", "continues", "ends")
        elif other is None and not self._job.model:
            outcome, difference = TraceOutcome.UNDECIDED, Difference(-1, "target", NOT_COMPARED, "")
        if self._job.model:
            followed = follow(trace.settings, trace.profile, trace.events, ours[: found.steps])
            if followed.refused is not None:
                outcome, difference = TraceOutcome.REFUSED, followed.refused
                return Examined(outcome, followed.steps, difference, "", ours, other, found.followed, followed.rules)
        return Examined(outcome, found.steps, difference, found.divergence or "", ours, other, found.followed)


def _not_run(fault: ProcessFault) -> Examined:
    return Examined(TraceOutcome.BROKEN, 0, Difference(-1, "target", in_a_line(fault), ""), "", (), None, 0)


def as_row(trace: Generated, found: Examined) -> Row:
    """Return the row of a trace."""
    agreed = found.ours[: found.steps]
    difference = found.difference
    return Row(
        seed=trace.seed,
        outcome=found.outcome.value,
        divergence=found.divergence,
        event=-1 if difference is None else difference.event,
        field="" if difference is None else difference.field,
        left="" if difference is None else difference.left,
        right="" if difference is None else difference.right,
        steps=found.steps,
        replies=sum(len(seen.replies) for seen in agreed),
        records=sum(len(seen.records) for seen in agreed),
        timers=sum(len(seen.timers) for seen in agreed),
        followed=found.followed,
        coverage=bitmap(features_of(trace.settings, trace.events, agreed)),
        digest=digest(agreed),
        group=_group(trace, found),
    )


def _group(trace: Generated, found: Examined) -> str:
    if not found.outcome.failed or found.difference is None:
        return ""
    return group_of(found.outcome, found.difference, trace.events, found.ours, found.other)


def digest(observations: Sequence[Observation]) -> str:
    """Return a digest of all replies and records, in order; the same on every machine."""
    total = hashlib.blake2b(digest_size=16)
    for seen in observations:
        if seen.replies or seen.records:
            total.update(repr((seen.replies, seen.records)).encode())
    return total.hexdigest()
