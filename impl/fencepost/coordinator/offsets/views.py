"""Stored offsets as they can be seen from outside."""

from __future__ import annotations

from collections.abc import Iterator
from operator import itemgetter

from fencepost.protocol.logged import Partition, StoredOffset
from fencepost.protocol.offset_view import OffsetsView, OffsetView

from ..kernel.stored_offsets import GroupOffsets, OffsetStore


def view(store: OffsetStore, group_id: str | None = None) -> OffsetsView:
    """All stored offsets, or those of one group, each kind sorted (G-DATA-40, G-DATA-41)."""
    if group_id is None:
        groups = sorted(store.groups.items())
    else:
        found = store.groups.get(group_id)
        groups = [] if found is None else [(group_id, found)]
    pending = [(name, *row) for name, group in groups for row in sorted(_pending(group), key=itemgetter(0, 1))]
    return OffsetsView(
        committed=tuple(
            _offset(name, partition, group.committed[partition], None)
            for name, group in groups
            for partition in sorted(group.committed)
        ),
        pending=tuple(_offset(name, partition, stored, producer) for name, partition, producer, stored in pending),
        open_transactions=tuple((name, *partition, producer) for name, partition, producer, _ in pending),
    )


def committed(store: OffsetStore, group_id: str, partition: Partition) -> OffsetView | None:
    """The committed offset of one partition; None if there is none."""
    group = store.groups.get(group_id)
    stored = None if group is None else group.committed.get(partition)
    return None if stored is None else _offset(group_id, partition, stored, None)


def _pending(group: GroupOffsets) -> Iterator[tuple[Partition, int, StoredOffset]]:
    for producer, offsets in group.pending.items():
        for partition, stored in offsets.items():
            yield partition, producer, stored


def _offset(group_id: str, where: Partition, stored: StoredOffset, producer: int | None) -> OffsetView:
    topic, partition = where
    value = stored.value
    return OffsetView(
        group_id,
        topic,
        partition,
        offset=value.offset,
        leader_epoch=value.leader_epoch,
        metadata=value.metadata,
        commit_timestamp=value.commit_timestamp,
        expire_timestamp=value.expire_timestamp,
        topic_id=value.topic_id,
        record_offset=stored.place,
        producer_id=producer,
    )
