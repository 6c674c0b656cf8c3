"""Steps that involve offsets, in coordinators of several sizes."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

from fencepost.coordinator import CoordinatorState
from fencepost.protocol.events import Event, Request
from fencepost.protocol.messages import RequestBody
from fencepost.protocol.offset_messages import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetDeleteRequest,
    OffsetDeleteRequestTopic,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    TxnOffsetCommitRequest,
    WriteTxnMarkerRequest,
)
from fencepost.protocol.offset_records import OffsetCommitKey, OffsetCommitValue, Producer
from fencepost.protocol.records import Record

from .sizes import Case, coordinator

_AT = 1_000
_TOPIC = "topic-0"
_FEW = 4  #: partitions of a group, if there are many groups


def many_groups(size: int) -> CoordinatorState:
    """Return simple groups, with an offset for each of a few partitions, and one pending."""
    records = [_record(f"group-{number}", index) for number in range(size) for index in range(_FEW)]
    records += [_record(f"group-{number}", 0, Producer(number, 0)) for number in range(size)]
    return coordinator(records, partitions=_FEW)


def many_partitions(size: int) -> CoordinatorState:
    """Return one simple group with an offset for each of so many partitions."""
    return coordinator([_record("group-0", index) for index in range(size)], partitions=size)


def _record(group_id: str, index: int, producer: Producer | None = None) -> Record:
    return Record(OffsetCommitKey(group_id, _TOPIC, index), OffsetCommitValue(7, commit_timestamp=_AT), producer)


def _requests(version: int, bodies: Iterator[RequestBody]) -> Iterator[Event]:
    for number, body in zip(count(1), bodies, strict=False):
        yield Request(_AT, id=number, version=version, client_id="c", client_host="/h", body=body)


def _spread(size: int) -> Iterator[int]:
    return (number * 7919 % size for number in count())


def _one(index: int) -> tuple[OffsetCommitRequestTopic, ...]:
    partition = OffsetCommitRequestPartition(index, committed_offset=8)
    return (OffsetCommitRequestTopic(name=_TOPIC, partitions=(partition,)),)


def commits_of_groups(size: int) -> Iterator[Event]:
    return _requests(9, (OffsetCommitRequest(f"group-{number}", topics=_one(1)) for number in _spread(size)))


def commits_of_partitions(size: int) -> Iterator[Event]:
    return _requests(9, (OffsetCommitRequest("group-0", topics=_one(number)) for number in _spread(size)))


def new_groups(size: int) -> Iterator[Event]:
    return _requests(9, (OffsetCommitRequest(f"new-{number}", topics=_one(1)) for number in count()))


def fetches_of_groups(size: int) -> Iterator[Event]:
    wanted = (OffsetFetchRequestTopic(name=_TOPIC, partition_indexes=(0, 1)),)
    return _requests(
        9,
        (OffsetFetchRequest((OffsetFetchRequestGroup(f"group-{number}", topics=wanted),)) for number in _spread(size)),
    )


def fetches_of_partitions(size: int) -> Iterator[Event]:
    return _requests(
        9,
        (
            OffsetFetchRequest(
                (
                    OffsetFetchRequestGroup(
                        "group-0", topics=(OffsetFetchRequestTopic(name=_TOPIC, partition_indexes=(number,)),)
                    ),
                ),
                require_stable=True,
            )
            for number in _spread(size)
        ),
    )


def deletions_of_partitions(size: int) -> Iterator[Event]:
    return _requests(
        0,
        (
            OffsetDeleteRequest("group-0", (OffsetDeleteRequestTopic(name=_TOPIC, partition_indexes=(number,)),))
            for number in _spread(size)
        ),
    )


def transactions_of_groups(size: int) -> Iterator[Event]:
    return _requests(
        5,
        (
            TxnOffsetCommitRequest(
                f"group-{number}", transactional_id="t", producer_id=number, producer_epoch=0, topics=_one(2)
            )
            for number in _spread(size)
        ),
    )


def markers_of_groups(size: int) -> Iterator[Event]:
    return _requests(
        2,
        (
            WriteTxnMarkerRequest(producer_id=number, producer_epoch=0, coordinator_epoch=0, committed=True)
            for number in _spread(size)
        ),
    )


_GROUPS = (10, 100, 1_000, 10_000, 100_000)
_PARTITIONS = (10, 100, 1_000, 10_000)

OFFSET_CASES = (
    Case("groups with offsets", "OffsetCommit", _GROUPS, many_groups, commits_of_groups),
    Case("groups with offsets", "OffsetCommit to a new group", _GROUPS, many_groups, new_groups),
    Case("groups with offsets", "OffsetFetch", _GROUPS, many_groups, fetches_of_groups),
    Case("groups with offsets", "TxnOffsetCommit", _GROUPS, many_groups, transactions_of_groups),
    Case("groups with offsets", "end of a transaction", _GROUPS, many_groups, markers_of_groups),
    Case("partitions of a group", "OffsetCommit", _PARTITIONS, many_partitions, commits_of_partitions),
    Case("partitions of a group", "OffsetFetch, stable", _PARTITIONS, many_partitions, fetches_of_partitions),
    Case("partitions of a group", "OffsetDelete", _PARTITIONS, many_partitions, deletions_of_partitions),
)
