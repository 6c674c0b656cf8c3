"""The checkers that a worker keeps between chunks and jobs; one JVM serves all checkers of the same target."""

from __future__ import annotations

from ...judge.rows.check import Checker
from ...judge.rows.job import Job
from ...targets.registry import TargetName

_checkers: dict[Job, Checker] = {}


def kept_checker(job: Job, target: TargetName | None = None) -> Checker:
    """Return this process's checker of the job; it lives until ``close_kept`` or the end of the process. ``target``: as
    for ``Checker``."""
    if job not in _checkers:
        # a JVM needs seconds to warm up
        kafka = next((other.kafka for known, other in _checkers.items() if known.target == job.target), None)
        _checkers[job] = Checker(job, target, kafka)
    return _checkers[job]


def close_kept() -> None:
    """Close all kept checkers."""
    for checker in _checkers.values():
        checker.close()
    _checkers.clear()
