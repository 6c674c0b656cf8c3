"""The records that end a consumer group."""

from __future__ import annotations

from fencepost.protocol.consumer_records import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMetadataKey,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMetadataKey,
)
from fencepost.protocol.records import Record, RecordKey

from .state import ConsumerGroup


def of_group(group_id: str, group: ConsumerGroup) -> list[Record]:
    """Return the tombstones of a whole group with its members, in order (F-ORD-09, F-ORD-16, X-DOWN-02)."""
    ids = [member.member_id for member in group.members]
    keys: list[RecordKey] = [
        *[ConsumerGroupCurrentMemberAssignmentKey(group_id, member_id) for member_id in ids],
        *[ConsumerGroupTargetAssignmentMemberKey(group_id, member_id) for member_id in ids],
        ConsumerGroupTargetAssignmentMetadataKey(group_id),
        *[ConsumerGroupMemberMetadataKey(group_id, member_id) for member_id in ids],
        *[ConsumerGroupRegularExpressionKey(group_id, row.regex) for row in group.regexes],
        ConsumerGroupPartitionMetadataKey(group_id),
        ConsumerGroupMetadataKey(group_id),
    ]
    return [Record(key, None) for key in keys]
