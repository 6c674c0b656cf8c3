"""Answers given before a group is looked up: rights, the request's fields, and the state of the partition."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fencepost.protocol.consumer_messages import ConsumerGroupDescribeRequest, ConsumerGroupHeartbeatRequest
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import Request
from fencepost.protocol.messages import (
    DeletedGroup,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    DescribedGroup,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    ListGroupsRequest,
    ListGroupsResponse,
    ResponseBody,
    SyncGroupRequest,
    SyncGroupResponse,
)
from fencepost.protocol.settings import Settings

from ..consumer.gate import refused_describe, refused_heartbeat
from ..consumer.state import Image
from ..offsets.gate import OffsetRequest
from ..offsets.gate import refused as refused_offsets

if TYPE_CHECKING:
    from ..variant import Variant

#: The names of ``coordinator.NOT_OWNED`` and so on, repeated here to avoid an import cycle.
_ERRORS = {"not owned": ErrorCode.NOT_COORDINATOR, "loading": ErrorCode.COORDINATOR_LOAD_IN_PROGRESS}

Answer = tuple[tuple[int, ResponseBody], tuple[str, ...]]


def refused(settings: Settings, variant: Variant, phase: str, request: Request, image: Image) -> Answer | None:
    """Return the answer and its rules, or None if the request may proceed to a group.

    Requests about several groups are refused group by group in ``reads`` and ``requests``. They are refused here only
    if the whole coordinator cannot serve them. ``image``: the topics that the broker knows.
    """
    if isinstance(request.body, OffsetRequest):
        about_offsets = refused_offsets(image, _ERRORS.get(phase), request)
        return None if about_offsets is None else ((request.id, about_offsets[0]), about_offsets[1])
    found = _refused(settings, variant, phase, request)
    return None if found is None else ((request.id, found[0]), found[1])


def _refused(
    settings: Settings, variant: Variant, phase: str, request: Request
) -> tuple[ResponseBody, tuple[str, ...]] | None:
    body = request.body
    error = _ERRORS.get(phase)
    if isinstance(body, ConsumerGroupHeartbeatRequest):
        return refused_heartbeat(settings, variant, error, request, body)
    if isinstance(body, ConsumerGroupDescribeRequest):
        return refused_describe(settings, error, request, body)
    if isinstance(body, JoinGroupRequest):
        return _join(settings, error, request, body)
    if isinstance(body, SyncGroupRequest):
        return _sync(error, request, body)
    if isinstance(body, HeartbeatRequest):
        if body.group_id in request.denied:
            return HeartbeatResponse(ErrorCode.GROUP_AUTHORIZATION_FAILED), ("C-HB-01",)
        if not body.group_id:
            return HeartbeatResponse(ErrorCode.INVALID_GROUP_ID), ("C-HB-02",)
        if error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            return HeartbeatResponse(ErrorCode.NONE), ("C-HB-03",)
        return None if error is None else (HeartbeatResponse(error), ("C-HB-04",))
    if isinstance(body, LeaveGroupRequest):
        if body.group_id in request.denied:
            return LeaveGroupResponse(ErrorCode.GROUP_AUTHORIZATION_FAILED), ("C-LEAVE-01",)
        if not body.group_id:
            return LeaveGroupResponse(ErrorCode.INVALID_GROUP_ID), ("C-LEAVE-02",)
        return None if error is None else (LeaveGroupResponse(error), ("C-LEAVE-02",))
    return _several(error, request)


def _join(
    settings: Settings, error: ErrorCode | None, request: Request, body: JoinGroupRequest
) -> tuple[ResponseBody, tuple[str, ...]] | None:
    if body.group_id in request.denied:
        return JoinGroupResponse(ErrorCode.GROUP_AUTHORIZATION_FAILED), ("C-JOIN-02",)
    if not body.group_id:
        return JoinGroupResponse(ErrorCode.INVALID_GROUP_ID, member_id=body.member_id), ("C-JOIN-04",)
    shortest, longest = settings.group_min_session_timeout_ms, settings.group_max_session_timeout_ms
    if not shortest <= body.session_timeout_ms <= longest:
        return JoinGroupResponse(ErrorCode.INVALID_SESSION_TIMEOUT, member_id=body.member_id), ("C-JOIN-05",)
    if error is not None:
        return JoinGroupResponse(error), ("C-JOIN-06", "C-JOIN-07")
    return None


def _sync(
    error: ErrorCode | None, request: Request, body: SyncGroupRequest
) -> tuple[ResponseBody, tuple[str, ...]] | None:
    if request.version >= 5 and (body.protocol_type is None or body.protocol_name is None):
        return SyncGroupResponse(ErrorCode.INCONSISTENT_GROUP_PROTOCOL), ("C-SYNC-01",)
    if body.group_id in request.denied:
        return SyncGroupResponse(ErrorCode.GROUP_AUTHORIZATION_FAILED), ("C-SYNC-02",)
    if not body.group_id:
        return SyncGroupResponse(ErrorCode.INVALID_GROUP_ID), ("C-SYNC-03",)
    return None if error is None else (SyncGroupResponse(error), ("C-SYNC-04",))


def _several(error: ErrorCode | None, request: Request) -> tuple[ResponseBody, tuple[str, ...]] | None:
    """Refuse requests about several groups while the partition is not active (C-ADM-02, 05, 09)."""
    body = request.body
    if error is None:
        return None
    if isinstance(body, ListGroupsRequest):
        # A lost partition is skipped (C-ADM-05).
        loading = error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        return ListGroupsResponse(error if loading else ErrorCode.NONE), ("C-ADM-05",)
    if isinstance(body, DescribeGroupsRequest):
        return (
            DescribeGroupsResponse(
                tuple(DescribedGroup(_denied(request, g, error), group_id=g, group_state="") for g in body.groups)
            ),
            ("C-ADM-02",),
        )
    if isinstance(body, DeleteGroupsRequest):
        names = dict.fromkeys(body.groups_names)
        return DeleteGroupsResponse(tuple(DeletedGroup(g, _denied(request, g, error)) for g in names)), ("C-ADM-09",)
    return None


def _denied(request: Request, group_id: str, error: ErrorCode) -> ErrorCode:
    return ErrorCode.GROUP_AUTHORIZATION_FAILED if group_id in request.denied else error
