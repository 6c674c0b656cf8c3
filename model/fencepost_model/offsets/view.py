"""The model's offsets in the shared vocabulary (``fencepost.protocol.offset_view``)."""

from __future__ import annotations

from fencepost.protocol.offset_view import OffsetsView, OffsetView

from .state import Offsets, Place, Stored


def view(offsets: Offsets) -> OffsetsView:
    """Return the view of all offsets."""
    return OffsetsView(
        committed=tuple([_row(place, entry, None) for place, entry in offsets.committed]),
        pending=tuple([_row(place, entry, producer) for place, producer, entry in offsets.pending]),
        open_transactions=tuple([(*place, producer) for place, producer, _ in offsets.pending]),
    )


def _row(place: Place, entry: Stored, producer: int | None) -> OffsetView:
    return OffsetView(
        *place,
        offset=entry.offset,
        leader_epoch=entry.leader_epoch,
        metadata=entry.metadata,
        commit_timestamp=entry.commit_timestamp,
        expire_timestamp=entry.expire_timestamp,
        topic_id=entry.topic_id,
        record_offset=entry.at,
        producer_id=producer,
    )
