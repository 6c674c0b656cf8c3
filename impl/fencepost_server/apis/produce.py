"""Produce: batches are appended to partitions, in transactions too (KIP-98, KIP-890)."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from typing import Final, TypedDict

from kio.schema.errors import ErrorCode as Code

from fencepost.log import FencedEpoch
from fencepost.store import AppendError, Change, PutBatch, StoreError
from fencepost.wire.frames import MalformedFrame
from fencepost_server.apis.call import Call, Values, uuid_bytes
from fencepost_server.apis.requests import ProduceRequest, ProduceTopic
from fencepost_server.data.batches import (
    NO_PRODUCER,
    Batch,
    CorruptBatch,
    OldBatch,
    check_checksum,
    unchecked_batches,
)
from fencepost_server.data.partition import PartitionLog, durably
from fencepost_server.data.producers import Refused
from fencepost_server.data.topics import INTERNAL, Topic
from fencepost_server.security.acl import Operation, Resource

_log = logging.getLogger(__name__)

#: From this version on, requests give topics by id.
_BY_ID_SINCE: Final = 13
#: From this version on, a batch adds its partition to its transaction (KIP-890).
_IMPLICIT_SINCE: Final = 12
#: From this version on, a producer knows the code TRANSACTION_ABORTABLE.
_ABORTABLE_SINCE: Final = 11
#: Kafka's default ``message.timestamp.after.max.ms``
_MOST_AHEAD_MS: Final = 3_600_000
_NO_ACKS: Final = 0
_ACKS: Final = (-1, _NO_ACKS, 1)


class _Produced(TypedDict, total=False):
    """The answer about one partition of Produce. ``error_code``: only if its batch was rejected."""

    index: int
    base_offset: int
    log_append_time: int
    log_start_offset: int
    error_code: Code
    error_message: str | None


@dataclass(slots=True)
class _Row:
    """A request's batch for a partition. As in Kafka, the last batch counts if there are several. If the records of a
    row are not one batch, that is the answer about the partition, and the batch of another row is still appended."""

    batch: Batch | None = None
    wrong: Refused | None = None


def _key(row: ProduceTopic, *, by_id: bool) -> str | bytes:
    return uuid_bytes(row.topic_id) if by_id else str(row.name)


async def produce(call: Call, request: ProduceRequest) -> Values | None:
    """Append batches to their partitions, unchanged but for their offsets."""
    by_id = call.version >= _BY_ID_SINCE
    acks = int(request.acks)
    rows = _rows(request, by_id=by_id)
    await call.node.open_offsets(key for key, _ in rows)
    refused = _refused(call, request, rows)
    answers: dict[str | bytes, list[_Produced]] = {}
    written: list[tuple[PartitionLog, int]] = []
    known: list[tuple[PartitionLog, int, _Produced]] = []
    changes: list[Change] = []
    for (key, index), row in rows.items():
        answer: _Produced = {"index": index, "base_offset": -1}
        topic = call.node.topic(key)
        try:
            if refused is not None:
                raise Refused(refused, "")
            log = _writable(call, topic, key, index)
            assert topic is not None
            with nullcontext() if row.wrong is None else suppress(Refused):
                if row.batch is not None:
                    put, kept = await _written(call, request, topic, log, row.batch)
                    changes += kept
                    written.append((log, log.end))
                    answer.update({"base_offset": put.base, "log_start_offset": log.start})
                    if not kept:  # the answer to a duplicate batch has a time, as in Kafka
                        answer["log_append_time"] = put.max_timestamp
                        known.append((log, put.last, answer))
            if row.wrong is not None:
                answer = {"index": index, "base_offset": -1}
                raise row.wrong
        except Refused as reason:
            answer.update({"error_code": reason.code, "error_message": str(reason) or None})
            if reason.start is not None:
                answer["log_start_offset"] = reason.start
        answers.setdefault(key, []).append(answer)
    try:
        if changes:
            await call.node.store.write(changes)
    except (AppendError, StoreError, FencedEpoch) as reason:
        _log.error("batches of %s rejected: %s", call.header.client_id, reason)
        fenced = isinstance(reason, FencedEpoch)
        call.node.retract([log for log, _ in written])
        for partitions in answers.values():
            for answer in partitions:
                if "error_code" not in answer:
                    code = Code.not_leader_or_follower if fenced else Code.kafka_storage_error
                    answer.update({"error_code": code, "base_offset": -1})
    else:
        for log, end in written:
            log.durable(end)
    for log, last, answer in known:  # a duplicate batch may not be durable yet
        if not await durably(log, last):
            answer.update({"error_code": Code.kafka_storage_error, "base_offset": -1})
    if acks == _NO_ACKS:
        if any(answer.get("error_code") for partitions in answers.values() for answer in partitions):
            raise MalformedFrame("a batch sent with acks=0 was rejected; closing the connection tells the producer")
        return None
    field = "topic_id" if by_id else "name"
    responses = [{field: topic, "partition_responses": partitions} for topic, partitions in answers.items()]
    return {"responses": responses}


def _rows(request: ProduceRequest, *, by_id: bool) -> dict[tuple[str | bytes, int], _Row]:
    """Return what the request has for each partition, by the topic's id or name and the partition's number."""
    found: dict[tuple[str | bytes, int], _Row] = {}
    for topic in request.topic_data:
        for each in topic.partition_data:
            row = found.setdefault((_key(topic, by_id=by_id), int(each.index)), _Row())
            try:
                row.batch = _the_batch(each.records)
            except Refused as wrong:
                row.wrong = wrong
    return found


def _writable(call: Call, topic: Topic | None, key: str | bytes, index: int) -> PartitionLog:
    name = topic.name if topic is not None else key
    if isinstance(name, str) and not call.may(Operation.WRITE, Resource.TOPIC, name):
        raise Refused(Code.topic_authorization_failed, "")
    if topic is None:
        raise Refused(Code.unknown_topic_id if isinstance(key, bytes) else Code.unknown_topic_or_partition, "")
    if not 0 <= index < len(topic.logs):
        raise Refused(Code.unknown_topic_or_partition, "")
    return topic.logs[index]


def _refused(call: Call, request: ProduceRequest, rows: Mapping[tuple[str | bytes, int], _Row]) -> Code | None:
    """Return the error for the whole request; None if its partitions may be answered one by one. All batches that say
    that they are transactional need the right to the transactional id. Those that may be written must be of one
    producer."""
    transactional_id = request.transactional_id
    if any(_marked(each.records) for topic in request.topic_data for each in topic.partition_data) and (
        transactional_id is None or not call.may(Operation.WRITE, Resource.TRANSACTIONAL_ID, transactional_id)
    ):
        return Code.transactional_id_authorization_failed
    producers = set()
    for (key, index), row in rows.items():
        if row.batch is not None and row.batch.transactional:
            with suppress(Refused):
                _writable(call, call.node.topic(key), key, index)
                producers.add((row.batch.producer_id, row.batch.producer_epoch))
    return Code.invalid_producer_id_mapping if len(producers) > 1 else None


def _marked(records: bytes | None) -> bool:
    """Whether the first batch says that it is transactional."""
    try:
        first = next(unchecked_batches(records or b""), None)
    except (OldBatch, CorruptBatch):
        return False
    return first is not None and first.marked


async def _written(
    call: Call, request: ProduceRequest, topic: Topic, log: PartitionLog, batch: Batch
) -> tuple[Batch, list[Change]]:
    """Verify a batch, and append it in memory. Returns it with its offsets, and the changes to store: none if the batch
    is a duplicate. Raises ``Refused``."""
    internal = topic.name in INTERNAL
    # a newer client's batch adds its partition even if it is rejected below
    if batch.transactional and not internal and log.verify(batch, bumps=call.version >= _IMPLICIT_SINCE):
        await _in_transaction(call, topic.name, log, batch, request.transactional_id)
    if int(request.acks) not in _ACKS:
        raise Refused(Code.invalid_required_acks, "")
    if internal:  # Kafka lets its own admin client write there, but the coordinators alone write this log
        raise Refused(Code.invalid_topic_exception, "")
    try:
        check_checksum(batch)
    except CorruptBatch as corrupt:
        raise Refused(Code.corrupt_message, str(corrupt)) from None
    return _append(call, topic, log, batch)


def _append(call: Call, topic: Topic, log: PartitionLog, batch: Batch) -> tuple[Batch, list[Change]]:
    """Append a batch in memory. Returns it with its offsets, and the changes to store: none if the batch is a
    duplicate. Raises ``Refused``."""
    node = call.node
    if node.data_bytes + len(batch.data) > node.options.limits.data_bytes:
        raise Refused(Code.kafka_storage_error, "data limit reached (--max-data-mib)")
    try:
        if batch.base or batch.count < 1 or batch.count != batch.last + 1:
            words = f"a batch must start at offset 0 without gaps (got {batch.count} from {batch.base})"
            raise Refused(Code.invalid_record, words)
        if batch.control:
            raise Refused(Code.invalid_record, "a client must not write transaction markers")
        if batch.producer_id != NO_PRODUCER and batch.base_sequence < 0:
            raise Refused(Code.invalid_record, f"base sequence must be >= 0 (got {batch.base_sequence})")
        if batch.max_timestamp > time.time() * 1_000 + _MOST_AHEAD_MS:
            raise Refused(Code.invalid_timestamp, f"timestamp {batch.max_timestamp} is more than an hour in the future")
        put, new = log.add(batch)
    except Refused as refused:
        refused.start = log.start
        raise
    if not new:
        return put, []
    node.data_bytes += len(put.data)
    return put, [PutBatch(topic.topic_id, log.index, put.base, put.data)]


def _the_batch(records: bytes | None) -> Batch:
    """Return the single batch of a partition's records, whose checksum may be wrong. Raises ``Refused`` if there is not
    exactly one, or it has another form."""
    try:
        found = list(unchecked_batches(records or b""))
    except OldBatch as old:
        raise Refused(Code.invalid_record, str(old)) from None
    except CorruptBatch as corrupt:
        raise Refused(Code.corrupt_message, str(corrupt)) from None
    if len(found) != 1:
        raise Refused(Code.invalid_record, f"a request must contain one batch for a partition (got {len(found)})")
    (batch,) = found
    return batch


async def _in_transaction(call: Call, name: str, log: PartitionLog, batch: Batch, transactional_id: str | None) -> None:
    """Check that a transactional batch belongs to the open transaction of its producer; late batches are rejected
    (KIP-890). Raises ``Refused``."""
    if transactional_id is None:
        raise Refused(Code.invalid_txn_state, "a transactional batch needs a transactional id in the request")
    if not transactional_id:
        raise Refused(Code.invalid_request, "the transactional id is empty")
    node = call.node
    implicit = call.version >= _IMPLICIT_SINCE
    known = node.transactions.known.get(transactional_id)
    if known is None or known.producer_id != batch.producer_id:
        raise Refused(Code.invalid_producer_id_mapping, "the producer id does not belong to the transactional id")
    if known.producer_epoch != batch.producer_epoch:
        words = f"producer epoch must be {known.producer_epoch} (got {batch.producer_epoch})"
        raise Refused(Code.invalid_producer_epoch, words)
    if implicit:
        await node.transactions.add(known, [(name, log.index)], version=2)
    elif known.state.ending or (name, log.index) not in known.partitions:
        code = Code.transaction_abortable if call.version >= _ABORTABLE_SINCE else Code.invalid_txn_state
        raise Refused(code, "the partition is not in the transaction")
