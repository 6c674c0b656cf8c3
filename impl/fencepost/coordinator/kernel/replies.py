"""The answer that refuses a request, for every API."""

from __future__ import annotations

from collections.abc import Mapping

from fencepost.protocol.consumer_messages import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    DescribedConsumerGroup,
)
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
    LeaveGroupMemberResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    ListGroupsRequest,
    ListGroupsResponse,
    ResponseBody,
    SyncGroupRequest,
    SyncGroupResponse,
)

from .offset_replies import offset_refusal

#: What a ConsumerGroupHeartbeat was refused for by the group itself; other errors say it all.
_WHY = {
    ErrorCode.INVALID_REQUEST: "A field of the request is missing or blank, or does not go with its epoch.",
    ErrorCode.UNSUPPORTED_ASSIGNOR: "The assignor is not among those of this coordinator.",
    ErrorCode.GROUP_ID_NOT_FOUND: "There is no consumer group of this name.",
    ErrorCode.GROUP_MAX_SIZE_REACHED: "The group has as many members as it may have.",
    ErrorCode.UNKNOWN_MEMBER_ID: "The group has no such member.",
    ErrorCode.FENCED_MEMBER_EPOCH: "The member is at another epoch.",
    ErrorCode.UNRELEASED_INSTANCE_ID: "The instance id is another member's, which has not left.",
    ErrorCode.FENCED_INSTANCE_ID: "The instance id is another member's.",
}
_HEARTBEAT_NONE = HeartbeatResponse(ErrorCode.NONE)


def refusal(request: Request, error: ErrorCode, member_id: str = "", why: str | None = None) -> ResponseBody:
    """Every API's way to say ``error``; ``member_id`` is for JoinGroup only (the last column of 3.1), and ``why`` for
    heartbeats of consumer groups, which have words of their own for each error."""
    match request.body:
        case JoinGroupRequest():
            return JoinGroupResponse(error, member_id=member_id)
        case SyncGroupRequest():
            return SyncGroupResponse(error)
        case HeartbeatRequest():
            if error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
                return _HEARTBEAT_NONE  # C-HB-03
            return HeartbeatResponse(error)
        case LeaveGroupRequest():
            return LeaveGroupResponse(error)
        case DescribeGroupsRequest() as body:
            return DescribeGroupsResponse(
                (
                    *(described_refusal(name) for name in body.groups if name in request.denied),
                    *(
                        DescribedGroup(error, group_id=name, group_state="")
                        for name in body.groups
                        if name not in request.denied
                    ),
                )
            )
        case ListGroupsRequest():
            if error is ErrorCode.NOT_COORDINATOR:
                return ListGroupsResponse(ErrorCode.NONE)  # C-ADM-05: a partition just lost is skipped
            return ListGroupsResponse(error)
        case DeleteGroupsRequest() as body:
            return deletion_response(request, dict.fromkeys(body.groups_names, error))
        case ConsumerGroupHeartbeatRequest():
            return ConsumerGroupHeartbeatResponse(error, error_message=why or _WHY.get(error))
        case ConsumerGroupDescribeRequest() as body:
            # M-DESC-01: who may see a group is asked before who coordinates it, but after whether there are such groups
            unseen = frozenset[str]() if error is ErrorCode.UNSUPPORTED_VERSION else request.denied
            denied = [name for name in body.group_ids if name in unseen]
            rest = [name for name in body.group_ids if name not in unseen]
            return ConsumerGroupDescribeResponse(
                (
                    *(DescribedConsumerGroup(ErrorCode.GROUP_AUTHORIZATION_FAILED, group_id=name) for name in denied),
                    *(_undescribed(error, name) for name in rest),
                )
            )
        case body:
            return offset_refusal(body, request.version, error)


def _undescribed(error: ErrorCode, name: str) -> DescribedConsumerGroup:
    """An empty name belongs to no partition, so it is refused before one is asked for (C-ADM-06)."""
    asked = error in (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    return DescribedConsumerGroup(ErrorCode.INVALID_GROUP_ID if asked and not name else error, group_id=name)


def described_refusal(name: str) -> DescribedGroup:
    """An answer that has the same code for each group (C-ADM-01)."""
    return DescribedGroup(ErrorCode.GROUP_AUTHORIZATION_FAILED, group_id=name, group_state="")


def deletion_response(request: Request, results: Mapping[str, ErrorCode]) -> DeleteGroupsResponse:
    """One row for each group, those that the caller may not delete behind the others (C-ADM-09)."""
    denied = request.denied
    rows = [DeletedGroup(name, error) for name, error in results.items() if name not in denied]
    rows += [DeletedGroup(name, ErrorCode.GROUP_AUTHORIZATION_FAILED) for name in results if name in denied]
    return DeleteGroupsResponse(tuple(rows))


def leave_response(version: int, members: tuple[LeaveGroupMemberResponse, ...]) -> LeaveGroupResponse:
    """The answer with a row for each member (G-WIRE-23): up to v2 there is one member, and its error is the
    answer's."""
    if version <= 2:
        return LeaveGroupResponse(members[0].error_code)
    return LeaveGroupResponse(ErrorCode.NONE, members)
