"""What a worker raises."""

from __future__ import annotations

from typing import Final

from fencepost.member.events import Failure
from fencepost.protocol.errors import ErrorCode

_HINTS: Final[dict[ErrorCode | None, str]] = {
    ErrorCode.UNSUPPORTED_VERSION: '; the coordinator has no such groups, or no expressions: try protocol="classic"'
}


class ShareLost(Exception):
    """The share is not the worker's any more: another one may have it already, so what was done without a commit is
    done again. Drop the work and go on with the next share."""


class CommitFailed(Exception):
    """The coordinator refuses a commit for good, for a reason that is not about the share; ``error`` is its code."""

    def __init__(self, error: ErrorCode) -> None:
        super().__init__(f"the coordinator refuses the commit: {error.name}")
        self.error = error


class WorkerFailed(Exception):
    """The worker cannot go on: the coordinator refuses it for good, or a callback has raised. ``failure`` says what a
    Kafka consumer would have thrown."""

    def __init__(self, failure: Failure) -> None:
        said = failure.text or (failure.error.name if failure.error is not None else failure.kind.value)
        super().__init__(f"the worker cannot go on: {said}{_HINTS.get(failure.error, '')}")
        self.failure = failure
