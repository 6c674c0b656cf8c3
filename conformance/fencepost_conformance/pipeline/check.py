"""Make and check a few traces in this process. The same seeds give the same rows in any process and any company."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from fencepost.protocol.settings import PROFILES

from ..compare.difference import Difference
from ..compare.lockstep import Compared, compare
from ..compare.model import follow
from ..coverage.catalogue import bitmap
from ..coverage.features import features_of
from ..generate.generator import Generated, generate
from ..targets.base import Observation
from ..targets.kafka_jvm import KafkaJvm
from ..targets.registry import parse_target
from .job import Job, Row, Verdict


class Checker:
    """Checks seeds for one job; holds the job's target (a JVM, if it is Kafka) until ``close``."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._profile = PROFILES[job.profile]
        target = parse_target(job.target)
        self._kafka = KafkaJvm(target.release) if target.kind == "kafka" else None

    def check(self, seeds: Sequence[int]) -> list[Row]:
        """One row for each seed, in order."""
        traces = [generate(seed, self._profile, self._job.steps) for seed in seeds]
        if self._kafka is None:
            return [self._row(trace, None) for trace in traces]
        others = self._kafka.run_many([(trace.settings, trace.events) for trace in traces])
        return [self._row(trace, other) for trace, other in zip(traces, others, strict=True)]

    def close(self) -> None:
        if self._kafka is not None:
            self._kafka.close()

    def _row(self, trace: Generated, other: Sequence[Observation] | None) -> Row:
        ours = trace.observations
        found = Compared(len(ours), None, None, ours)
        if other is not None:
            found = compare(trace.settings, trace.profile, trace.events, ours, other[: len(ours)])
            ours = tuple(found.ours)
        verdict, difference = Verdict.AGREED, found.difference
        if difference is not None:
            verdict = Verdict.DIVERGED if found.divergence else Verdict.DIFFERED
        elif trace.failure is not None:
            verdict, difference = Verdict.RAISED, Difference(len(ours), "core", trace.failure, "")
        steps = found.steps
        if self._job.model:
            followed = follow(trace.settings, trace.profile, trace.events, ours[:steps])
            if followed.refused is not None:
                verdict, difference, steps = Verdict.REFUSED, followed.refused, followed.steps
        agreed = ours[:steps]
        return Row(
            seed=trace.seed,
            verdict=verdict.value,
            divergence=(found.divergence or "") if verdict is Verdict.DIVERGED else "",
            event=-1 if difference is None else difference.event,
            field="" if difference is None else difference.field,
            left="" if difference is None else difference.left,
            right="" if difference is None else difference.right,
            steps=steps,
            replies=sum(len(seen.replies) for seen in agreed),
            records=sum(len(seen.records) for seen in agreed),
            timers=sum(len(seen.timers) for seen in agreed),
            followed=found.followed,
            coverage=bitmap(features_of(trace.settings, trace.events, agreed)),
            digest=digest(agreed),
        )


def digest(observations: Sequence[Observation]) -> str:
    """Stands for all replies and records, in order; the same on every machine."""
    total = hashlib.blake2b(digest_size=16)
    for seen in observations:
        if seen.replies or seen.records:
            total.update(repr((seen.replies, seen.records)).encode())
    return total.hexdigest()
