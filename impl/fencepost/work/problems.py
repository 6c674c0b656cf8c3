"""Exceptions of a worker."""

from __future__ import annotations

from typing import Final

from fencepost.member.events import Failure
from fencepost.protocol.errors import ErrorCode

#: What to do about a final error, by the coordinator's error code.
_HINTS: Final[dict[ErrorCode | None, str]] = {
    ErrorCode.UNSUPPORTED_VERSION: "the coordinator supports no consumer groups, or no expressions; try "
    'protocol="classic"',
    ErrorCode.UNSUPPORTED_ASSIGNOR: "the coordinator has no assignor with the name in assignor=; leave the option out, "
    'or write "uniform" or "range"',
    ErrorCode.UNRELEASED_INSTANCE_ID: "another member still uses the instance id in instance_id=; give each worker its "
    "own, or stop the other one",
    ErrorCode.FENCED_INSTANCE_ID: "another worker has started with the same instance_id=; give each worker its own",
    ErrorCode.INVALID_SESSION_TIMEOUT: "the coordinator does not allow session_timeout_ms=; its bounds are "
    "group.min.session.timeout.ms and group.max.session.timeout.ms",
    ErrorCode.INCONSISTENT_GROUP_PROTOCOL: "the group has members with another protocol or another assignor; configure "
    "the same for all of them, or use another group",
    ErrorCode.GROUP_MAX_SIZE_REACHED: "the group already has as many members as the coordinator allows "
    "(group.max.size, group.consumer.max.size)",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "the login may not read this group; grant READ on the group",
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "the login may not see a topic; grant DESCRIBE and READ on it",
    ErrorCode.INVALID_REGULAR_EXPRESSION: "the expression in topics= is not valid for the coordinator; it must be RE2",
    ErrorCode.GROUP_ID_NOT_FOUND: "the coordinator has lost the group; start the worker again",
}


class ShareLost(Exception):
    """The worker no longer owns the share. Another worker may own it already, and repeats all work without a commit.
    Drop the work and continue with the next share."""


class CommitFailed(Exception):
    """The coordinator rejects a commit finally, for a reason other than the share; ``error`` is the code."""

    def __init__(self, error: ErrorCode) -> None:
        super().__init__(f"the coordinator rejects the commit: {error.name}")
        self.error = error


class WorkerFailed(Exception):
    """The worker has failed: the coordinator rejects it finally, or a callback raised. ``failure``: what a Kafka
    consumer would have thrown."""

    def __init__(self, failure: Failure) -> None:
        said = failure.text or (failure.error.name if failure.error is not None else failure.kind.value)
        hint = _HINTS.get(failure.error)
        super().__init__(f"the worker has failed: {said}{f'; {hint}' if hint else ''}")
        self.failure = failure
