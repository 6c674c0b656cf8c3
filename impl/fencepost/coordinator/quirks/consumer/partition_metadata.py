"""The topics as a group of 4.0 knows them: a record of each topic with its id and its number of partitions. Later
releases keep a hash (V-34)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from fencepost.protocol.consumer_records import (
    ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataValue,
    TopicMetadata,
)
from fencepost.protocol.records import Record
from fencepost.quirks import quirk

from ...consumer import group_epoch, records, replay, target, views
from ...consumer.group import ConsumerGroup
from ...kernel.replay import Replay
from ...kernel.state import CoordinatorState
from ...kernel.step import Step
from ...kernel.topics import TopicImage


@quirk("old_partition_metadata", of=group_epoch.look_at_topics)
def compares_partitions(step: Step, group: ConsumerGroup, names: Iterable[str]) -> group_epoch.TopicsLook:
    """4.0 compares the topics themselves, without their racks, and writes them before the epoch (V-34, V-35)."""
    rows = partitions_of(step.topics, names)
    if rows == (group.partition_metadata or ()):
        return group_epoch.TopicsLook(0, False, [])
    return group_epoch.TopicsLook(0, True, [records.partition_metadata(group.group_id, rows)])


@quirk("old_partition_metadata", of=group_epoch.drop_partition_metadata)
def nothing_superseded(step: Step, group: ConsumerGroup) -> list[Record]:
    """4.0 works from this record; later releases, which no longer read it, delete it (M-META-08)."""
    return []


@quirk("old_partition_metadata", of=target.partitions_known)
def knows_its_last_look(step: Step, group: ConsumerGroup, written: Sequence[Record]) -> Mapping[bytes, int]:
    """An assignor of 4.0 sees the topics as the group last looked at them, in this request or before. A look whose
    records were not appended is forgotten, but its deadline is not. Until that passes, every request that needs a
    target may find a topic that the group does not know, and fail (V-136, F-RT-08, M-META-02)."""
    looks = [record.value for record in written if isinstance(record.value, ConsumerGroupPartitionMetadataValue)]
    rows = looks[-1].topics if looks else group.partition_metadata or ()
    return {row.topic_id: row.num_partitions for row in rows}


@quirk("old_partition_metadata", of=replay.metadata_hash)
def reads_no_hash(replayed: Replay, value: ConsumerGroupMetadataValue) -> int:
    """4.0 does not know the field in which a later release has written a hash (V-71)."""
    return 0


@quirk("old_partition_metadata", of=views.has_partition_metadata)
def has_topics(state: CoordinatorState, group: ConsumerGroup) -> bool:
    """4.0 reads the record; an empty one counts as none (V-34, V-72)."""
    return bool(group.partition_metadata)


def partitions_of(topics: TopicImage, names: Iterable[str]) -> tuple[TopicMetadata, ...]:
    """The record of 4.0 for those of these topics that exist (G-DATA-23)."""
    known = topics.by_name
    return tuple(
        TopicMetadata(known[name].topic_id, name, known[name].partitions) for name in sorted(names) if name in known
    )
