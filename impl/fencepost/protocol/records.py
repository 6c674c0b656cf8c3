"""Log records of groups: a key, and a value or None (a tombstone). F-REC-02, F-REC-12, F-REC-20.

Records of consumer groups are in ``consumer_records``, those of offsets in ``offset_records``. Every key has the
group's id in ``group``.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TypeAlias

from .consumer_records import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupPartitionMetadataValue,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
)
from .frozen import quick
from .offset_records import ControlKey, ControlValue, OffsetCommitKey, OffsetCommitValue, Producer


@quick
@dataclass(frozen=True, slots=True)
class GroupMetadataKey:
    """Key of a classic group's whole state: type 2 (F-REC-02)."""

    group: str


@quick
@dataclass(frozen=True, slots=True)
class GroupMetadataMember:
    """A member in the record of its group; of its protocols, only the selected one's metadata."""

    member_id: str
    _: KW_ONLY
    group_instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout: int
    session_timeout: int
    subscription: bytes
    assignment: bytes


@quick
@dataclass(frozen=True, slots=True)
class GroupMetadataValue:
    """Value version 3, which Kafka 4.x writes (F-REC-12, F-REC-20)."""

    protocol_type: str
    _: KW_ONLY
    generation: int
    protocol: str | None
    leader: str | None
    current_state_timestamp: int
    members: tuple[GroupMetadataMember, ...] = ()


RecordKey: TypeAlias = (
    GroupMetadataKey
    | ConsumerGroupMetadataKey
    | ConsumerGroupPartitionMetadataKey
    | ConsumerGroupMemberMetadataKey
    | ConsumerGroupTargetAssignmentMetadataKey
    | ConsumerGroupTargetAssignmentMemberKey
    | ConsumerGroupCurrentMemberAssignmentKey
    | ConsumerGroupRegularExpressionKey
    | OffsetCommitKey
    | ControlKey
)
RecordValue: TypeAlias = (
    GroupMetadataValue
    | ConsumerGroupMetadataValue
    | ConsumerGroupPartitionMetadataValue
    | ConsumerGroupMemberMetadataValue
    | ConsumerGroupTargetAssignmentMetadataValue
    | ConsumerGroupTargetAssignmentMemberValue
    | ConsumerGroupCurrentMemberAssignmentValue
    | ConsumerGroupRegularExpressionValue
    | OffsetCommitValue
    | ControlValue
)


@quick
@dataclass(frozen=True, slots=True)
class Record:
    """A record. ``value`` None is a tombstone (G-VOC-18); else its type is the one that belongs to the key's.
    ``producer``: the producer that wrote it in a transaction; only offsets and control records have one (O-TXN-07)."""

    key: RecordKey
    value: RecordValue | None
    producer: Producer | None = None

    @property
    def group_metadata(self) -> GroupMetadataValue | None:
        """The classic group in the record; None for a tombstone, and for records of other kinds."""
        value = self.value
        return value if isinstance(value, GroupMetadataValue) else None
