"""Deviations of Kafka in deleting topics."""

from __future__ import annotations

from fencepost.protocol.events import Topic
from fencepost.protocol.logged import Partition
from fencepost.quirks import quirk

from ...kernel.step import Step
from ...kernel.stored_offsets import GroupOffsets
from ...offsets import deletion


@quirk("old_partitions_deleted", of=deletion.of_deleted)
def by_number(step: Step, offsets: GroupOffsets, deleted: list[Topic]) -> list[Partition]:
    """Before 4.3 an offset is deleted by the name of its topic and the number of its partition, whatever id is stored
    with it (V-57)."""
    gone = {(topic.name, number) for topic in deleted for number in range(topic.partitions)}
    return sorted(partition for stored in deletion.stores(offsets) for partition in stored if partition in gone)
