"""Fetch: batches are read from partitions, alone or in a fetch session (KIP-74, KIP-227)."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Sequence
from typing import Final, TypedDict, TypeVar

from kio.schema.errors import ErrorCode as Code

from fencepost.store import StoreError
from fencepost.wire.convert import milliseconds
from fencepost_server.apis.call import Call, Values, optional, uuid_bytes
from fencepost_server.apis.refusal import refusal
from fencepost_server.apis.requests import READ_COMMITTED, FetchPartition, FetchRequest, FetchTopic, ForgottenTopic
from fencepost_server.data.partition import Fetched, PartitionLog, wait_for_any
from fencepost_server.data.producers import Refused
from fencepost_server.data.sessions import NO_SESSION, Diverging, FetchedRow, Key
from fencepost_server.data.topics import Topic
from fencepost_server.security.acl import Operation, Resource

_log = logging.getLogger(__name__)

#: From this version on, requests give topics by id.
_BY_ID_SINCE: Final = 13
#: From this version on, an answer has a place for the end of a reader's epoch.
_DIVERGING_SINCE: Final = 12
_NONE_FORGOTTEN: Final[Sequence[ForgottenTopic]] = ()
_T = TypeVar("_T", FetchTopic, ForgottenTopic)


class _Named(TypedDict, total=False):
    """The field of an answer that names a topic: the one that the request has."""

    topic_id: bytes
    topic: str


async def fetch(call: Call, request: FetchRequest) -> Values:
    """Return batches from given offsets on, and wait if there are none (KIP-74, KIP-227)."""
    by_id = call.version >= _BY_ID_SINCE
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
        await call.node.open_offsets(name for name, _ in context.partitions)
        wanted = [(key, *_named(call, key[0]), row) for key, row in context.partitions.items()]
        names = {key[0]: topic.name for key, topic, *_ in wanted if topic is not None}
        context.sees(names)
        answers = await _answers(call, request, wanted, by_id=by_id)
        for key, answer in answers:
            known = context.name(key)
            if answer["error_code"] is Code.unknown_topic_id and known is not None:
                answer["error_code"] = code = _gone(call, known, key[1])
                if code is Code.inconsistent_topic_id:  # found by Kafka's log, which names none
                    answer.pop("aborted_transactions", None)
        number, included = sessions.answered(context, answers, names, by_id=by_id, now=time.monotonic())
    except Refused as refused:
        return {"error_code": refused.code}
    if call.version < _DIVERGING_SINCE and any("diverging_epoch" in answer for _, answer in included):
        return {  # a request of a later version has stored the reader's epochs in the session
            **refusal(call.header, request, Code.unsupported_version),
            "session_id": optional(request, "session_id", NO_SESSION),
        }
    topics: dict[bytes | str, list[FetchedRow]] = {}
    for (name, _), answer in included:
        topics.setdefault(name, []).append(answer)
    field = "topic_id" if by_id else "topic"
    return {"session_id": number, "responses": [{field: name, "partitions": topics[name]} for name in topics]}


def _gone(call: Call, name: str, index: int) -> Code:
    """The error for a partition of a session whose topic was there under that name. As in Kafka, only a partition that
    the topic has now can have another topic id."""
    if not call.may(Operation.READ, Resource.TOPIC, name):
        return Code.topic_authorization_failed
    there = call.node.topics.partition(name, index) is not None
    return Code.inconsistent_topic_id if there else Code.unknown_topic_or_partition


def _by_topic(topics: Iterable[_T], by_id: bool) -> list[tuple[bytes | str, _T]]:
    """Return the rows of topics with their names or ids."""
    return [(uuid_bytes(topic.topic_id) if by_id else str(topic.topic), topic) for topic in topics]


def _named(call: Call, name: bytes | str) -> tuple[Topic | None, _Named]:
    """The topic of that id or name, if it is there, and how an answer names it."""
    return call.node.topic(name), {"topic_id": name} if isinstance(name, bytes) else {"topic": name}


async def _answers(
    call: Call, request: FetchRequest, wanted: list[tuple[Key, Topic | None, _Named, FetchPartition]], *, by_id: bool
) -> list[tuple[Key, FetchedRow]]:
    """What is answered about each partition, once there is enough to read. As in Kafka, partitions that do not exist or
    may not be read come last, and a new session keeps this order."""
    committed = int(request.isolation_level) == READ_COMMITTED
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
    unreadable: list[tuple[Key, FetchedRow]] = []
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
        (unreadable if log is None else answers).append((key, answer))
    return answers + unreadable


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
    return answer, _bytes_used(log, offset, got, most, committed=committed)


def _bytes_used(log: PartitionLog, offset: int, got: Fetched, most: int, *, committed: bool) -> int:
    """Return how many bytes of the response's limit a partition uses; Kafka fills the rest with a part of the next
    batch."""
    return max(len(got.records), min(most, log.ready(offset, committed=committed))) if got.records else 0


def _readable(call: Call, topic: Topic | None, named: _Named, each: FetchPartition) -> tuple[Code, PartitionLog | None]:
    if topic is None:
        hidden = "topic" in named and not call.may(Operation.READ, Resource.TOPIC, named["topic"])
        return Code.topic_authorization_failed if hidden else Code.unknown_topic_or_partition, None
    if call.node.topic(topic.topic_id) is not topic:  # deleted while the fetch waited
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
