"""What a consumer asks of partition leaders, and their answers; contents alone, free of wire encoding.

How records come over the network and are unpacked is the host's: it hands in records with their offsets.
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
    """Asks for the first offset at or after a time, per partition; -2 is the log's beginning, -1 its end (K-POS-03)."""

    timestamps: tuple[tuple[TopicPartition, int], ...]
    _: KW_ONLY
    read_committed: bool = False


@quick
@dataclass(frozen=True, slots=True)
class ListedOffset:
    """``offset`` -1: there is none at or after that time."""

    partition: TopicPartition
    _: KW_ONLY
    offset: int = -1
    leader_epoch: int | None = None
    error_code: ErrorCode = ErrorCode.NONE


@quick
@dataclass(frozen=True, slots=True)
class ListOffsetsResponse:
    """An entry for each partition."""

    partitions: tuple[ListedOffset, ...]


@quick
@dataclass(frozen=True, slots=True)
class AskedEpoch:
    """``current_leader_epoch``: of the leader as the client knows it; ``leader_epoch``: of the last record read."""

    partition: TopicPartition
    _: KW_ONLY
    current_leader_epoch: int
    leader_epoch: int


@quick
@dataclass(frozen=True, slots=True)
class OffsetForLeaderEpochRequest:
    """Asks where the leader's log ends for an epoch (K-POS-07)."""

    partitions: tuple[AskedEpoch, ...]


@quick
@dataclass(frozen=True, slots=True)
class EpochEnd:
    """Where the log ends for the epoch asked, or the largest below it; -1 where it is undefined."""

    partition: TopicPartition
    _: KW_ONLY
    leader_epoch: int = -1
    end_offset: int = -1
    error_code: ErrorCode = ErrorCode.NONE


@quick
@dataclass(frozen=True, slots=True)
class OffsetForLeaderEpochResponse:
    """An entry for each partition."""

    partitions: tuple[EpochEnd, ...]


@quick
@dataclass(frozen=True, slots=True)
class FetchFrom:
    """A partition to fetch: from where on, and the leader's epoch as the client knows it."""

    partition: TopicPartition
    _: KW_ONLY
    offset: int
    current_leader_epoch: int | None = None


@quick
@dataclass(frozen=True, slots=True)
class FetchRequest:
    """Asks one broker for records, its partitions in fetch order (K-FETCH-01)."""

    partitions: tuple[FetchFrom, ...]


@quick
@dataclass(frozen=True, slots=True)
class Record:
    """One record; ``value`` is whatever the host makes of it."""

    offset: int
    value: object = None
    leader_epoch: int | None = None


@quick
@dataclass(frozen=True, slots=True)
class FetchedPartition:
    """What came of one partition. ``next_offset``: where the next fetch begins, beyond control records and what was
    compacted; None: after the last record. Negative offsets are unknown ones."""

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
    """Partitions in the order in which they are to be handed out."""

    partitions: tuple[FetchedPartition, ...] = ()
    error_code: ErrorCode = ErrorCode.NONE


LeaderRequest: TypeAlias = ListOffsetsRequest | OffsetForLeaderEpochRequest | FetchRequest
LeaderResponse: TypeAlias = ListOffsetsResponse | OffsetForLeaderEpochResponse | FetchResponse
