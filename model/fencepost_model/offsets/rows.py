"""Rows of answers about offsets, and what a waiting operation needs in order to answer its failure."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import NamedTuple

from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages import RequestBody, ResponseBody
from fencepost.protocol.offset_messages import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponseTopic,
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    WriteTxnMarkerRequest,
    WriteTxnMarkerResponse,
)

#: The version of OffsetFetch in which a group's error is reported at each partition (O-FETCH-11).
NO_GROUP_ERROR = 1
#: The first version in which a producer may be answered that the coordinator is loading (O-TXN-02).
REPORTS_LOADING_SINCE = 2


class Row(NamedTuple):
    """The answer for one partition; the topic as the request named it."""

    name: str
    topic_id: bytes
    partition: int
    error: ErrorCode = ErrorCode.NONE


class Early(NamedTuple):
    """Callback of a commit or a deletion: the rows that the broker has refused, and those that wait (O-COMMIT-11)."""

    refused: tuple[Row, ...]
    waiting: tuple[Row, ...]
    version: int

    def failed(self, error: ErrorCode) -> tuple[Row, ...]:
        """Return all rows; those that wait get the error (O-COMMIT-07)."""
        return (*self.refused, *[row._replace(error=error) for row in self.waiting])


#: Name, id and partitions of a topic, as a request has them.
RequestedTopic = tuple[str, bytes, tuple[int, ...]]


class Entry(NamedTuple):
    """The answer for one group of an OffsetFetch. ``requested``: the requested topics, or None if the answer is a final
    error."""

    body: OffsetFetchResponseGroup
    requested: tuple[RequestedTopic, ...] | None


class Fetched(NamedTuple):
    """Callback of an OffsetFetch that waits (O-FETCH-08)."""

    entries: tuple[Entry, ...]
    version: int

    def answer(self) -> OffsetFetchResponse:
        """Return the answer after the wait."""
        return OffsetFetchResponse(tuple([entry.body for entry in self.entries]))


def answered(rows: Iterable[Row]) -> tuple[OffsetCommitResponseTopic, ...]:
    """Return the rows of an answer by topic."""

    def topic(row: Row) -> tuple[str, bytes]:
        return row.name, row.topic_id

    return tuple(
        OffsetCommitResponseTopic(
            name=name,
            topic_id=topic_id,
            partitions=tuple(OffsetCommitResponsePartition(row.partition, row.error) for row in run),
        )
        for (name, topic_id), run in groupby(sorted(rows, key=topic), key=topic)
    )


def commit_answer(body: RequestBody, rows: Iterable[Row], version: int) -> ResponseBody:
    """Return the answer to a commit of either kind. Old producers do not know that a coordinator can be loading
    (O-TXN-02)."""
    if isinstance(body, OffsetCommitRequest):
        return OffsetCommitResponse(answered(rows))
    if version < REPORTS_LOADING_SINCE:
        rows = [
            row._replace(error=ErrorCode.COORDINATOR_NOT_AVAILABLE)
            if row.error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
            else row
            for row in rows
        ]
    return TxnOffsetCommitResponse(answered(rows))


def group_error(
    group_id: str, requested: Iterable[RequestedTopic], version: int, error: ErrorCode
) -> OffsetFetchResponseGroup:
    """Return a group's error in the form of the version; the rows that the broker refused are dropped (O-FETCH-11,
    O-FETCH-14)."""
    if version > NO_GROUP_ERROR:
        return OffsetFetchResponseGroup(group_id, error_code=error)
    topics = tuple(
        [
            OffsetFetchResponseTopic(
                name=name,
                topic_id=topic_id,
                partitions=tuple([OffsetFetchResponsePartition(number, error_code=error) for number in numbers]),
            )
            for name, topic_id, numbers in requested
        ]
    )
    return OffsetFetchResponseGroup(group_id, topics=topics)


#: Errors that a transaction coordinator does not expect (O-TXN-15).
_NOT_READY = (
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_COORDINATOR,
)


def marker_error(error: ErrorCode) -> ErrorCode:
    """Return the error for a marker: a coordinator that is not ready is reported as a partition with another leader
    (O-TXN-15)."""
    return ErrorCode.NOT_LEADER_OR_FOLLOWER if error in _NOT_READY else error


#: How a waiting fetch reports some errors of the log (O-FETCH-09).
_FETCH = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.NOT_COORDINATOR,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.NOT_COORDINATOR,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.NOT_COORDINATOR,
}


def failed(body: RequestBody, callback: object, error: ErrorCode, mapped: ErrorCode) -> ResponseBody | None:
    """Return the answer to a request about offsets whose operation failed, or None for any other request.

    ``error`` is the log's error, ``mapped`` the same after F-RT-10. A marker gets the log's error in its own mapping
    (O-TXN-15).
    """
    if isinstance(body, WriteTxnMarkerRequest):
        return WriteTxnMarkerResponse(marker_error(error))
    if isinstance(body, OffsetDeleteRequest):
        return OffsetDeleteResponse(mapped)
    if isinstance(body, OffsetFetchRequest) and isinstance(callback, Fetched):
        said = _FETCH.get(error, mapped)
        bodies = [
            each.body
            if each.requested is None
            else group_error(each.body.group_id, each.requested, callback.version, said)
            for each in callback.entries
        ]
        return OffsetFetchResponse(tuple(bodies))
    if isinstance(body, OffsetCommitRequest | TxnOffsetCommitRequest) and isinstance(callback, Early):
        return commit_answer(body, callback.failed(mapped), callback.version)
    return None
