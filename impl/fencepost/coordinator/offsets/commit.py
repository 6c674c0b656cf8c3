"""OffsetCommit (6.1, 6.2)."""

from __future__ import annotations

from dataclasses import dataclass

from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import Request
from fencepost.protocol.logged import Partition, PlainCommit
from fencepost.protocol.offset_messages import (
    ZERO_ID,
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitResponse,
)
from fencepost.protocol.offset_records import OffsetCommitKey, OffsetCommitValue, Producer
from fencepost.protocol.plain_commit import packer
from fencepost.protocol.records import Record
from fencepost.quirks import varies

from ..kernel import operations
from ..kernel.errors import Rejected, operation_error
from ..kernel.operations import FailedByTimeout
from ..kernel.replies import error_response
from ..kernel.state import not_serving, time_after
from ..kernel.step import Step
from . import validation
from .offset_appliers import begin_simple_group, write_offset_records, write_plain_commit
from .validation import Admitted, Committer, Older, Results, admit

#: From this version on, which 4.1 is the first to announce, topics are named by their ids (G-WIRE-05, V-01).
TOPIC_IDS_SINCE = 10
#: The last version in which a request has a retention time for its offsets (O-COMMIT-14).
RETENTION_UNTIL = 4
NO_RETENTION = -1
NEVER = -1


@dataclass(frozen=True, slots=True)
class OffsetsWritten(FailedByTimeout):
    """The records of a commit (F-ORD-12). If they are not in the log, or not in time, the partitions that were not
    refused get the error (O-COMMIT-11, O-COMMIT-12)."""

    admitted: Admitted

    def failed(self, step: Step, request: Request | None, error: ErrorCode) -> None:
        """Nothing of the commit is stored, or the result is unknown."""
        assert request is not None
        step.reply(request.id, OffsetCommitResponse(self.admitted.failed(operation_error(error))))


def commit(step: Step, request: Request, body: OffsetCommitRequest) -> None:
    """Store offsets, all that are accepted or none (O-COMMIT-10). Errors of the whole request are answered at once,
    anything else when the records are replicated, or not in time (F-ORD-12, O-COMMIT-11, O-COMMIT-12)."""
    if body.group_id in request.denied:
        step.reply(request.id, error_response(request, ErrorCode.GROUP_AUTHORIZATION_FAILED))  # O-COMMIT-01
        return
    admitted = admit(request, step.topics, body.topics, by_id=request.version >= TOPIC_IDS_SINCE)
    error = not_serving(step.state) if step.state.running else ErrorCode.COORDINATOR_NOT_AVAILABLE
    if error is None and admitted.topics:
        try:
            older = _permitted(step, request, body)
            expires = _expire_timestamp(step, request, body)
            results = _stored(step, body.group_id, admitted, older, expires)
        except Rejected as rejected:
            error = rejected.error
        else:
            reply = OffsetCommitResponse(admitted.answer(results))
            operations.done(step, request, reply=reply, callback=OffsetsWritten(admitted))  # O-COMMIT-11
            return
    step.reply(request.id, OffsetCommitResponse(admitted.failed(error or ErrorCode.NONE)))  # O-COMMIT-04…07


def _permitted(step: Step, request: Request, body: OffsetCommitRequest) -> Older | None:
    """Raises ``Rejected`` (O-COMMIT-07)."""
    group = step.memory.groups.get(body.group_id)
    who = Committer(body.generation_id_or_member_epoch, body.member_id, body.group_instance_id)
    if group is not None:
        return validation.may_commit(step, group, who, request.version)
    if who.epoch >= 0:  # O-COMMIT-21, O-COMMIT-22
        named = request.version >= validation.COMMITS_BY_EPOCH_SINCE
        raise Rejected(ErrorCode.GROUP_ID_NOT_FOUND if named else ErrorCode.ILLEGAL_GENERATION)
    begin_simple_group(step, body.group_id)
    return None


