"""Records of consumer groups: types 3 to 8 and 16, each with one version, which is flexible (F-REC-03…F-REC-16)."""

from __future__ import annotations

from functools import partial
from typing import Final

from fencepost.protocol import consumer_records as r
from fencepost.protocol.consumer_messages import TopicPartitions
from fencepost.protocol.messages import Protocol

from .layout import Layout
from .reading import RecordReader
from .writing import (
    NO_TAGS,
    compact_array,
    compact_content,
    compact_nullable_text,
    compact_text,
    int8,
    int32,
    int64,
    numbers,
    tag_zero,
    topic_id,
    varint,
)

#: Meaning of a value without the tag of a classic member: a member of the classic protocol (F-REC-05).
_NO_CLASSIC_TAG: Final[r.ClassicMemberMetadata | None] = r.ClassicMemberMetadata(0, ())
_PRESENT: Final = b"\x01"  #: before a struct that may be null
_ABSENT: Final = b"\x00"


def read_group_epoch(reader: RecordReader, version: int) -> r.ConsumerGroupMetadataValue:
    """Read the group epoch and the metadata hash (F-REC-03)."""
    epoch = reader.int32()
    return r.ConsumerGroupMetadataValue(
        epoch, metadata_hash=reader.tagged(RecordReader.int64 if reader.layout.metadata_hash else None, 0)
    )


def write_group_epoch(value: r.ConsumerGroupMetadataValue, version: int, layout: Layout) -> bytes:
    """Write the group epoch, and the metadata hash unless it is 0 (F-REC-03)."""
    return int32(value.epoch) + _tagged_int64(value.metadata_hash if layout.metadata_hash else 0)


def read_partition_metadata(reader: RecordReader, version: int) -> r.ConsumerGroupPartitionMetadataValue:
    """Read the topics as the coordinator knew them; the racks of partitions are skipped (F-REC-04)."""
    topics = reader.compact_array(_read_topic_metadata)
    reader.no_tags()
    return r.ConsumerGroupPartitionMetadataValue(topics)


def _read_topic_metadata(reader: RecordReader) -> r.TopicMetadata:
    topic = r.TopicMetadata(reader.topic_id(), reader.compact_text(), reader.int32())
    reader.compact_array(_pass_over_racks)
    reader.no_tags()
    return topic


def _pass_over_racks(reader: RecordReader) -> None:
    reader.int32()
    reader.compact_array(RecordReader.compact_text)
    reader.no_tags()


def write_partition_metadata(value: r.ConsumerGroupPartitionMetadataValue, version: int, layout: Layout) -> bytes:
    """Write the topics, without racks of partitions (F-REC-04)."""
    return compact_array(value.topics, _write_topic_metadata) + NO_TAGS


def _write_topic_metadata(topic: r.TopicMetadata) -> bytes:
    partitions = varint(1)  # none
    return (
        topic_id(topic.topic_id) + compact_text(topic.topic_name) + int32(topic.num_partitions) + partitions + NO_TAGS
    )


def read_member(reader: RecordReader, version: int) -> r.ConsumerGroupMemberMetadataValue:
    """Read a member's metadata; a tag with null means that it is not a classic member (F-REC-05, F-REC-13)."""
    return r.ConsumerGroupMemberMetadataValue(
        instance_id=reader.compact_nullable_text(),
        rack_id=reader.compact_nullable_text(),
        client_id=reader.compact_text(),
        client_host=reader.compact_text(),
        subscribed_topic_names=reader.compact_array(RecordReader.compact_text),
        subscribed_topic_regex=reader.compact_nullable_text(),
        rebalance_timeout_ms=reader.int32(),
        server_assignor=reader.compact_nullable_text(),
        classic_member_metadata=reader.tagged(_read_classic, _NO_CLASSIC_TAG),
    )


def _read_classic(reader: RecordReader) -> r.ClassicMemberMetadata | None:
    if reader.varint() <= 0:
        return None
    classic = r.ClassicMemberMetadata(reader.int32(), reader.compact_array(_read_protocol))
    reader.no_tags()
    return classic


def _read_protocol(reader: RecordReader) -> Protocol:
    protocol = Protocol(reader.compact_text(), reader.compact_content())
    reader.no_tags()
    return protocol


def write_member(value: r.ConsumerGroupMemberMetadataValue, version: int, layout: Layout) -> bytes:
    """Write a member's metadata, in the order of F-REC-13; a tag says that it is not a classic member (F-REC-05)."""
    return b"".join(
        (
            compact_nullable_text(value.instance_id),
            compact_nullable_text(value.rack_id),
            compact_text(value.client_id),
            compact_text(value.client_host),
            compact_array(value.subscribed_topic_names, compact_text),
            compact_nullable_text(value.subscribed_topic_regex),
            int32(value.rebalance_timeout_ms),
            compact_nullable_text(value.server_assignor),
            _classic_tag(value.classic_member_metadata),
        )
    )


