"""Requests and responses of the offset APIs, in Kafka's field names (snake case).

As in ``messages``, these are contents, free of wire encoding. A topic is named by its name up to a certain version of
each API and by its id from there on; on the wire the other one is missing. Here ``name`` is then ``""`` and
``topic_id`` zero (sixteen zero bytes): what a request leaves out the coordinator looks up in its image of the topics
(O-COMMIT-02, O-COMMIT-03), and an answer carries what the request did.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Final

from .errors import ErrorCode
from .frozen import quick

ZERO_ID: Final = bytes(16)
#: What is read where nothing is committed (O-FETCH-03, O-FETCH-06).
NO_OFFSET: Final = -1


@quick
@dataclass(frozen=True, slots=True)
class OffsetCommitRequestPartition:
    """What is to be committed for a partition. ``committed_leader_epoch`` is -1 where none is known, and before v6."""

    partition_index: int
    _: KW_ONLY
    committed_offset: int
    committed_leader_epoch: int = -1
    committed_metadata: str | None = None


@quick
@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetCommitRequestTopic:
    """Partitions of one topic: named by ``name``, from OffsetCommit v10 and TxnOffsetCommit v6 on by ``topic_id``."""

    name: str = ""
    topic_id: bytes = ZERO_ID
    partitions: tuple[OffsetCommitRequestPartition, ...]


@quick
@dataclass(frozen=True, slots=True)
class OffsetCommitRequest:
    """A member, or somebody who only has the group's name, commits offsets: OffsetCommit v2-10 (O-COMMIT-01).

    ``generation_id_or_member_epoch`` is -1 for who is no member. ``retention_time_ms`` is carried by v2-4 only; -1 is
    the broker's (O-COMMIT-14)."""

    group_id: str
    _: KW_ONLY
    generation_id_or_member_epoch: int = -1
    member_id: str = ""
    group_instance_id: str | None = None
    retention_time_ms: int = -1
    topics: tuple[OffsetCommitRequestTopic, ...]


@quick
@dataclass(frozen=True, slots=True)
class OffsetCommitResponsePartition:
    """What has come of one partition of a commit, or of a deletion."""

    partition_index: int
    error_code: ErrorCode


@quick
@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetCommitResponseTopic:
    """The partitions of one topic, named as the request named it."""

    name: str = ""
    topic_id: bytes = ZERO_ID
    partitions: tuple[OffsetCommitResponsePartition, ...]


@quick
@dataclass(frozen=True, slots=True)
class OffsetCommitResponse:
    """An answer for each partition; an error of the group stands at each of them (O-COMMIT-07, G-WIRE-31)."""

    topics: tuple[OffsetCommitResponseTopic, ...]


@quick
@dataclass(frozen=True, slots=True)
class TxnOffsetCommitRequest:
    """A producer commits offsets with its transaction: TxnOffsetCommit v0-6 (O-TXN-01). Group fields exist from v3
    on."""

    group_id: str
    _: KW_ONLY
    transactional_id: str
    producer_id: int
    producer_epoch: int
    generation_id: int = -1
    member_id: str = ""
    group_instance_id: str | None = None
    topics: tuple[OffsetCommitRequestTopic, ...]


@quick
@dataclass(frozen=True, slots=True)
class TxnOffsetCommitResponse:
    """An answer for each partition, as that of a commit."""

    topics: tuple[OffsetCommitResponseTopic, ...]


@quick
@dataclass(frozen=True, slots=True, kw_only=True)
class WriteTxnMarkerRequest:
    """A transaction ends: what the transaction's coordinator has one partition of the offsets topic write (O-TXN-08).

    It is what WriteTxnMarkers says of *this* partition; the host takes the request apart by partition. No client sends
    it, so it has no version of its own: ``Request.version`` is that of WriteTxnMarkers (1-2).
    ``transaction_version`` is 0 before v2."""

    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    committed: bool
    transaction_version: int = 0


@quick
@dataclass(frozen=True, slots=True)
class WriteTxnMarkerResponse:
    """Whether the marker is in the log."""

    error_code: ErrorCode


@quick
@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetFetchRequestTopic:
    """Partitions of one topic that are asked for: named by ``name``, from v10 on by ``topic_id``."""

    name: str = ""
    topic_id: bytes = ZERO_ID
    partition_indexes: tuple[int, ...]


@quick
@dataclass(frozen=True, slots=True)
class OffsetFetchRequestGroup:
    """What is asked of one group; ``topics`` None asks for all. Member fields exist from v9 on (O-FETCH-05)."""

    group_id: str
    _: KW_ONLY
    member_id: str | None = None
    member_epoch: int = -1
    topics: tuple[OffsetFetchRequestTopic, ...] | None = None


@quick
@dataclass(frozen=True, slots=True)
class OffsetFetchRequest:
    """Asks what is committed: OffsetFetch v1-10. Before v8 a request names one group, which then is the only one here.
    ``require_stable`` exists from v7 on (O-FETCH-07, O-FETCH-08)."""

    groups: tuple[OffsetFetchRequestGroup, ...]
    _: KW_ONLY
    require_stable: bool = False


@quick
@dataclass(frozen=True, slots=True)
class OffsetFetchResponsePartition:
    """What is committed for one partition; offset -1 where nothing is (O-FETCH-06)."""

    partition_index: int
    _: KW_ONLY
    committed_offset: int = NO_OFFSET
    committed_leader_epoch: int = -1
    metadata: str | None = ""
    error_code: ErrorCode = ErrorCode.NONE


@quick
@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetFetchResponseTopic:
    """The partitions of one topic, named as the version does."""

    name: str = ""
    topic_id: bytes = ZERO_ID
    partitions: tuple[OffsetFetchResponsePartition, ...]


@quick
@dataclass(frozen=True, slots=True)
class OffsetFetchResponseGroup:
    """The answer for one group. Where an error of the group stands depends on the version (O-FETCH-11): in v1 at each
    partition, with ``error_code`` NONE here; else here, without topics."""

    group_id: str
    _: KW_ONLY
    topics: tuple[OffsetFetchResponseTopic, ...] = ()
    error_code: ErrorCode = ErrorCode.NONE


@quick
@dataclass(frozen=True, slots=True)
class OffsetFetchResponse:
    """An entry for each group that was asked for, in that order; before v8 the only one."""

    groups: tuple[OffsetFetchResponseGroup, ...]


@quick
@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetDeleteRequestTopic:
    """Partitions of one topic whose offsets are to go."""

    name: str
    partition_indexes: tuple[int, ...]


@quick
@dataclass(frozen=True, slots=True)
class OffsetDeleteRequest:
    """An operator deletes committed offsets: OffsetDelete v0 (G-WIRE-07, O-DEL-01)."""

    group_id: str
    topics: tuple[OffsetDeleteRequestTopic, ...]


@quick
@dataclass(frozen=True, slots=True)
class OffsetDeleteResponse:
    """An answer for each partition; with an error of the group there are none."""

    error_code: ErrorCode
    topics: tuple[OffsetCommitResponseTopic, ...] = ()
