"""Log records in words, of every kind."""

from __future__ import annotations

from fencepost.protocol import consumer_records as cr
from fencepost.protocol.consumer_view import MemberState
from fencepost.protocol.offset_records import ControlKey, ControlValue, OffsetCommitKey, OffsetCommitValue
from fencepost.protocol.records import GroupMetadataKey, GroupMetadataValue, Record

from .names import Names, assignment_words

#: The short name of each kind of record (F-REC-02…08, 16).
KINDS: dict[type, str] = {
    GroupMetadataKey: "Group",
    cr.ConsumerGroupMetadataKey: "GroupEpoch",
    cr.ConsumerGroupPartitionMetadataKey: "PartitionMetadata",
    cr.ConsumerGroupMemberMetadataKey: "Member",
    cr.ConsumerGroupTargetAssignmentMetadataKey: "TargetEpoch",
    cr.ConsumerGroupTargetAssignmentMemberKey: "Target",
    cr.ConsumerGroupCurrentMemberAssignmentKey: "Current",
    cr.ConsumerGroupRegularExpressionKey: "Regex",
    OffsetCommitKey: "Offset",
    ControlKey: "TransactionEnd",
}


def record_brief(record: Record) -> str:
    """Return kind and epoch, if it has one; a minus marks a tombstone."""
    kind, value = KINDS[type(record.key)], record.value
    if value is None:
        return f"−{kind}"
    epoch = next((getattr(value, name) for name in _EPOCHS if hasattr(value, name)), None)
    return kind if epoch is None else f"{kind} {epoch}"


_EPOCHS = ("generation", "epoch", "assignment_epoch", "member_epoch")


def record_words(record: Record, names: Names) -> str:
    """Return kind, group and the main values."""
    key = record.key
    whose = getattr(key, "member_id", None) or getattr(key, "regular_expression", None)
    head = f"{KINDS[type(key)]} {key.group}{f' {whose}' if whose else ''}"
    return f"{head}: {'tombstone' if record.value is None else _value(record, names)}"


def _value(record: Record, names: Names) -> str:
    value, key = record.value, record.key
    if isinstance(value, OffsetCommitValue) and isinstance(key, OffsetCommitKey):
        within = f", in the transaction of producer {record.producer.producer_id}" if record.producer else ""
        return f"{key.topic}-{key.partition} at {value.offset}{within}"
    if isinstance(value, ControlValue) and isinstance(key, ControlKey):
        whose = f" of producer {record.producer.producer_id}" if record.producer else ""
        return f"{'commit' if key.committed else 'abort'}{whose}"
    if isinstance(value, GroupMetadataValue):
        rows = ", ".join(f"{row.member_id}={assignment_words(row.assignment)}" for row in value.members)
        return f"generation {value.generation} protocol {value.protocol} leader {value.leader} [{rows}]"
    if isinstance(value, cr.ConsumerGroupMetadataValue):
        return f"epoch {value.epoch}, metadata hash {value.metadata_hash & (1 << 64) - 1:x}"
    if isinstance(value, cr.ConsumerGroupPartitionMetadataValue):
        return ", ".join(f"{topic.topic_name}({topic.num_partitions})" for topic in value.topics) or "no topics"
    if isinstance(value, cr.ConsumerGroupMemberMetadataValue):
        return _member(value)
    if isinstance(value, cr.ConsumerGroupTargetAssignmentMetadataValue):
        return f"assignment epoch {value.assignment_epoch}"
    if isinstance(value, cr.ConsumerGroupTargetAssignmentMemberValue):
        return names.rows(value.topic_partitions)
    if isinstance(value, cr.ConsumerGroupCurrentMemberAssignmentValue):
        revoking = value.partitions_pending_revocation
        return (
            f"epoch {value.member_epoch} (before {value.previous_member_epoch}) {state_name(value.state)}, "
            f"holds {names.rows(value.assigned_partitions)}"
            f"{f', revokes {names.rows(revoking)}' if revoking else ''}"
        )
    assert isinstance(value, cr.ConsumerGroupRegularExpressionValue)
    return f"[{', '.join(value.topics)}] of image {value.version}"


def _member(value: cr.ConsumerGroupMemberMetadataValue) -> str:
    parts = [f"topics [{', '.join(value.subscribed_topic_names)}]"]
    if value.subscribed_topic_regex:
        parts.append(f"regex {value.subscribed_topic_regex}")
    if value.instance_id is not None:
        parts.append(f"instance {value.instance_id}")
    if value.rack_id is not None:
        parts.append(f"rack {value.rack_id}")
    if value.server_assignor:
        parts.append(f"assignor {value.server_assignor}")
    parts.append(f"rebalance {value.rebalance_timeout_ms}")
    if value.classic_member_metadata is not None:
        protocols = ", ".join(row.name for row in value.classic_member_metadata.supported_protocols)
        parts.append(f"classic [{protocols}]")
    return ", ".join(parts)


def state_name(code: int) -> str:
    """Return the state that the byte stands for (M-MS-01…04); an unknown byte is shown as a number."""
    known = {state.value: state.name for state in MemberState}
    return known.get(code, str(code))
