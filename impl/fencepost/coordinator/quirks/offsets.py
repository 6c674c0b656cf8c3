"""Deviations of Kafka with offsets."""

from __future__ import annotations

from fencepost.protocol.events import Topic
from fencepost.protocol.logged import Partition
from fencepost.protocol.offset_messages import ZERO_ID
from fencepost.protocol.offset_records import Producer
from fencepost.quirks import Next, quirk

from ..classic import sync
from ..classic.group import ClassicGroup, GroupDraft, find_incarnation
from ..kernel.replay_context import Replay
from ..kernel.step import Step
from ..kernel.stored_offsets import GroupOffsets
from ..offsets import access, commit, deletion, offset_appliers
from ..offsets.offset_appliers import simple_group

# Commits


@quirk("fault_refused_commit_leaves_group", of=access.begin_simple_group)
def begins_at_once(_: Next[None], step: Step, group_id: str) -> None:
    """Kafka creates the simple group when it checks the committer. If no partition is accepted then, there is a group
    without a record, until the next run of the offset expiry (O-COMMIT-39)."""
    step.memory.appear(simple_group(group_id, step.memory.new_incarnation()))


@quirk("fault_refused_commit_leaves_group", of=sync.not_assigned)
def acts_on_what_is_gone(_: Next[GroupDraft | None], step: Step, group_id: str, incarnation: int) -> GroupDraft | None:
    """Members have joined a group without a record; its first record, their assignment, is not appended, and the group
    is removed. Kafka still lets it prepare a rebalance, whose timer is set by the group's name (O-COMMIT-43)."""
    group = step.memory.undone.get(incarnation)
    if isinstance(group, ClassicGroup):
        return GroupDraft(group)
    return find_incarnation(step, group_id, incarnation)


@quirk("old_no_topic_ids", of=commit.id_to_store)
def stores_no_ids(_: Next[bytes], step: Step, topic_id: bytes, expires: int | None, producer: Producer | None) -> bytes:
    """4.0 stores no topic ids (V-02)."""
    return ZERO_ID


@quirk("old_transactions_without_topic_ids", of=commit.id_to_store)
def stores_no_ids_in_transactions(
    call_next: Next[bytes], step: Step, topic_id: bytes, expires: int | None, producer: Producer | None
) -> bytes:
    """Before 4.4 offsets of transactions have no topic ids (V-129, O-TXN-12)."""
    return call_next(step, topic_id, expires, producer) if producer is None else ZERO_ID


@quirk("fault_expiring_offset_keeps_topic_id", of=commit.id_to_store)
def keeps_id(_: Next[bytes], step: Step, topic_id: bytes, expires: int | None, producer: Producer | None) -> bytes:
    """Kafka keeps the id in memory; after a reload, which reads the record, it is gone (O-COMMIT-14, F-REC-20)."""
    return topic_id


# Deleted topics


@quirk("old_partitions_deleted", of=deletion.of_deleted)
def by_number(_: Next[list[Partition]], step: Step, offsets: GroupOffsets, deleted: list[Topic]) -> list[Partition]:
    """Before 4.3 an offset is deleted by the name of its topic and the number of its partition, whatever id is stored
    with it (V-57)."""
    gone = {(topic.name, number) for topic in deleted for number in range(topic.partitions)}
    return sorted(partition for stored in deletion.stores(offsets) for partition in stored if partition in gone)


# Reads


# Records


@quirk("fault_loaded_offset_makes_group", of=offset_appliers.meet_ownerless)
def makes_group(_: Next[None], work: Replay, group_id: str) -> None:
    """Kafka creates a simple group immediately. If the group's own records begin with a tombstone, which is possible in
    a compacted log, the load may fail because of it (F-REPLAY-04, F-REPLAY-06)."""
    work.put(group_id, offset_appliers.simple_group(group_id, work.new_incarnation()))
