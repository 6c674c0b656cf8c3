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
    """Value of the group epoch. ``metadata_hash``: signed, 64 bits (G-DATA-30)."""

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
    """A topic as the coordinator knew it when it computed an assignment."""

    topic_id: bytes
    topic_name: str
    num_partitions: int


@quick
@dataclass(frozen=True, slots=True)
class ConsumerGroupPartitionMetadataValue:
    """Written only by 4.0 (V-34); later releases use it only as a mark that such a record exists. By topic name."""

    topics: tuple[TopicMetadata, ...]


@quick
@dataclass(frozen=True, slots=True)
class ConsumerGroupMemberMetadataKey:
    """Key of a member's metadata: type 5, "MemberMetadata" (F-REC-05)."""

    group: str
    member_id: str


@quick
@dataclass(frozen=True, slots=True)
class ClassicMemberMetadata:
    """Data of a member that uses the classic protocol; it is present only for such members."""

    session_timeout_ms: int
    supported_protocols: tuple[Protocol, ...]


@quick
@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerGroupMemberMetadataValue:
    """Metadata that a member has sent (F-REC-13). An unset regex is written as ``""``."""

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
    """Value of the target's epoch. ``assignment_timestamp`` in ms; 0: unknown (G-DATA-32)."""

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
    """The target assignment of a member."""

    topic_partitions: tuple[TopicPartitions, ...]


@quick
@dataclass(frozen=True, slots=True)
class ConsumerGroupCurrentMemberAssignmentKey:
    """Key of a member's current assignment: type 8, "CurrentAssignment" (F-REC-08)."""

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
    """A member's partitions, and those that it must revoke (F-REC-14). ``state``: the byte of M-MS-01…04."""

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
    """The resolved topics. ``version``: of the metadata image that was used; ``timestamp`` in ms."""

    topics: tuple[str, ...]
    _: KW_ONLY
    version: int
    timestamp: int
