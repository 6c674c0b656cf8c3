"""The APIs of data: Produce, Fetch, ListOffsets, OffsetForLeaderEpoch and DeleteRecords."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Final, TypedDict, TypeVar

from kio.schema.errors import ErrorCode as Code

from fencepost.log import FencedEpoch
from fencepost.store import AppendError, Change, PutBatch, StoreError
from fencepost.wire.convert import milliseconds
from fencepost.wire.frames import MalformedFrame
from fencepost_server.apis.call import Call, Values, optional, uuid_bytes
from fencepost_server.apis.metadata import cluster_right
from fencepost_server.apis.refusal import refusal
from fencepost_server.apis.requests import (
    DeleteRecordsRequest,
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ForgottenTopic,
    ListOffsetsRequest,
    OffsetForLeaderEpochRequest,
    OffsetPartition,
    ProduceRequest,
    ProduceTopic,
)
from fencepost_server.data import search
from fencepost_server.data.batches import NO_PRODUCER, Batch, CorruptBatch, OldBatch, batches
from fencepost_server.data.partition import Fetched, PartitionLog, durably, wait_for_any
from fencepost_server.data.producers import Refused
from fencepost_server.data.sessions import NO_SESSION, Diverging, FetchedRow, Key
from fencepost_server.data.topics import Topic
from fencepost_server.security.acl import Operation, Resource

_log = logging.getLogger(__name__)

#: From these versions on, requests give topics by id.
_PRODUCE_BY_ID: Final = 13
_FETCH_BY_ID: Final = 13
#: From this version on, an answer has a place for the end of a reader's epoch.
_DIVERGING_SINCE: Final = 12
#: From this version on, a batch adds its partition to its transaction (KIP-890).
_IMPLICIT_SINCE: Final = 12
#: From this version on, a producer knows the code TRANSACTION_ABORTABLE.
_ABORTABLE_SINCE: Final = 11
#: Kafka's default ``message.timestamp.after.max.ms``
_MOST_AHEAD_MS: Final = 3_600_000
_COMMITTED: Final = 1
_NO_ACKS: Final = 0

LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING = -1, -2, -3, -4, -5, -6
#: The first version that supports each of them.
_TIMES_SINCE: Final = {
    LATEST: 0,
    EARLIEST: 0,
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL: 8,
    LATEST_TIERED: 9,
    EARLIEST_PENDING: 11,
}
_NEVER: Final = 1 << 15
_NONE_FORGOTTEN: Final[Sequence[ForgottenTopic]] = ()
_T = TypeVar("_T", FetchTopic, ForgottenTopic)


class _Named(TypedDict, total=False):
    """The field of an answer that names a topic: the one that the request has."""

    topic_id: bytes
    name: str
    topic: str


class _Produced(TypedDict, total=False):
    """The answer about one partition of Produce. ``error_code``: only if its batch was rejected."""

    index: int
    base_offset: int
    log_append_time: int
    log_start_offset: int
    error_code: Code
    error_message: str | None


class _ListedOffset(TypedDict, total=False):
    partition_index: int
    error_code: Code
    timestamp: int
    offset: int
    leader_epoch: int


class _EpochEnd(TypedDict, total=False):
    partition: int
    error_code: Code
    leader_epoch: int
    end_offset: int


class _Deleted(TypedDict, total=False):
    partition_index: int
    low_watermark: int
    error_code: Code


def _topic_of(call: Call, row: ProduceTopic, *, by_id: bool) -> tuple[Topic | None, _Named]:
    """Return the topic of a row, None if it does not exist, and the field of the answer that names it."""
    if by_id:
        topic_id = uuid_bytes(row.topic_id)
        return call.node.topics.by_id.get(topic_id), {"topic_id": topic_id}
    called = str(row.name)
    return call.node.topics.by_name.get(called), {"name": called}


async def produce(call: Call, request: ProduceRequest) -> Values | None:
    """Append batches to their partitions, unchanged but for their offsets."""
    by_id = call.version >= _PRODUCE_BY_ID
    acks = int(request.acks)
    transactional_id = request.transactional_id
    refused: Code | None = None
    found = [each for row in request.topic_data for each in _transactional(call, row, by_id=by_id)]
    if found and (
        transactional_id is None or not call.may(Operation.WRITE, Resource.TRANSACTIONAL_ID, transactional_id)
    ):
        refused = Code.transactional_id_authorization_failed
    elif len({(batch.producer_id, batch.producer_epoch) for batch, there in found if there}) > 1:
        refused = Code.invalid_producer_id_mapping
    answers: list[tuple[_Named, list[_Produced]]] = []
    written: list[tuple[PartitionLog, int]] = []
    known: list[tuple[PartitionLog, int, _Produced]] = []
    changes: list[Change] = []
    for row in request.topic_data:
        topic, named = _topic_of(call, row, by_id=by_id)
        partitions: list[_Produced] = []
        for each in row.partition_data:
            index = int(each.index)
            answer: _Produced = {"index": index, "base_offset": -1}
            try:
                if refused is not None:
                    raise Refused(refused, "")
                log = _writable(call, topic, named, index, by_id=by_id)
                assert topic is not None
                batch = _the_batch(each.records)
                if batch.transactional:  # a newer client's batch adds its partition even if it is rejected below
                    log.verify(batch, from_zero=call.version >= _IMPLICIT_SINCE)
                    await _in_transaction(call, topic.name, log, batch, transactional_id)
                if acks not in (-1, 0, 1):
                    raise Refused(Code.invalid_required_acks, "")
                if batch.base or batch.count < 1 or batch.count != batch.last + 1:
                    words = f"a batch must start at offset 0 without gaps (got {batch.count} from {batch.base})"
                    wrong = Refused(Code.invalid_record, words)
                    wrong.start = log.start
                    raise wrong
                put, kept = _append(call, topic, log, batch)
                changes += kept
                written.append((log, log.end))
                answer.update({"base_offset": put.base, "log_start_offset": log.start})
                if not kept:  # the answer to a duplicate batch has a time, as in Kafka
                    answer["log_append_time"] = put.max_timestamp
                    known.append((log, put.last, answer))
            except Refused as reason:
                answer.update({"error_code": reason.code, "error_message": str(reason) or None})
                if reason.start is not None:
                    answer["log_start_offset"] = reason.start
            partitions.append(answer)
        if partitions:
            answers.append((named, partitions))
    try:
        if changes:
            await call.node.store.write(changes)
    except (AppendError, StoreError, FencedEpoch) as reason:
        _log.error("batches of %s rejected: %s", call.header.client_id, reason)
        fenced = isinstance(reason, FencedEpoch)
        call.node.retract([log for log, _ in written])
        for _, partitions in answers:
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
        if any(answer.get("error_code") for _, partitions in answers for answer in partitions):
            raise MalformedFrame("a batch sent with acks=0 was rejected; closing the connection tells the producer")
        return None
    return {"responses": [{**named, "partition_responses": partitions} for named, partitions in answers]}


def _writable(call: Call, topic: Topic | None, named: _Named, index: int, *, by_id: bool) -> PartitionLog:
    name = topic.name if topic is not None else named.get("name")
    if name is not None and not call.may(Operation.WRITE, Resource.TOPIC, name):
        raise Refused(Code.topic_authorization_failed, "")
    if topic is None:
        raise Refused(Code.unknown_topic_id if by_id else Code.unknown_topic_or_partition, "")
    if not 0 <= index < len(topic.logs):
        raise Refused(Code.unknown_topic_or_partition, "")
    return topic.logs[index]


def _transactional(call: Call, row: ProduceTopic, *, by_id: bool) -> Iterator[tuple[Batch, bool]]:
    """Yield each transactional batch of a row, and whether its partition exists and the client may write to it."""
    topic, _ = _topic_of(call, row, by_id=by_id)
    for each in row.partition_data:
        with suppress(Refused):
            batch = _the_batch(each.records)
            if batch.transactional:
                here = topic is not None and 0 <= each.index < len(topic.logs)
                yield batch, here and call.may(Operation.WRITE, Resource.TOPIC, topic.name if topic else "")


def _append(call: Call, topic: Topic, log: PartitionLog, batch: Batch) -> tuple[Batch, list[Change]]:
    """Append a batch in memory. Returns it with its offsets, and the changes to store: none if the batch is a
    duplicate. Raises ``Refused``."""
    node = call.node
    if node.data_bytes + len(batch.data) > node.options.limits.data_bytes:
        raise Refused(Code.kafka_storage_error, "data limit reached (--max-data-mib)")
    try:
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
    """Return the single batch of a partition's records. Raises ``Refused`` if there is not exactly one, or it is
    invalid."""
    try:
        found = list(batches(records or b""))
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


async def fetch(call: Call, request: FetchRequest) -> Values:
    """Return batches from given offsets on, and wait if there are none (KIP-74, KIP-227)."""
    by_id = call.version >= _FETCH_BY_ID
    sessions = call.node.fetch_sessions
    forgotten = optional(request, "forgotten_topics_data", _NONE_FORGOTTEN)
    try:
        context = sessions.context(
            optional(request, "session_id", NO_SESSION),
            optional(request, "session_epoch", -1),
            {
                (name, int(row.partition)): row
                for name, topic in _by_topic(request.topics, by_id)
                for row in topic.partitions
            },
            [(name, int(index)) for name, topic in _by_topic(forgotten, by_id) for index in topic.partitions],
            by_id=by_id,
            now=time.monotonic(),
        )
        wanted = [(key, *_named(call, key[0]), row) for key, row in context.partitions.items()]
        names = {key[0]: topic.name for key, topic, *_ in wanted if topic is not None}
        context.sees(names)
        answers = await _answers(call, request, wanted, by_id=by_id)
        for key, answer in answers:
            known = context.name(key)
            if answer["error_code"] is Code.unknown_topic_id and known is not None:
                answer["error_code"] = _gone(call, known)
        number, told = sessions.answered(context, answers, names, by_id=by_id, now=time.monotonic())
    except Refused as refused:
        return {"error_code": refused.code}
    if call.version < _DIVERGING_SINCE and any("diverging_epoch" in answer for _, answer in told):
        return {  # a request of a later version has told the session how far the reader's epochs go
            **refusal(call, request, Code.unsupported_version),
            "session_id": optional(request, "session_id", NO_SESSION),
        }
    topics: dict[bytes | str, list[FetchedRow]] = {}
    for (name, _), answer in told:
        topics.setdefault(name, []).append(answer)
    field = "topic_id" if by_id else "topic"
    return {"session_id": number, "responses": [{field: name, "partitions": topics[name]} for name in topics]}


def _gone(call: Call, name: str) -> Code:
    """The error for a topic of a session that was there under that name."""
    if not call.may(Operation.READ, Resource.TOPIC, name):
        return Code.topic_authorization_failed
    return Code.inconsistent_topic_id if name in call.node.topics.by_name else Code.unknown_topic_or_partition


def _by_topic(topics: Iterable[_T], by_id: bool) -> list[tuple[bytes | str, _T]]:
    """Return the rows of topics with their names or ids."""
    return [(uuid_bytes(topic.topic_id) if by_id else str(topic.topic), topic) for topic in topics]


def _named(call: Call, name: bytes | str) -> tuple[Topic | None, _Named]:
    """The topic of that id or name, if it is there, and how an answer names it."""
    topics = call.node.topics
    if isinstance(name, bytes):
        return topics.by_id.get(name), {"topic_id": name}
    return topics.by_name.get(name), {"topic": name}


async def _answers(
    call: Call, request: FetchRequest, wanted: list[tuple[Key, Topic | None, _Named, FetchPartition]], *, by_id: bool
) -> list[tuple[Key, FetchedRow]]:
    """What is answered about each partition, once there is enough to read."""
    committed = int(request.isolation_level) == _COMMITTED
    readable: list[tuple[PartitionLog, int]] = []
    for _, topic, named, each in wanted:
        code, log = _readable(call, topic, named, each)
        if log is None or code is not Code.none or _diverging(log, each) is not None:
            readable = []
            break
        readable.append((log, int(each.fetch_offset)))
    least = min(int(request.min_bytes), int(request.max_bytes))

    def enough() -> bool:
        if call.node.ending or any(log.deleted for log, _ in readable):
            return True
        return least <= sum(log.ready(offset, committed=committed) for log, offset in readable)

    if readable and least > 0:
        await wait_for_any([log for log, _ in readable], milliseconds(request.max_wait) / 1000, enough)
    left = int(request.max_bytes)
    nothing_yet = True
    answers: list[tuple[Key, FetchedRow]] = []
    for key, topic, named, each in wanted:
        code, log = _readable(call, topic, named, each)
        answer: FetchedRow = {
            "partition_index": int(each.partition),
            "high_watermark": -1,
            "error_code": code,
            "records": b"",
        }
        if log is None:
            answer["aborted_transactions"] = []
        if topic is None and by_id:
            answer["error_code"] = Code.unknown_topic_id
        if log is not None and code is Code.none:
            most = min(int(each.partition_max_bytes), left)
            row, taken = await _fetched(log, each, most, committed=committed, one_at_least=nothing_yet)
            answer.update(row)
            left -= taken
        if log is not None:  # a negative limit counts only for the first partition that is read, as in Kafka
            left = max(left, 0)
        nothing_yet = nothing_yet and not answer["records"]
        answers.append((key, answer))
    return answers


async def _fetched(
    log: PartitionLog, each: FetchPartition, most: int, *, committed: bool, one_at_least: bool
) -> tuple[FetchedRow, int]:
    """Return the answer's fields for a readable partition, and how many bytes of the response's limit it uses."""
    offset = int(each.fetch_offset)
    ends: FetchedRow = {"high_watermark": log.high, "last_stable_offset": log.stable, "log_start_offset": log.start}
    diverging = _diverging(log, each)
    if diverging is not None:
        return {**ends, "diverging_epoch": diverging}, 0
    if most < 0 and log.ready(offset, committed=committed):
        return {"error_code": Code.unknown_server_error}, 0  # Kafka fails over it
    wrong = Code.none
    try:
        got = await log.read(offset, most, committed=committed, one_at_least=one_at_least)
    except StoreError as reason:
        _log.error("batches of partition %s cannot be read: %s", log.index, reason)
        got, wrong = Fetched(), Code.kafka_storage_error
    answer: FetchedRow = {**ends, "error_code": wrong, "records": got.records}
    if committed and (got.records or most <= 0 or offset >= log.stable):
        answer["aborted_transactions"] = [
            {"producer_id": one.producer_id, "first_offset": one.first} for one in got.aborted
        ]
    return answer, _taken(log, offset, got, most, committed=committed)


def _taken(log: PartitionLog, offset: int, got: Fetched, most: int, *, committed: bool) -> int:
    """Return how many bytes of the response's limit a partition uses; Kafka fills the rest with a part of the next
    batch."""
    return max(len(got.records), min(most, log.ready(offset, committed=committed))) if got.records else 0


def _readable(call: Call, topic: Topic | None, named: _Named, each: FetchPartition) -> tuple[Code, PartitionLog | None]:
    if topic is None:
        hidden = "topic" in named and not call.may(Operation.READ, Resource.TOPIC, named["topic"])
        return Code.topic_authorization_failed if hidden else Code.unknown_topic_or_partition, None
    if call.node.topics.by_id.get(topic.topic_id) is not topic:  # deleted while the fetch waited
        return Code.unknown_topic_or_partition, None
    if not call.may(Operation.READ, Resource.TOPIC, topic.name):
        return Code.topic_authorization_failed, None
    if not 0 <= each.partition < len(topic.logs):
        return Code.unknown_topic_or_partition, None
    log = topic.logs[each.partition]
    code = log.check_epoch(max(optional(each, "current_leader_epoch", -1), -1))
    if code is Code.none:
        code = log.check(int(each.fetch_offset), optional(each, "last_fetched_epoch", -1))
    return code, log


def _diverging(log: PartitionLog, each: FetchPartition) -> Diverging | None:
    """Return where the log and the records that the reader has read diverge; None if they agree (KIP-595)."""
    last = optional(each, "last_fetched_epoch", -1)
    if last < 0:
        return None
    epoch, end = log.end_of(last)
    return {"epoch": epoch, "end_offset": end} if epoch < last or end < each.fetch_offset else None


async def list_offsets(call: Call, request: ListOffsetsRequest) -> Values:
    """Return offsets by time, or the first and the last."""
    committed = optional(request, "isolation_level", 0) == _COMMITTED
    return {
        "topics": [
            {
                "name": row.name,
                "partitions": [
                    await _offset(call, str(row.name), each, committed=committed) for each in row.partitions
                ],
            }
            for row in request.topics
        ]
    }


async def _offset(call: Call, name: str, each: OffsetPartition, *, committed: bool) -> _ListedOffset:
    answer: _ListedOffset = {"partition_index": int(each.partition_index)}
    wanted = int(each.timestamp)
    if not call.may(Operation.DESCRIBE, Resource.TOPIC, name):
        return {**answer, "error_code": Code.topic_authorization_failed}
    if wanted < 0 and call.version < _TIMES_SINCE.get(wanted, _NEVER):
        return {**answer, "error_code": Code.unsupported_version}
    log = call.node.topics.partition(name, int(each.partition_index))
    if log is None:
        return {**answer, "error_code": Code.unknown_topic_or_partition}
    wrong = log.check_epoch(optional(each, "current_leader_epoch", -1))
    if wrong is not Code.none:
        return {**answer, "error_code": wrong}
    limit = log.stable if committed else log.high
    found: tuple[int, int] | None
    if wanted == LATEST:
        found = (-1, limit)
    elif wanted in (EARLIEST, EARLIEST_LOCAL):
        found = (-1, log.start)
    elif wanted == MAX_TIMESTAMP:
        found = await search.newest(log, limit)
    elif wanted >= 0:
        found = await search.first_since(log, wanted, limit)
    else:
        found = None  # there is no tiered storage
    if found is None:
        return {**answer, "leader_epoch": -1}
    return {**answer, "timestamp": found[0], "offset": found[1], "leader_epoch": log.epoch_of(found[1])}


async def offset_for_leader_epoch(call: Call, request: OffsetForLeaderEpochRequest) -> Values:
    """Return the end offsets of leader epochs. A client with the right of a broker may ask for any topic."""
    answers = []
    broker = cluster_right(call, Operation.CLUSTER_ACTION)
    for row in request.topics:
        partitions = []
        for each in row.partitions:
            answer: _EpochEnd = {"partition": int(each.partition)}
            log = call.node.topics.partition(str(row.topic), int(each.partition))
            if not broker and not call.may(Operation.DESCRIBE, Resource.TOPIC, str(row.topic)):
                answer["error_code"] = Code.topic_authorization_failed
            elif log is None:
                answer["error_code"] = Code.unknown_topic_or_partition
            else:
                wrong = log.check_epoch(int(each.current_leader_epoch))
                epoch, end = log.end_of(int(each.leader_epoch))
                if wrong:
                    answer["error_code"] = wrong
                else:
                    answer.update({"leader_epoch": epoch, "end_offset": end})
            partitions.append(answer)
        answers.append({"topic": row.topic, "partitions": partitions})
    return {"topics": answers}


async def delete_records(call: Call, request: DeleteRecordsRequest) -> Values:
    """Delete the records below given offsets."""
    answers = []
    for row in request.topics:
        name = str(row.name)
        partitions = []
        for each in row.partitions:
            answer: _Deleted = {"partition_index": int(each.partition_index), "low_watermark": -1}
            log = call.node.topics.partition(name, int(each.partition_index))
            offset = int(each.offset)
            if not call.may(Operation.DELETE, Resource.TOPIC, name):
                answer["error_code"] = Code.topic_authorization_failed
            elif log is None:
                answer["error_code"] = Code.unknown_topic_or_partition
            elif offset > log.high or offset < -1:
                answer["error_code"] = Code.offset_out_of_range
            else:
                await call.node.delete_before(name, log, log.high if offset == -1 else offset)
                answer["low_watermark"] = log.start
            partitions.append(answer)
        answers.append({"name": name, "partitions": partitions})
    return {"topics": answers}
