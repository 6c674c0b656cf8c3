"""The table of record types, with their readers and writers (F-REC-00…F-REC-16)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from fencepost.protocol import consumer_records as r
from fencepost.protocol.offset_records import OffsetCommitKey, OffsetCommitValue
from fencepost.protocol.records import GroupMetadataKey, GroupMetadataValue, RecordKey, RecordValue

from . import classic, consumer, keys, offsets
from .layout import Layout
from .reading import RecordReader


@dataclass(frozen=True, slots=True)
class RecordType:
    """Readers and writers of one record type. They read value versions 0 to ``highest``; ``written`` returns the
    version that a release writes. Keys have no version (F-REC-10)."""

    number: int
    name: str
    key: type
    read_key: Callable[[RecordReader], RecordKey]
    write_key: Callable[[Any], bytes]
    value: type
    read_value: Callable[[RecordReader, int], RecordValue]
    write_value: Callable[[Any, int, Layout], bytes]
    highest: int
    written: Callable[[Any, Layout], int]


_OFFSET: Final = RecordType(
    1, "OffsetCommit",
    OffsetCommitKey, offsets.read_offset_key, offsets.write_offset_key,
    OffsetCommitValue, offsets.read_offset, offsets.write_offset, 4, offsets.written_version,
)  # fmt: skip
#: In the order of their numbers; type 0 is only read (F-REC-00, F-REPLAY-17).
WRITTEN: Final = (
    _OFFSET,
    RecordType(
        2, "GroupMetadata",
        GroupMetadataKey, keys.read_classic_group, keys.write_group,
        GroupMetadataValue, classic.read_group, classic.write_group, 4, classic.written_version,
    ),
    RecordType(
        3, "ConsumerGroupMetadata",
        r.ConsumerGroupMetadataKey, keys.read_consumer_group, keys.write_group,
        r.ConsumerGroupMetadataValue,
        consumer.read_group_epoch, consumer.write_group_epoch, 0, consumer.written_version,
    ),
    RecordType(
        4, "ConsumerGroupPartitionMetadata",
        r.ConsumerGroupPartitionMetadataKey, keys.read_partition_metadata, keys.write_group,
        r.ConsumerGroupPartitionMetadataValue,
        consumer.read_partition_metadata, consumer.write_partition_metadata, 0, consumer.written_version,
    ),
    RecordType(
        5, "ConsumerGroupMemberMetadata",
        r.ConsumerGroupMemberMetadataKey, keys.read_member, keys.write_member,
        r.ConsumerGroupMemberMetadataValue,
        consumer.read_member, consumer.write_member, 0, consumer.written_version,
    ),
    RecordType(
        6, "ConsumerGroupTargetAssignmentMetadata",
        r.ConsumerGroupTargetAssignmentMetadataKey, keys.read_target_epoch, keys.write_group,
        r.ConsumerGroupTargetAssignmentMetadataValue,
        consumer.read_target_epoch, consumer.write_target_epoch, 0, consumer.written_version,
    ),
    RecordType(
        7, "ConsumerGroupTargetAssignmentMember",
        r.ConsumerGroupTargetAssignmentMemberKey, keys.read_target, keys.write_member,
        r.ConsumerGroupTargetAssignmentMemberValue,
        consumer.read_target, consumer.write_target, 0, consumer.written_version,
    ),
    RecordType(
        8, "ConsumerGroupCurrentMemberAssignment",
        r.ConsumerGroupCurrentMemberAssignmentKey, keys.read_assignment, keys.write_member,
        r.ConsumerGroupCurrentMemberAssignmentValue,
        consumer.read_assignment, consumer.write_assignment, 0, consumer.written_version,
    ),
    RecordType(
        16, "ConsumerGroupRegularExpression",
        r.ConsumerGroupRegularExpressionKey, keys.read_regex, keys.write_regex,
        r.ConsumerGroupRegularExpressionValue,
        consumer.read_regex, consumer.write_regex, 0, consumer.written_version,
    ),
)  # fmt: skip
#: By the class of the key.
BY_KEY: Final[Mapping[type, RecordType]] = {each.key: each for each in WRITTEN}


def types_read(layout: Layout) -> Mapping[int, RecordType]:
    """Return the types that a release reads, by number; ``layout.others`` has those that only the release decodes."""
    highest = _OFFSET.highest if layout.legacy_offsets_of_any_version else 0
    legacy = replace(_OFFSET, number=0, name="LegacyOffsetCommit", highest=highest)
    return {each.number: each for each in (legacy, *WRITTEN)}
