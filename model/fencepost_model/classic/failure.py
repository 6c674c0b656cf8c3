"""The answer of a write operation that failed in the log (F-RT-10)."""

from __future__ import annotations

from fencepost.protocol.consumer_messages import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages import (
    DeletedGroup,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    ResponseBody,
    SyncGroupRequest,
    SyncGroupResponse,
)

from ..offsets.rows import failed
from .errors import of_metadata_append, of_operation
from .state import Created, Deleting, Operation


def failure(operation: Operation, error: ErrorCode) -> ResponseBody:
    """Return the answer of an operation that failed with a log error (F-RT-10)."""
    mapped = of_metadata_append(error) if isinstance(operation.callback, Created) else of_operation(error)
    body = operation.request
    about_offsets = None if body is None else failed(body, operation.callback, error, mapped)
    if about_offsets is not None:
        return about_offsets
    if isinstance(body, JoinGroupRequest):
        return JoinGroupResponse(error_code=mapped)
    if isinstance(body, SyncGroupRequest):
        return SyncGroupResponse(error_code=mapped)
    if isinstance(body, ConsumerGroupHeartbeatRequest):
        return ConsumerGroupHeartbeatResponse(mapped)
    if isinstance(body, HeartbeatRequest):
        # A heartbeat during loading is answered NONE (C-HB-03).
        loading = mapped is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        return HeartbeatResponse(ErrorCode.NONE if loading else mapped)
    if isinstance(body, LeaveGroupRequest):
        return LeaveGroupResponse(mapped)
    if isinstance(body, DeleteGroupsRequest):
        denied = _denied(operation)
        return DeleteGroupsResponse(
            tuple(
                DeletedGroup(group_id, ErrorCode.GROUP_AUTHORIZATION_FAILED if group_id in denied else mapped)
                for group_id in dict.fromkeys(body.groups_names)
            )
        )
    raise TypeError(f"not a write operation: {type(body).__name__}")


def _denied(operation: Operation) -> set[str] | frozenset[str]:
    """Return the groups of a deletion that the request layer refused (C-ADM-09)."""
    if isinstance(operation.callback, Deleting):
        return operation.callback.request.denied
    rows = operation.body.results if isinstance(operation.body, DeleteGroupsResponse) else ()
    return {row.group_id for row in rows if row.error_code is ErrorCode.GROUP_AUTHORIZATION_FAILED}
