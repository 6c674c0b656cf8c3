"""Requests of a consumer to partition leaders, and their responses: contents only, without wire encoding.

The host transfers and decodes records, and passes them with their offsets.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TypeAlias

from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.frozen import quick
from fencepost.protocol.partitions import TopicPartition


@quick
@dataclass(frozen=True, slots=True)
class ListOffsetsRequest:
    """Request for the first offset at or after a time, per partition; -2 is the log's start, -1 its end (K-POS-03)."""

    timestamps: tuple[tuple[TopicPartition, int], ...]
    _: KW_ONLY
    read_committed: bool = False


@quick
@dataclass(frozen=True, slots=True)
class ListedOffset:
    """Result for one partition. ``offset`` -1: there is none at or after that time."""

    partition: TopicPartition
    _: KW_ONLY
    offset: int = -1
    leader_epoch: int | None = None
    error_code: ErrorCode = ErrorCode.NONE


@quick
@dataclass(frozen=True, slots=True)
class ListOffsetsResponse:
    """One entry for each partition."""

    partitions: tuple[ListedOffset, ...]


@quick
@dataclass(frozen=True, slots=True)
class AskedEpoch:
    """``current_leader_epoch``: the leader's epoch that the client knows; ``leader_epoch``: that of the last record
    read."""

    partition: TopicPartition
    _: KW_ONLY
    current_leader_epoch: int
    leader_epoch: int


@quick
@dataclass(frozen=True, slots=True)
class OffsetForLeaderEpochRequest:
    """Request for the end of the leader's log in an epoch (K-POS-07)."""

    partitions: tuple[AskedEpoch, ...]


@quick
@dataclass(frozen=True, slots=True)
class EpochEnd:
    """End of the log in the requested epoch, or in the largest one below it; -1 if undefined."""

    partition: TopicPartition
    _: KW_ONLY
    leader_epoch: int = -1
    end_offset: int = -1
    error_code: ErrorCode = ErrorCode.NONE


@quick
@dataclass(frozen=True, slots=True)
class OffsetForLeaderEpochResponse:
    """One entry for each partition."""

    partitions: tuple[EpochEnd, ...]


@quick
@dataclass(frozen=True, slots=True)
class FetchFrom:
    """A partition to fetch: the first offset, and the leader epoch that the client knows."""

    partition: TopicPartition
    _: KW_ONLY
    offset: int
    current_leader_epoch: int | None = None


@quick
@dataclass(frozen=True, slots=True)
class FetchRequest:
    """Request to one broker for records, its partitions in fetch order (K-FETCH-01)."""

    partitions: tuple[FetchFrom, ...]


@quick
@dataclass(frozen=True, slots=True)
class Record:
    """One record; the host chooses the type of ``value``."""

    offset: int
    value: object = None
    leader_epoch: int | None = None


@quick
@dataclass(frozen=True, slots=True)
class FetchedPartition:
    """The result for one partition. ``next_offset``: start of the next fetch, after control records and compacted
    offsets; None: after the last record. Negative offsets are unknown."""

    partition: TopicPartition
    _: KW_ONLY
    records: tuple[Record, ...] = ()
    next_offset: int | None = None
    high_watermark: int = -1
    last_stable_offset: int = -1
    log_start_offset: int = -1
    preferred_replica: int | None = None
    error_code: ErrorCode = ErrorCode.NONE


@quick
@dataclass(frozen=True, slots=True)
class FetchResponse:
    """Partitions in the order in which polls return them."""

    partitions: tuple[FetchedPartition, ...] = ()
    error_code: ErrorCode = ErrorCode.NONE


LeaderRequest: TypeAlias = ListOffsetsRequest | OffsetForLeaderEpochRequest | FetchRequest
LeaderResponse: TypeAlias = ListOffsetsResponse | OffsetForLeaderEpochResponse | FetchResponse