def _expire_timestamp(step: Step, request: Request, body: OffsetCommitRequest) -> int | None:
    """When the commit expires; None if the request names no retention time (O-COMMIT-14). The time can be -1."""
    if request.version > RETENTION_UNTIL or body.retention_time_ms == NO_RETENTION:
        return None
    return time_after(step.at_ms, body.retention_time_ms)


def _stored(step: Step, group_id: str, admitted: Admitted, older: Older | None, expires: int | None) -> list[Results]:
    """Store what can be stored (F-ORD-12). Returns the result of each partition. Raises ``Rejected``, before anything
    is stored."""
    rows = _plain_rows(step, admitted, older) if expires is None else None
    if rows is not None:
        write_plain_commit(step, PlainCommit(group_id, rows))
        return [[(each.partition_index, ErrorCode.NONE) for each in topic.partitions] for topic in admitted.topics]
    results, records = commit_results(step, group_id, admitted, older, expires=expires)
    write_offset_records(step, records)
    return results


def _plain_rows(step: Step, admitted: Admitted, older: Older | None) -> list[tuple[Partition, bytes]] | None:
    """The partitions of a commit, each with the bytes of its value; None if some have metadata. Equal to what
    ``commit_results`` returns, but faster. Raises ``Rejected``."""
    if step.settings.offset_metadata_max_bytes < 0:
        return None
    rows = []
    for topic in admitted.topics:
        name, packed = topic.name, packer(step.at_ms, id_to_store(step, topic.topic_id, None, None))
        for each in topic.partitions:
            if each.committed_metadata:
                return None
            index = each.partition_index
            if older is not None:
                older.check(topic.topic_id, index)
            rows.append(((name, index), packed(each.committed_offset, each.committed_leader_epoch)))
    return rows


def commit_results(
    step: Step,
    group_id: str,
    admitted: Admitted,
    older: Older | None,
    *,
    expires: int | None = None,
    producer: Producer | None = None,
) -> tuple[list[Results], list[Record]]:
    """The result of each partition, and the records of the accepted ones (O-COMMIT-08, O-COMMIT-09, O-TXN-14).
    Raises ``Rejected`` if the whole commit is refused (O-COMMIT-32)."""
    results, records = [], []
    for topic in admitted.topics:
        rows: Results = []
        topic_id = id_to_store(step, topic.topic_id, expires, producer)
        for each in topic.partitions:
            metadata = each.committed_metadata
            if metadata is not None and _units(metadata) > step.settings.offset_metadata_max_bytes:
                rows.append((each.partition_index, ErrorCode.OFFSET_METADATA_TOO_LARGE))
                continue
            if older is not None:
                older.check(topic.topic_id, each.partition_index)
            rows.append((each.partition_index, ErrorCode.NONE))
            value = _value(step, topic_id, each, expires)
            records.append(Record(OffsetCommitKey(group_id, topic.name, each.partition_index), value, producer))
        results.append(rows)
    return results, records


def _units(text: str) -> int:
    """The length of a text in UTF-16 units (G-CFG-20)."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def _value(
    step: Step, topic_id: bytes, partition: OffsetCommitRequestPartition, expires: int | None
) -> OffsetCommitValue:
    """O-COMMIT-14."""
    return OffsetCommitValue(
        partition.committed_offset,
        leader_epoch=partition.committed_leader_epoch,
        metadata=partition.committed_metadata or "",
        commit_timestamp=step.at_ms,
        expire_timestamp=NEVER if expires is None else expires,
        topic_id=topic_id,
        expires_at_minus_one=expires == NEVER,
    )


@varies
def id_to_store(step: Step, topic_id: bytes, expires: int | None, producer: Producer | None) -> bytes:
    """The topic id is stored with an offset, unless the offset has an expiry time: the version of those records has no
    field for an id (O-COMMIT-14, F-REC-20)."""
    return topic_id if expires is None else ZERO_ID
