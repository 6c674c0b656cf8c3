"""Keys of groups, after the type: texts in the fixed encoding (F-REC-10). Keys of offsets are in ``offsets``."""

from __future__ import annotations

from typing import Protocol

from fencepost.protocol import consumer_records as r
from fencepost.protocol.records import GroupMetadataKey

from .reading import RecordReader
from .writing import text


class _OfGroup(Protocol):
    @property
    def group(self) -> str: ...


class _OfMember(Protocol):
    @property
    def group(self) -> str: ...

    @property
    def member_id(self) -> str: ...


def write_group(key: _OfGroup) -> bytes:
    """Write the group id: types 2, 3, 4 and 6."""
    return text(key.group)


def write_member(key: _OfMember) -> bytes:
    """Write group id and member id: types 5, 7 and 8."""
    return text(key.group) + text(key.member_id)


def write_regex(key: r.ConsumerGroupRegularExpressionKey) -> bytes:
    """Write group id and regex: type 16 (F-REC-16)."""
    return text(key.group) + text(key.regular_expression)


def read_classic_group(reader: RecordReader) -> GroupMetadataKey:
    """Read the key of a classic group: type 2 (F-REC-02)."""
    return GroupMetadataKey(reader.text())


def read_consumer_group(reader: RecordReader) -> r.ConsumerGroupMetadataKey:
    """Read the key of a group epoch: type 3 (F-REC-03)."""
    return r.ConsumerGroupMetadataKey(reader.text())


def read_partition_metadata(reader: RecordReader) -> r.ConsumerGroupPartitionMetadataKey:
    """Read the key of a group's topic metadata: type 4 (F-REC-04)."""
    return r.ConsumerGroupPartitionMetadataKey(reader.text())


def read_member(reader: RecordReader) -> r.ConsumerGroupMemberMetadataKey:
    """Read the key of a member's metadata: type 5 (F-REC-05)."""
    return r.ConsumerGroupMemberMetadataKey(reader.text(), reader.text())


def read_target_epoch(reader: RecordReader) -> r.ConsumerGroupTargetAssignmentMetadataKey:
    """Read the key of the target's epoch: type 6 (F-REC-06)."""
    return r.ConsumerGroupTargetAssignmentMetadataKey(reader.text())


def read_target(reader: RecordReader) -> r.ConsumerGroupTargetAssignmentMemberKey:
    """Read the key of a member's target: type 7 (F-REC-07)."""
    return r.ConsumerGroupTargetAssignmentMemberKey(reader.text(), reader.text())


def read_assignment(reader: RecordReader) -> r.ConsumerGroupCurrentMemberAssignmentKey:
    """Read the key of a member's current assignment: type 8 (F-REC-08)."""
    return r.ConsumerGroupCurrentMemberAssignmentKey(reader.text(), reader.text())


def read_regex(reader: RecordReader) -> r.ConsumerGroupRegularExpressionKey:
    """Read the key of the topics that a regex matches: type 16 (F-REC-16)."""
    return r.ConsumerGroupRegularExpressionKey(reader.text(), reader.text())
