"""The records that a consumer group writes (F-REC-03…08, F-REC-16). Topics are sorted by id, partitions, names."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from fencepost.protocol.consumer_messages import TopicPartitions
from fencepost.protocol.consumer_records import (
    AssignedPartitions,
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
    TopicMetadata,
)
from fencepost.protocol.records import Record

from ..kernel.rules import Rules
from .group import ConsumerGroup, ConsumerGroupMember, Holding, Resolution, Share

#: The value of a missing assignment timestamp (G-DATA-32).
NO_TIMESTAMP: Final = 0


def group_epoch(group_id: str, epoch: int, metadata_hash: int) -> Record:
    """The record of the group's epoch and the hash of its topics (F-REC-03)."""
    return Record(ConsumerGroupMetadataKey(group_id), ConsumerGroupMetadataValue(epoch, metadata_hash=metadata_hash))


def partition_metadata(group_id: str, topics: tuple[TopicMetadata, ...] | None) -> Record:
    """The record of the group's topics in 4.0; None gives the tombstone (M-META-08)."""
    value = None if topics is None else ConsumerGroupPartitionMetadataValue(topics)
    return Record(ConsumerGroupPartitionMetadataKey(group_id), value)


def member_metadata(group_id: str, member: ConsumerGroupMember) -> Record:
    """The record with the values that a member sends (F-REC-05, F-REC-13)."""
    return Record(
        ConsumerGroupMemberMetadataKey(group_id, member.member_id),
        ConsumerGroupMemberMetadataValue(
            instance_id=member.instance_id,
            rack_id=member.rack_id,
            client_id=member.client_id,
            client_host=member.client_host,
            subscribed_topic_names=tuple(sorted(member.topic_names)),
            subscribed_topic_regex=member.regex,
            rebalance_timeout_ms=member.rebalance_timeout,
            server_assignor=member.assignor,
            classic_member_metadata=member.classic,
        ),
    )


def target_epoch(group_id: str, epoch: int, at_ms: int) -> Record:
    """The record of the epoch of the target assignment (F-REC-06)."""
    return Record(
        ConsumerGroupTargetAssignmentMetadataKey(group_id),
        ConsumerGroupTargetAssignmentMetadataValue(epoch, assignment_timestamp=at_ms),
    )


def target_member(group_id: str, member_id: str, share: Share) -> Record:
    """The record of one member's target (F-REC-07)."""
    return Record(
        ConsumerGroupTargetAssignmentMemberKey(group_id, member_id),
        ConsumerGroupTargetAssignmentMemberValue(share_rows(share)),
    )


def current_assignment(rules: Rules, group_id: str, member: ConsumerGroupMember) -> Record:
    """The record of the partitions that a member has, and those that it has to revoke (F-REC-08, F-REC-14)."""
    return Record(
        ConsumerGroupCurrentMemberAssignmentKey(group_id, member.member_id),
        ConsumerGroupCurrentMemberAssignmentValue(
            member.epoch,
            previous_member_epoch=member.previous_epoch,
            state=member.state.value,
            assigned_partitions=_written(rules, member.assigned),
            partitions_pending_revocation=_written(rules, member.revoking),
        ),
    )


def regular_expression(group_id: str, regex: str, resolution: Resolution | None) -> Record:
    """The record of a resolved regex; None gives the tombstone."""
    value = None
    if resolution is not None:
        topics = tuple(sorted(resolution.topics))
        value = ConsumerGroupRegularExpressionValue(topics, version=resolution.version, timestamp=resolution.timestamp)
    return Record(ConsumerGroupRegularExpressionKey(group_id, regex), value)


def removed_member(group_id: str, member_id: str) -> list[Record]:
    """The tombstones of a member, in the order that replay needs (M-LEAVE-03, F-REPLAY-07)."""
    return [
        Record(ConsumerGroupCurrentMemberAssignmentKey(group_id, member_id), None),
        Record(ConsumerGroupTargetAssignmentMemberKey(group_id, member_id), None),
        Record(ConsumerGroupMemberMetadataKey(group_id, member_id), None),
    ]


def removed_group(group: ConsumerGroup, replaced: Mapping[str, str] | None = None) -> list[Record]:
    """The tombstones of a whole group (F-ORD-09, F-ORD-16). ``replaced``: new ids of members by their old ones
    (X-DOWN-21)."""
    name = group.group_id
    members = sorted((replaced or {}).get(member_id, member_id) for member_id in group.members)
    return [
        *(Record(ConsumerGroupCurrentMemberAssignmentKey(name, member), None) for member in members),
        *(Record(ConsumerGroupTargetAssignmentMemberKey(name, member), None) for member in members),
        Record(ConsumerGroupTargetAssignmentMetadataKey(name), None),
        *(Record(ConsumerGroupMemberMetadataKey(name, member), None) for member in members),
        *(regular_expression(name, regex, None) for regex in sorted(group.resolved)),
        partition_metadata(name, None),
        Record(ConsumerGroupMetadataKey(name), None),
    ]


def share_rows(share: Mapping[bytes, Collection[int]]) -> tuple[TopicPartitions, ...]:
    """Partitions as records and answers list them: topics by id, partitions ascending."""
    return tuple(TopicPartitions(topic_id, tuple(sorted(share[topic_id]))) for topic_id in sorted(share))


def _written(rules: Rules, holding: Holding) -> tuple[AssignedPartitions, ...]:
    """Kafka writes no epochs for a topic without held partitions; an upgrade can lead to such a topic (X-UP-05)."""
    return tuple(
        row if row.partitions else AssignedPartitions(row.topic_id, ()) for row in holding_rows(rules, holding)
    )


def holding_rows(rules: Rules, holding: Holding) -> tuple[AssignedPartitions, ...]:
    """The partitions of a member, each with the epoch at which it was assigned (F-REC-08)."""
    if not rules.has_assignment_epochs:
        return tuple(AssignedPartitions(topic_id, tuple(sorted(holding[topic_id]))) for topic_id in sorted(holding))
    rows = []
    for topic_id in sorted(holding):
        partitions = tuple(sorted(holding[topic_id]))
        rows.append(
            AssignedPartitions(
                topic_id, partitions, assignment_epochs=tuple(holding[topic_id][each] for each in partitions)
            )
        )
    return tuple(rows)
