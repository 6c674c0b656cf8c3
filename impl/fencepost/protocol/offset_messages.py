"""Requests and responses of the offset APIs, in Kafka's field names (snake case).

As in ``messages``, these are contents without wire encoding. Each API identifies a topic by name up to some version,
and by id after it; the wire has only one of the two. Here ``name`` is then ``""``, or ``topic_id`` zero (sixteen zero
bytes). The coordinator completes a request from its image of the topics (O-COMMIT-02, O-COMMIT-03), and a response
contains the same one as the request.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Final

from .errors import ErrorCode
from .frozen import quick

ZERO_ID: Final = bytes(16)
#: The offset in a response if nothing is committed (O-FETCH-03, O-FETCH-06).
NO_OFFSET: Final = -1


@quick
@dataclass(frozen=True, slots=True)
class OffsetCommitRequestPartition:
    """The offset to commit for a partition. ``committed_leader_epoch`` is -1 if unknown, and before v6."""

    partition_index: int
    _: KW_ONLY
    committed_offset: int
    committed_leader_epoch: int = -1
    committed_metadata: str | None = None


@quick
@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetCommitRequestTopic:
    """Partitions of one topic, identified by ``name``; from OffsetCommit v10 and TxnOffsetCommit v6 on by
    ``topic_id``."""

    name: str = ""
    topic_id: bytes = ZERO_ID
    partitions: tuple[OffsetCommitRequestPartition, ...]


@quick
@dataclass(frozen=True, slots=True)
class OffsetCommitRequest:
    """A member, or any client that uses the group's name, commits offsets: OffsetCommit v2-10 (O-COMMIT-01).

    ``generation_id_or_member_epoch`` is -1 for a client that is not a member. ``retention_time_ms`` exists only in
    v2-4; -1 means the broker's (O-COMMIT-14)."""

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
    """The result for one partition of a commit or of a deletion."""

    partition_index: int
    error_code: ErrorCode


@quick
@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetCommitResponseTopic:
    """Partitions of one topic, identified as in the request."""

    name: str = ""
    topic_id: bytes = ZERO_ID
    partitions: tuple[OffsetCommitResponsePartition, ...]


@quick
@dataclass(frozen=True, slots=True)
class OffsetCommitResponse:
    """A result for each partition; an error of the group is repeated in each (O-COMMIT-07, G-WIRE-31)."""

    topics: tuple[OffsetCommitResponseTopic, ...]


@quick
@dataclass(frozen=True, slots=True)
class TxnOffsetCommitRequest:
    """A producer commits offsets in its transaction: TxnOffsetCommit v0-6 (O-TXN-01). Group fields exist from v3 on."""

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
    """A result for each partition, as for a commit."""

    topics: tuple[OffsetCommitResponseTopic, ...]


@quick
@dataclass(frozen=True, slots=True, kw_only=True)
class WriteTxnMarkerRequest:
    """The end of a transaction: the transaction coordinator writes a marker to one partition of the offsets topic
    (O-TXN-08).

    It is the part of WriteTxnMarkers for *this* partition; the host splits the request by partition. No client sends
    it, so it has no separate version: ``Request.version`` is that of WriteTxnMarkers (1-2).
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
    """Requested partitions of one topic, identified by ``name``, from v10 on by ``topic_id``."""

    name: str = ""
    topic_id: bytes = ZERO_ID
    partition_indexes: tuple[int, ...]


@quick
@dataclass(frozen=True, slots=True)
class OffsetFetchRequestGroup:
    """The request for one group; ``topics`` None means all. Member fields exist from v9 on (O-FETCH-05)."""

    group_id: str
    _: KW_ONLY
    member_id: str | None = None
    member_epoch: int = -1
    topics: tuple[OffsetFetchRequestTopic, ...] | None = None


@quick
@dataclass(frozen=True, slots=True)
class OffsetFetchRequest:
    """Request for committed offsets: OffsetFetch v1-10. Before v8 a request has one group, which is the only one here.
    ``require_stable`` exists from v7 on (O-FETCH-07, O-FETCH-08)."""

    groups: tuple[OffsetFetchRequestGroup, ...]
    _: KW_ONLY
    require_stable: bool = False


@quick
@dataclass(frozen=True, slots=True)
class OffsetFetchResponsePartition:
    """The committed offset of one partition; -1 if there is none (O-FETCH-06)."""

    partition_index: int
    _: KW_ONLY
    committed_offset: int = NO_OFFSET
    committed_leader_epoch: int = -1
    metadata: str | None = ""
    error_code: ErrorCode = ErrorCode.NONE


@quick
@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetFetchResponseTopic:
    """Partitions of one topic, identified as in that version."""

    name: str = ""
    topic_id: bytes = ZERO_ID
    partitions: tuple[OffsetFetchResponsePartition, ...]


@quick
@dataclass(frozen=True, slots=True)
class OffsetFetchResponseGroup:
    """The result for one group. The place of a group error depends on the version (O-FETCH-11): in v1 it is in each
    partition, with ``error_code`` NONE here; else it is here, without topics."""

    group_id: str
    _: KW_ONLY
    topics: tuple[OffsetFetchResponseTopic, ...] = ()
    error_code: ErrorCode = ErrorCode.NONE


@quick
@dataclass(frozen=True, slots=True)
class OffsetFetchResponse:
    """An entry for each requested group, in that order; before v8 the only one."""

    groups: tuple[OffsetFetchResponseGroup, ...]


@quick
@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetDeleteRequestTopic:
    """Partitions of one topic whose offsets are deleted."""

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
    """A result for each partition; none if the group has an error."""

    error_code: ErrorCode
    topics: tuple[OffsetCommitResponseTopic, ...] = ()


#: The newest versions that identify topics by name; newer ones do so by id (G-WIRE-05, G-WIRE-06).
NEWEST_BY_NAME: Final[Mapping[type, int]] = {OffsetCommitRequest: 9, OffsetFetchRequest: 9}
