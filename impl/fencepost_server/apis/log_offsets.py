"""The APIs about offsets in the logs of partitions: ListOffsets, OffsetForLeaderEpoch and DeleteRecords."""

from __future__ import annotations

from typing import Final, TypedDict

from kio.schema.errors import ErrorCode as Code

from fencepost_server.apis.call import Call, Values, optional
from fencepost_server.apis.metadata import cluster_right
from fencepost_server.apis.requests import (
    READ_COMMITTED,
    DeleteRecordsRequest,
    ListOffsetsRequest,
    OffsetForLeaderEpochRequest,
    OffsetPartition,
)
from fencepost_server.data import search
from fencepost_server.security.acl import Operation, Resource

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


async def list_offsets(call: Call, request: ListOffsetsRequest) -> Values:
    """Return offsets by time, or the first and the last."""
    committed = optional(request, "isolation_level", 0) == READ_COMMITTED
    await call.node.open_offsets(str(row.name) for row in request.topics)
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
    log = call.node.partition(name, int(each.partition_index))
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
    await call.node.open_offsets(str(row.topic) for row in request.topics)
    for row in request.topics:
        partitions = []
        for each in row.partitions:
            answer: _EpochEnd = {"partition": int(each.partition)}
            log = call.node.partition(str(row.topic), int(each.partition))
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