def _classic_tag(classic: r.ClassicMemberMetadata | None) -> bytes:
    """Return the tag: null for a member that is not classic; none for a classic member without data (F-REC-05)."""
    if classic is None:
        return tag_zero(_ABSENT)
    if classic == _NO_CLASSIC_TAG:
        return NO_TAGS
    protocols = compact_array(classic.supported_protocols, _write_protocol)
    return tag_zero(_PRESENT + int32(classic.session_timeout_ms) + protocols + NO_TAGS)


def _write_protocol(protocol: Protocol) -> bytes:
    return compact_text(protocol.name) + compact_content(protocol.metadata) + NO_TAGS


def read_target_epoch(reader: RecordReader, version: int) -> r.ConsumerGroupTargetAssignmentMetadataValue:
    """Read the target's epoch and timestamp (F-REC-06)."""
    epoch = reader.int32()
    return r.ConsumerGroupTargetAssignmentMetadataValue(
        epoch, assignment_timestamp=reader.tagged(RecordReader.int64 if reader.layout.assignment_timestamp else None, 0)
    )


def write_target_epoch(value: r.ConsumerGroupTargetAssignmentMetadataValue, version: int, layout: Layout) -> bytes:
    """Write the target's epoch, and its timestamp unless it is 0 (F-REC-06)."""
    timestamp = value.assignment_timestamp if layout.assignment_timestamp else 0
    return int32(value.assignment_epoch) + _tagged_int64(timestamp)


def read_target(reader: RecordReader, version: int) -> r.ConsumerGroupTargetAssignmentMemberValue:
    """Read a member's target, by topic (F-REC-07)."""
    rows = reader.compact_array(_read_partitions)
    reader.no_tags()
    return r.ConsumerGroupTargetAssignmentMemberValue(rows)


def _read_partitions(reader: RecordReader) -> TopicPartitions:
    row = TopicPartitions(reader.topic_id(), reader.numbers())
    reader.no_tags()
    return row


def write_target(value: r.ConsumerGroupTargetAssignmentMemberValue, version: int, layout: Layout) -> bytes:
    """Write a member's target, by topic (F-REC-07)."""
    return compact_array(value.topic_partitions, _write_partitions) + NO_TAGS


def _write_partitions(row: TopicPartitions) -> bytes:
    return topic_id(row.topic_id) + numbers(row.partitions) + NO_TAGS


def read_assignment(reader: RecordReader, version: int) -> r.ConsumerGroupCurrentMemberAssignmentValue:
    """Read a member's partitions, and those that it must revoke (F-REC-14)."""
    value = r.ConsumerGroupCurrentMemberAssignmentValue(
        reader.int32(),
        previous_member_epoch=reader.int32(),
        state=reader.int8(),
        assigned_partitions=reader.compact_array(_read_assigned),
        partitions_pending_revocation=reader.compact_array(_read_assigned),
    )
    reader.no_tags()
    return value


def _read_assigned(reader: RecordReader) -> r.AssignedPartitions:
    """Read one topic; an empty list of epochs becomes None, which means the same (F-REC-08)."""
    held, partitions = reader.topic_id(), reader.numbers()
    epochs = reader.tagged(RecordReader.nullable_numbers if reader.layout.assignment_epochs else None, None)
    return r.AssignedPartitions(held, partitions, assignment_epochs=epochs or None)


def write_assignment(value: r.ConsumerGroupCurrentMemberAssignmentValue, version: int, layout: Layout) -> bytes:
    """Write a member's partitions, and those that it must revoke (F-REC-14)."""
    write = partial(_write_assigned, layout=layout)
    return b"".join(
        (
            int32(value.member_epoch),
            int32(value.previous_member_epoch),
            int8(value.state),
            compact_array(value.assigned_partitions, write),
            compact_array(value.partitions_pending_revocation, write),
            NO_TAGS,
        )
    )


def _write_assigned(row: r.AssignedPartitions, layout: Layout) -> bytes:
    """Write one topic; without epochs there is no tag (F-REC-08)."""
    epochs = row.assignment_epochs if layout.assignment_epochs else None
    return topic_id(row.topic_id) + numbers(row.partitions) + (tag_zero(numbers(epochs)) if epochs else NO_TAGS)


def read_regex(reader: RecordReader, version: int) -> r.ConsumerGroupRegularExpressionValue:
    """Read the topics that a regex matches (F-REC-16)."""
    value = r.ConsumerGroupRegularExpressionValue(
        reader.compact_array(RecordReader.compact_text), version=reader.int64(), timestamp=reader.int64()
    )
    reader.no_tags()
    return value


def write_regex(value: r.ConsumerGroupRegularExpressionValue, version: int, layout: Layout) -> bytes:
    """Write the topics that a regex matches (F-REC-16)."""
    return compact_array(value.topics, compact_text) + int64(value.version) + int64(value.timestamp) + NO_TAGS


def _tagged_int64(number: int) -> bytes:
    """Write a tagged number whose default is 0."""
    return tag_zero(int64(number)) if number else NO_TAGS


def written_version(value: object, layout: Layout) -> int:
    """Return the only version, 0 (F-REC-10)."""
    return 0
