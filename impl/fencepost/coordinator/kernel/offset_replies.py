"""The error answer to a request of the offset APIs: an error of the group, in the place that API and version have."""

from __future__ import annotations

from typing import TypeAlias

from fencepost.protocol.errors import ErrorCode
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

OffsetRequest: TypeAlias = (
    OffsetCommitRequest | OffsetFetchRequest | OffsetDeleteRequest | TxnOffsetCommitRequest | WriteTxnMarkerRequest
)
OffsetResponse: TypeAlias = (
    OffsetCommitResponse | OffsetFetchResponse | OffsetDeleteResponse | TxnOffsetCommitResponse | WriteTxnMarkerResponse
)

#: The last version of OffsetFetch without an error field for the group (O-FETCH-11).
FETCH_WITHOUT_GROUP_ERROR = 1
#: The first version of TxnOffsetCommit that can report that the coordinator is loading (O-TXN-02).
TXN_TELLS_LOADING_SINCE = 2
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
    if error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS and version < TXN_TELLS_LOADING_SINCE:
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
