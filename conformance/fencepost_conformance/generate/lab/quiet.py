"""Routine: messages and steps that change nothing worth a look, such as a heartbeat that is answered "no change"."""

from __future__ import annotations

from fencepost.protocol.consumer_messages import ConsumerGroupHeartbeatResponse
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import Appended, Event
from fencepost.protocol.messages import HeartbeatResponse, RequestBody, ResponseBody
from fencepost.protocol.offset_messages import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
)

from ...traces.answers import errors_of
from ...traces.observation import Observation


def is_quiet(event: Event, seen: Observation) -> bool:
    """Whether the step is routine: the log replicates; or a request changes no group, and its answer is routine."""
    if seen.groups or seen.consumer_groups:
        return False
    if isinstance(event, Appended):
        return True
    body = getattr(event, "body", None)
    if isinstance(body, OffsetCommitRequest | OffsetFetchRequest):
        return all(is_routine(reply.body) for reply in seen.replies)
    return bool(seen.replies) and not seen.records and all(is_routine(reply.body) for reply in seen.replies)


def is_routine(body: RequestBody | ResponseBody) -> bool:
    """Whether an answer is routine: a heartbeat or an offset request without error and without news."""
    if isinstance(body, ConsumerGroupHeartbeatResponse):
        return body.error_code is ErrorCode.NONE and body.assignment is None
    if isinstance(body, HeartbeatResponse | OffsetCommitResponse | OffsetFetchResponse):
        return set(errors_of(body)) <= {ErrorCode.NONE}
    return False
