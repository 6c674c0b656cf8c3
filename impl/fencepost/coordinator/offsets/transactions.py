"""TxnOffsetCommit, and the end of a transaction (6.3)."""

from __future__ import annotations

from dataclasses import dataclass

from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import Request
from fencepost.protocol.offset_messages import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    WriteTxnMarkerRequest,
    WriteTxnMarkerResponse,
)
from fencepost.protocol.offset_records import ControlKey, ControlValue, Producer
from fencepost.protocol.records import Record

from ..kernel import operations
from ..kernel.errors import Rejected, operation_error
from ..kernel.operations import FailedByTimeout
from ..kernel.replies import error_response, marker_error, txn_error
from ..kernel.state import not_serving
from ..kernel.step import Step
from . import validation
from .commit import commit_results
from .offset_appliers import begin_simple_group, write_offset_records
from .validation import Admitted, Committer, Older, admit

#: From this version on topics are named by their ids, and two errors have separate codes (V-129).
TOPIC_IDS_SINCE = 6


@dataclass(frozen=True, slots=True)
class PendingWritten(FailedByTimeout):
    """The records of a commit within a transaction; see ``OffsetsWritten`` for those of a plain commit."""

    admitted: Admitted

    def failed(self, step: Step, request: Request | None, error: ErrorCode) -> None:
        """Nothing is pending, or the result is unknown."""
        assert request is not None
        step.reply(
            request.id,
            TxnOffsetCommitResponse(self.admitted.failed(txn_error(operation_error(error), request.version))),
        )


@dataclass(frozen=True, slots=True)
class MarkerWritten(FailedByTimeout):
    """The record that ends a transaction (O-TXN-11)."""

    def failed(self, step: Step, request: Request | None, error: ErrorCode) -> None:
        """The transaction is still open, or the result is unknown; the sender of the marker tries again."""
        assert request is not None
        step.reply(request.id, WriteTxnMarkerResponse(marker_error(error)))


def commit(step: Step, request: Request, body: TxnOffsetCommitRequest) -> None:
    """Store offsets that count when the transaction of their producer is committed (O-TXN-01…07, O-TXN-16)."""
    if body.transactional_id in request.denied_transactional_ids:
        step.reply(request.id, error_response(request, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED))
        return
    if body.group_id in request.denied:
        step.reply(request.id, error_response(request, ErrorCode.GROUP_AUTHORIZATION_FAILED))
        return
    admitted = admit(request, step.topics, body.topics, by_id=request.version >= TOPIC_IDS_SINCE)
    error = _unserved(step, body)
    if error is None and admitted.topics:
        try:
            older = _permitted(step, request, body)
            producer = Producer(body.producer_id, body.producer_epoch)
            results, records = commit_results(step, body.group_id, admitted, older, producer=producer)
        except Rejected as rejected:
            error = _error_of_version(request, rejected.error)
        else:
            write_offset_records(step, records)
            reply = TxnOffsetCommitResponse(admitted.answer(results))
            operations.done(step, request, reply=reply, callback=PendingWritten(admitted))
            return
    answered = ErrorCode.NONE if error is None else txn_error(error, request.version)
    step.reply(request.id, TxnOffsetCommitResponse(admitted.failed(answered)))


def _unserved(step: Step, body: TxnOffsetCommitRequest) -> ErrorCode | None:
    if not step.state.running:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    return not_serving(step.state) if body.group_id else ErrorCode.INVALID_GROUP_ID  # G-WIRE-27


def _permitted(step: Step, request: Request, body: TxnOffsetCommitRequest) -> Older | None:
    """Raises ``Rejected`` (O-TXN-03…05)."""
    who = Committer(body.generation_id, body.member_id, body.group_instance_id)
    group = step.memory.groups.get(body.group_id)
    if group is not None:
        return validation.may_commit_in_transaction(step, group, who)
    if who.epoch >= 0:
        named = request.version >= TOPIC_IDS_SINCE
        raise Rejected(ErrorCode.GROUP_ID_NOT_FOUND if named else ErrorCode.ILLEGAL_GENERATION)
    begin_simple_group(step, body.group_id)
    return None


def _error_of_version(request: Request, error: ErrorCode) -> ErrorCode:
    """The error for this version; old producers do not know member epochs (O-TXN-05, V-129)."""
    if error is ErrorCode.STALE_MEMBER_EPOCH and request.version < TOPIC_IDS_SINCE:
        return ErrorCode.ILLEGAL_GENERATION
    return error


def end(step: Step, request: Request, body: WriteTxnMarkerRequest) -> None:
    """End a producer's transaction in all groups of this partition (O-TXN-08, O-TXN-11)."""
    state = step.state
    error = not_serving(state) if state.running else ErrorCode.COORDINATOR_NOT_AVAILABLE
    if error is not None:
        step.reply(request.id, error_response(request, error))
        return
    producer = Producer(body.producer_id, body.producer_epoch)
    write_offset_records(step, [Record(ControlKey(body.committed), ControlValue(body.coordinator_epoch), producer)])
    operations.done(step, request, reply=WriteTxnMarkerResponse(ErrorCode.NONE), callback=MarkerWritten())
