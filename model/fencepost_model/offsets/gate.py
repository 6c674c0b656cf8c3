"""Answers about offsets that need no group: rights, topics, and the state of the partition (O-COMMIT-01...06, O-TXN-01,
O-FETCH-01, 02, 10, O-DEL-01, 02)."""

from __future__ import annotations

from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import Request
from fencepost.protocol.messages import ResponseBody
from fencepost.protocol.offset_messages import (
    OffsetCommitRequest,
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
    TxnOffsetCommitRequest,
    WriteTxnMarkerRequest,
    WriteTxnMarkerResponse,
)

from ..consumer.state import Image
from .fetch import question
from .rows import Early, Row, commit_answer, group_error, marker_error
from .topics import sifted

#: The requests about offsets.
OffsetRequest = (
    OffsetCommitRequest | TxnOffsetCommitRequest | OffsetDeleteRequest | OffsetFetchRequest | WriteTxnMarkerRequest
)


def refused(image: Image, error: ErrorCode | None, request: Request) -> tuple[ResponseBody, tuple[str, ...]] | None:
    """Return the answer and its rules, or None if the group must decide. ``error``: that of the partition's state."""
    body = request.body
    if isinstance(body, OffsetCommitRequest | TxnOffsetCommitRequest):
        return _commit(image, error, request, body)
    if isinstance(body, OffsetDeleteRequest):
        if body.group_id in request.denied:
            return OffsetDeleteResponse(ErrorCode.GROUP_AUTHORIZATION_FAILED), ("O-DEL-01",)
        if not body.group_id:
            return OffsetDeleteResponse(ErrorCode.INVALID_GROUP_ID), ("O-DEL-02",)
        return None if error is None else (OffsetDeleteResponse(error), ("O-DEL-02",))
    if isinstance(body, OffsetFetchRequest):
        return _fetch(image, error, request, body)
    if isinstance(body, WriteTxnMarkerRequest) and error is not None:
        return WriteTxnMarkerResponse(marker_error(error)), ("F-RT-02", "O-TXN-15")
    return None


def _commit(
    image: Image, error: ErrorCode | None, request: Request, body: OffsetCommitRequest | TxnOffsetCommitRequest
) -> tuple[ResponseBody, tuple[str, ...]] | None:
    transactional = isinstance(body, TxnOffsetCommitRequest)
    if isinstance(body, TxnOffsetCommitRequest) and body.transactional_id in request.denied_transactional_ids:
        denied = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        return commit_answer(body, _everywhere(body, denied), request.version), ("O-TXN-01",)
    if body.group_id in request.denied:
        rows = _everywhere(body, ErrorCode.GROUP_AUTHORIZATION_FAILED)
        return commit_answer(body, rows, request.version), ("O-TXN-01" if transactional else "O-COMMIT-01",)
    sift = sifted(image, body, request.version, request.denied_topics)
    if not sift.asked:
        return commit_answer(body, sift.refused, request.version), ("O-COMMIT-04",)
    if transactional and not body.group_id:
        error = ErrorCode.INVALID_GROUP_ID  # G-WIRE-27
    if error is None:
        return None
    early = Early(sift.refused, tuple([each.row for each in sift.asked]), request.version)
    return commit_answer(body, early.failed(error), request.version), ("O-COMMIT-05", "O-COMMIT-06")


def _everywhere(body: OffsetCommitRequest | TxnOffsetCommitRequest, error: ErrorCode) -> list[Row]:
    return [
        Row(topic.name, topic.topic_id, what.partition_index, error)
        for topic in body.topics
        for what in topic.partitions
    ]


def _fetch(
    image: Image, error: ErrorCode | None, request: Request, body: OffsetFetchRequest
) -> tuple[ResponseBody, tuple[str, ...]] | None:
    """Answer if the groups need not be asked; each group gets its error."""
    if error is None and not all(group.group_id in request.denied for group in body.groups):
        return None
    bodies = []
    for group in body.groups:
        if group.group_id in request.denied or error is None:
            requested = tuple([(topic.name, topic.topic_id, topic.partition_indexes) for topic in group.topics or ()])
            denied = ErrorCode.GROUP_AUTHORIZATION_FAILED
            bodies.append(group_error(group.group_id, requested, request.version, denied))
        else:
            bodies.append(question(image, group, request.denied_topics, request.version).error(error))
    return OffsetFetchResponse(tuple(bodies)), ("O-FETCH-01", "O-FETCH-10")
