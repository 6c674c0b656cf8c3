"""What a worker raises."""

from __future__ import annotations

from typing import Final

from fencepost.member.events import Failure
from fencepost.protocol.errors import ErrorCode

#: What to do about an error that is final, by what the coordinator says.
_HINTS: Final[dict[ErrorCode | None, str]] = {
    ErrorCode.UNSUPPORTED_VERSION: 'the coordinator has no such groups, or no expressions: try protocol="classic"',
    ErrorCode.UNSUPPORTED_ASSIGNOR: "the coordinator has no assignor of the name in assignor=; leave the option out, "
    'or write "uniform" or "range"',
    ErrorCode.UNRELEASED_INSTANCE_ID: "another member still has the instance id in instance_id=; give each worker its "
    "own, or stop the other one",
    ErrorCode.FENCED_INSTANCE_ID: "another worker has started with the same instance_id=; give each worker its own",
    ErrorCode.INVALID_SESSION_TIMEOUT: "the coordinator does not allow session_timeout_ms=; its bounds are "
    "group.min.session.timeout.ms and group.max.session.timeout.ms",
    ErrorCode.INCONSISTENT_GROUP_PROTOCOL: "the group has members with another protocol or another assignor; give all "
    "of them the same, or use another group",
    ErrorCode.GROUP_MAX_SIZE_REACHED: "the group has as many members as the coordinator allows "
    "(group.max.size, group.consumer.max.size)",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "the login may not read this group; grant READ on the group",
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "the login may not see a topic; grant DESCRIBE and READ on it",
    ErrorCode.INVALID_REGULAR_EXPRESSION: "the coordinator cannot read the expression in topics=, which must be RE2",
    ErrorCode.GROUP_ID_NOT_FOUND: "the coordinator has lost the group; start the worker again",
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
        hint = _HINTS.get(failure.error)
        super().__init__(f"the worker cannot go on: {said}{f'; {hint}' if hint else ''}")
        self.failure = failure
