"""The error answer to a request, for every API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

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
from fencepost.protocol.offset_messages import (
    OffsetCommitRequest,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponseTopic,
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    WriteTxnMarkerRequest,
    WriteTxnMarkerResponse,
)

#: Error messages of ConsumerGroupHeartbeat, for errors that the group itself gives; the other errors have none.
_WHY = {
    ErrorCode.INVALID_REQUEST: "A field of the request is missing or blank, or does not fit the member epoch.",
    ErrorCode.UNSUPPORTED_ASSIGNOR: "This coordinator does not support the requested assignor.",
    ErrorCode.GROUP_ID_NOT_FOUND: "No consumer group has this name.",
    ErrorCode.GROUP_MAX_SIZE_REACHED: "The group has reached its maximum number of members.",
    ErrorCode.UNKNOWN_MEMBER_ID: "The group has no member with this id.",
    ErrorCode.FENCED_MEMBER_EPOCH: "The member epoch of the request is not the epoch of the member.",
    ErrorCode.UNRELEASED_INSTANCE_ID: "Another member uses this instance id and has not left.",
    ErrorCode.FENCED_INSTANCE_ID: "Another member uses this instance id.",
}
_HEARTBEAT_NONE = HeartbeatResponse(ErrorCode.NONE)


def error_response(request: Request, error: ErrorCode, member_id: str = "", why: str | None = None) -> ResponseBody:
    """The answer with ``error``, in the form of the request's API. ``member_id`` is for JoinGroup only (the last
    column of 3.1). ``why`` is the error message for heartbeats of consumer groups; by default it is the one of the
    error."""
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
                    *(described_error(name) for name in body.groups if name in request.denied),
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
            # M-DESC-01: authorization is checked before the coordinator is, but after support for such groups
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
            return offset_error_response(body, request.version, error)


def _undescribed(error: ErrorCode, name: str) -> DescribedConsumerGroup:
    """An empty name belongs to no partition, so it is refused before the coordinator is checked (C-ADM-06)."""
    asked = error in (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    return DescribedConsumerGroup(ErrorCode.INVALID_GROUP_ID if asked and not name else error, group_id=name)


def described_error(name: str) -> DescribedGroup:
    """An answer that has the same error for each group (C-ADM-01)."""
    return DescribedGroup(ErrorCode.GROUP_AUTHORIZATION_FAILED, group_id=name, group_state="")


def deletion_response(request: Request, results: Mapping[str, ErrorCode]) -> DeleteGroupsResponse:
    """One row for each group; the groups that the caller may not delete come last (C-ADM-09)."""
    denied = request.denied
    rows = [DeletedGroup(name, error) for name, error in results.items() if name not in denied]
    rows += [DeletedGroup(name, ErrorCode.GROUP_AUTHORIZATION_FAILED) for name in results if name in denied]
    return DeleteGroupsResponse(tuple(rows))


def leave_response(version: int, members: tuple[LeaveGroupMemberResponse, ...]) -> LeaveGroupResponse:
    """The answer with a row for each member (G-WIRE-23). Up to v2 there is one member, and its error is the error of
    the answer."""
    if version <= 2:
        return LeaveGroupResponse(members[0].error_code)
    return LeaveGroupResponse(ErrorCode.NONE, members)


OffsetRequest: TypeAlias = (
    OffsetCommitRequest | OffsetFetchRequest | OffsetDeleteRequest | TxnOffsetCommitRequest | WriteTxnMarkerRequest
)
OffsetResponse: TypeAlias = (
    OffsetCommitResponse | OffsetFetchResponse | OffsetDeleteResponse | TxnOffsetCommitResponse | WriteTxnMarkerResponse
)

#: The last version of OffsetFetch without an error field for the group (O-FETCH-11).
FETCH_WITHOUT_GROUP_ERROR = 1
#: The first version of TxnOffsetCommit that can report that the coordinator is loading (O-TXN-02).
TXN_REPORTS_LOADING_SINCE = 2
#: The errors that say that the coordinator is not here, or not yet.
_NOT_HERE = (
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_COORDINATOR,
)


def offset_error_response(body: OffsetRequest, version: int, error: ErrorCode) -> OffsetResponse:
    """The answer with an ``error`` of the group, in the form of each offset API."""
    match body:
        case OffsetCommitRequest():
            return OffsetCommitResponse(everywhere(body.topics, error))
        case TxnOffsetCommitRequest():
            return TxnOffsetCommitResponse(everywhere(body.topics, txn_error(error, version)))
        case OffsetFetchRequest():
            return OffsetFetchResponse(tuple(fetch_error_response(group, version, error) for group in body.groups))
        case OffsetDeleteRequest():
            return OffsetDeleteResponse(error)
        case WriteTxnMarkerRequest():
            return WriteTxnMarkerResponse(marker_error(error))


def everywhere(topics: tuple[OffsetCommitRequestTopic, ...], error: ErrorCode) -> tuple[OffsetCommitResponseTopic, ...]:
    """The error at each partition of a commit, in the order of the request (O-COMMIT-07)."""
    return tuple(
        OffsetCommitResponseTopic(
            name=topic.name,
            topic_id=topic.topic_id,
            partitions=tuple(OffsetCommitResponsePartition(each.partition_index, error) for each in topic.partitions),
        )
        for topic in topics
    )


def txn_error(error: ErrorCode, version: int) -> ErrorCode:
    """The error for this version; old producers do not know that a coordinator can be loading (O-TXN-02)."""
    if error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS and version < TXN_REPORTS_LOADING_SINCE:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    return error


def marker_error(error: ErrorCode) -> ErrorCode:
    """The error for the sender of a marker, which knows partitions and their leaders, not coordinators (O-TXN-15)."""
    return ErrorCode.NOT_LEADER_OR_FOLLOWER if error in _NOT_HERE else error


def fetch_error_response(group: OffsetFetchRequestGroup, version: int, error: ErrorCode) -> OffsetFetchResponseGroup:
    """The error of one group: its own, or in the oldest version the error of each requested partition
    (O-FETCH-11)."""
    if version > FETCH_WITHOUT_GROUP_ERROR:
        return OffsetFetchResponseGroup(group.group_id, error_code=error)
    topics = tuple(
        OffsetFetchResponseTopic(
            name=topic.name,
            topic_id=topic.topic_id,
            partitions=tuple(
                OffsetFetchResponsePartition(index, error_code=error) for index in topic.partition_indexes
            ),
        )
        for topic in group.topics or ()
    )
    return OffsetFetchResponseGroup(group.group_id, topics=topics)
