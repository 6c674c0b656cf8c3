"""Keys of groups, behind their type: texts in the fixed encoding (F-REC-10). Those of offsets are in ``offsets``."""

from __future__ import annotations

from typing import Protocol

from fencepost.protocol import consumer_records as r
from fencepost.protocol.records import GroupMetadataKey

from .reading import Reader
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
    """The group's id: types 2, 3, 4 and 6."""
    return text(key.group)


def write_member(key: _OfMember) -> bytes:
    """The group's id and the member's: types 5, 7 and 8."""
    return text(key.group) + text(key.member_id)


def write_regex(key: r.ConsumerGroupRegularExpressionKey) -> bytes:
    """The group's id and the regex: type 16 (F-REC-16)."""
    return text(key.group) + text(key.regular_expression)


def read_classic_group(reader: Reader) -> GroupMetadataKey:
    """The key of a classic group: type 2 (F-REC-02)."""
    return GroupMetadataKey(reader.text())


def read_consumer_group(reader: Reader) -> r.ConsumerGroupMetadataKey:
    """The key of a group's epoch: type 3 (F-REC-03)."""
    return r.ConsumerGroupMetadataKey(reader.text())


def read_partition_metadata(reader: Reader) -> r.ConsumerGroupPartitionMetadataKey:
    """The key of what a group knew of its topics: type 4 (F-REC-04)."""
    return r.ConsumerGroupPartitionMetadataKey(reader.text())


def read_member(reader: Reader) -> r.ConsumerGroupMemberMetadataKey:
    """The key of what a member tells of itself: type 5 (F-REC-05)."""
    return r.ConsumerGroupMemberMetadataKey(reader.text(), reader.text())


def read_target_epoch(reader: Reader) -> r.ConsumerGroupTargetAssignmentMetadataKey:
    """The key of the target's epoch: type 6 (F-REC-06)."""
    return r.ConsumerGroupTargetAssignmentMetadataKey(reader.text())


def read_target(reader: Reader) -> r.ConsumerGroupTargetAssignmentMemberKey:
    """The key of a member's target: type 7 (F-REC-07)."""
    return r.ConsumerGroupTargetAssignmentMemberKey(reader.text(), reader.text())


def read_assignment(reader: Reader) -> r.ConsumerGroupCurrentMemberAssignmentKey:
    """The key of what a member has: type 8 (F-REC-08)."""
    return r.ConsumerGroupCurrentMemberAssignmentKey(reader.text(), reader.text())


def read_regex(reader: Reader) -> r.ConsumerGroupRegularExpressionKey:
    """The key of the topics that a regex matches: type 16 (F-REC-16)."""
    return r.ConsumerGroupRegularExpressionKey(reader.text(), reader.text())
