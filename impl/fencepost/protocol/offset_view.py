"""The committed offsets that are visible outside their coordinator (G-DATA-40, G-DATA-41)."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

from .frozen import quick
from .offset_messages import ZERO_ID


@quick
@dataclass(frozen=True, slots=True)
class OffsetView:
    """One stored offset. ``record_offset``: its offset in the log (-1: unknown); other fields are as in the record.
    ``producer_id``: the producer whose transaction it is pending in; None if it is committed."""

    group_id: str
    topic: str
    partition: int
    _: KW_ONLY
    offset: int
    leader_epoch: int
    metadata: str
    commit_timestamp: int
    expire_timestamp: int
    topic_id: bytes = ZERO_ID
    record_offset: int
    producer_id: int | None = None


@quick
@dataclass(frozen=True, slots=True)
class OffsetsView:
    """All data of a coordinator about offsets, each sorted by group, topic, partition (and producer).
    ``open_transactions``: (group, topic, partition, producer id) of each partition with an open transaction
    (O-FETCH-08)."""

    committed: tuple[OffsetView, ...] = ()
    pending: tuple[OffsetView, ...] = ()
    open_transactions: tuple[tuple[str, str, int, int], ...] = ()
