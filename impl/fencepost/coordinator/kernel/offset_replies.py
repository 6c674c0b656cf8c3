"""The answer that refuses a request of the offset APIs: an error of the group, put where API and version have it."""

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

#: The version of OffsetFetch that has no error of the group yet (O-FETCH-11).
FETCH_WITHOUT_GROUP_ERROR = 1
#: From this version on TxnOffsetCommit can say that the coordinator loads (O-TXN-02).
TXN_TELLS_LOADING_SINCE = 2
#: That the coordinator is not here, or not yet.
_NOT_HERE = (
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_COORDINATOR,
)


def offset_refusal(body: OffsetRequest, version: int, error: ErrorCode) -> OffsetResponse:
    """Every offset API's way to say ``error`` of the group."""
    match body:
        case OffsetCommitRequest():
            return OffsetCommitResponse(everywhere(body.topics, error))
        case TxnOffsetCommitRequest():
            return TxnOffsetCommitResponse(everywhere(body.topics, txn_error(error, version)))
        case OffsetFetchRequest():
            return OffsetFetchResponse(tuple(fetch_refusal(group, version, error) for group in body.groups))
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
    """Old producers do not know that a coordinator can be loading (O-TXN-02)."""
    if error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS and version < TXN_TELLS_LOADING_SINCE:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    return error


def marker_error(error: ErrorCode) -> ErrorCode:
    """Who ends a transaction knows of partitions and their leaders, not of coordinators (O-TXN-15)."""
    return ErrorCode.NOT_LEADER_OR_FOLLOWER if error in _NOT_HERE else error


def fetch_refusal(group: OffsetFetchRequestGroup, version: int, error: ErrorCode) -> OffsetFetchResponseGroup:
    """The error of one group: its own, or in the oldest version that of each partition that was asked for
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
