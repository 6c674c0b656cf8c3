"""Log records of consumer groups: keys and values by Kafka's record types 3 to 8 and 16 (F-REC-03…16).

A field that a release does not write holds its default: metadata hash 0, assignment timestamp 0, assignment epochs
None. Rows of topics are sorted by topic id, partitions by number, topic names by name.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

from .consumer_messages import TopicPartitions
from .frozen import quick
from .messages import Protocol


@quick
@dataclass(frozen=True, slots=True)
class ConsumerGroupMetadataKey:
    """Key of the group epoch: type 3, "GroupEpoch" (F-REC-03)."""

    group: str


@quick
@dataclass(frozen=True, slots=True)
class ConsumerGroupMetadataValue:
    """``metadata_hash`` is signed, 64 bits (G-DATA-30)."""

    epoch: int
    _: KW_ONLY
    metadata_hash: int = 0


@quick
@dataclass(frozen=True, slots=True)
class ConsumerGroupPartitionMetadataKey:
    """Key of the subscribed topics' metadata: type 4, "PartitionMetadata" (F-REC-04)."""

    group: str


@quick
@dataclass(frozen=True, slots=True)
class TopicMetadata:
    """What the coordinator knew of a topic when it computed an assignment."""

    topic_id: bytes
    topic_name: str
    num_partitions: int


@quick
@dataclass(frozen=True, slots=True)
class ConsumerGroupPartitionMetadataValue:
    """Written by 4.0 only (V-34); later releases take it for a mark that such a record exists. By topic name."""

    topics: tuple[TopicMetadata, ...]


@quick
@dataclass(frozen=True, slots=True)
class ConsumerGroupMemberMetadataKey:
    """Key of what a member tells of itself: type 5, "MemberMetadata" (F-REC-05)."""

    group: str
    member_id: str


@quick
@dataclass(frozen=True, slots=True)
class ClassicMemberMetadata:
    """What a member of the classic protocol brings along; its presence says that the member uses that protocol."""

    session_timeout_ms: int
    supported_protocols: tuple[Protocol, ...]


@quick
@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerGroupMemberMetadataValue:
    """What a member tells of itself (F-REC-13). An unset regex is written ``""``."""

    instance_id: str | None
    rack_id: str | None
    client_id: str
    client_host: str
    subscribed_topic_names: tuple[str, ...]
    subscribed_topic_regex: str | None
    rebalance_timeout_ms: int
    server_assignor: str | None
    classic_member_metadata: ClassicMemberMetadata | None = None


@quick
@dataclass(frozen=True, slots=True)
class ConsumerGroupTargetAssignmentMetadataKey:
    """Key of the target's epoch: type 6, "TargetEpoch" (F-REC-06)."""

    group: str


@quick
@dataclass(frozen=True, slots=True)
class ConsumerGroupTargetAssignmentMetadataValue:
    """``assignment_timestamp`` in ms, 0 unknown (G-DATA-32)."""

    assignment_epoch: int
    _: KW_ONLY
    assignment_timestamp: int = 0


@quick
@dataclass(frozen=True, slots=True)
class ConsumerGroupTargetAssignmentMemberKey:
    """Key of a member's target: type 7, "TargetMember" (F-REC-07)."""

    group: str
    member_id: str


@quick
@dataclass(frozen=True, slots=True)
class ConsumerGroupTargetAssignmentMemberValue:
    """The partitions that a member is to have in the end."""

    topic_partitions: tuple[TopicPartitions, ...]


@quick
@dataclass(frozen=True, slots=True)
class ConsumerGroupCurrentMemberAssignmentKey:
    """Key of what a member has: type 8, "CurrentAssignment" (F-REC-08)."""

    group: str
    member_id: str


@quick
@dataclass(frozen=True, slots=True)
class AssignedPartitions:
    """Partitions of one topic with the epoch at which each was assigned, in the same order (M-PE-06, F-REC-08)."""

    topic_id: bytes
    partitions: tuple[int, ...]
    _: KW_ONLY
    assignment_epochs: tuple[int, ...] | None = None


@quick
@dataclass(frozen=True, slots=True)
class ConsumerGroupCurrentMemberAssignmentValue:
    """What a member has, and what it is to give up (F-REC-14). ``state`` is the byte of M-MS-01…04."""

    member_epoch: int
    _: KW_ONLY
    previous_member_epoch: int
    state: int
    assigned_partitions: tuple[AssignedPartitions, ...]
    partitions_pending_revocation: tuple[AssignedPartitions, ...]


@quick
@dataclass(frozen=True, slots=True)
class ConsumerGroupRegularExpressionKey:
    """Key of the topics that a regex matches: type 16, "RegularExpression" (F-REC-16)."""

    group: str
    regular_expression: str


@quick
@dataclass(frozen=True, slots=True)
class ConsumerGroupRegularExpressionValue:
    """``version``: of the metadata image that it was resolved against; ``timestamp`` in ms."""

    topics: tuple[str, ...]
    _: KW_ONLY
    version: int
    timestamp: int
