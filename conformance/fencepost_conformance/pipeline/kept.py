"""The checkers that a worker keeps from chunk to chunk and from job to job; one JVM serves all that ask the same."""

from __future__ import annotations

from ..targets.registry import TargetName
from .check import Checker
from .job import Job

_checkers: dict[Job, Checker] = {}


def kept_checker(job: Job, target: TargetName | None = None) -> Checker:
    """This process's checker of the job, until ``close_kept`` or the end of the process. ``target``: as of
    ``Checker``."""
    if job not in _checkers:
        # a JVM takes seconds until it is warm
        kafka = next((other.kafka for known, other in _checkers.items() if known.target == job.target), None)
        _checkers[job] = Checker(job, target, kafka)
    return _checkers[job]


def close_kept() -> None:
    """Ends what is kept."""
    for checker in _checkers.values():
        checker.close()
    _checkers.clear()
