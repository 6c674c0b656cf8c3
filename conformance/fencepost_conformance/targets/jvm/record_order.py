"""Records with their lists sorted: topics by id, partitions and names ascending.

Kafka writes the lists of a record in the order of a hash map.
"""

from __future__ import annotations

from dataclasses import replace
from functools import singledispatch
from typing import Any

from fencepost.protocol import consumer_records as r
from fencepost.protocol.records import Record


def in_order(record: Record) -> Record:
    """Return the record with its lists in order; the same object if it has none."""
    value = record.value
    sorted_value = _sorted(value)
    return record if sorted_value is value else replace(record, value=sorted_value)


@singledispatch
def _sorted(value: Any) -> Any:
    return value


@_sorted.register
def _(value: r.ConsumerGroupMemberMetadataValue) -> r.ConsumerGroupMemberMetadataValue:
    return replace(value, subscribed_topic_names=tuple(sorted(value.subscribed_topic_names)))


@_sorted.register
def _(value: r.ConsumerGroupPartitionMetadataValue) -> r.ConsumerGroupPartitionMetadataValue:
    return r.ConsumerGroupPartitionMetadataValue(tuple(sorted(value.topics, key=lambda row: row.topic_name)))


@_sorted.register
def _(value: r.ConsumerGroupTargetAssignmentMemberValue) -> r.ConsumerGroupTargetAssignmentMemberValue:
    rows = [replace(row, partitions=tuple(sorted(row.partitions))) for row in value.topic_partitions]
    return r.ConsumerGroupTargetAssignmentMemberValue(tuple(sorted(rows, key=lambda row: row.topic_id)))


@_sorted.register
def _(value: r.ConsumerGroupCurrentMemberAssignmentValue) -> r.ConsumerGroupCurrentMemberAssignmentValue:
    return replace(
        value,
        assigned_partitions=_assigned(value.assigned_partitions),
        partitions_pending_revocation=_assigned(value.partitions_pending_revocation),
    )


@_sorted.register
def _(value: r.ConsumerGroupRegularExpressionValue) -> r.ConsumerGroupRegularExpressionValue:
    return replace(value, topics=tuple(sorted(value.topics)))


def _assigned(rows: tuple[r.AssignedPartitions, ...]) -> tuple[r.AssignedPartitions, ...]:
    """Sort the rows; each partition keeps its epoch (F-REC-08)."""
    return tuple(sorted(map(_one, rows), key=lambda row: row.topic_id))


def _one(row: r.AssignedPartitions) -> r.AssignedPartitions:
    if row.assignment_epochs is None:
        return replace(row, partitions=tuple(sorted(row.partitions)))
    pairs = sorted(zip(row.partitions, row.assignment_epochs, strict=True))
    return replace(row, partitions=tuple(p for p, _ in pairs), assignment_epochs=tuple(e for _, e in pairs))
