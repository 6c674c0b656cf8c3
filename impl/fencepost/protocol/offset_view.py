"""What can be seen of committed offsets from outside their coordinator (G-DATA-40, G-DATA-41)."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

from .frozen import quick
from .offset_messages import ZERO_ID


@quick
@dataclass(frozen=True, slots=True)
class OffsetView:
    """One stored offset. ``record_offset`` is its place in the log (-1: not known); others as in the record.
    ``producer_id`` is that of the transaction that it is pending in, None for a committed one."""

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
    """All that a coordinator keeps of offsets, each sorted by group, topic, partition (and producer).
    ``open_transactions`` has (group, topic, partition, producer id) of each partition that a transaction holds open
    (O-FETCH-08)."""

    committed: tuple[OffsetView, ...] = ()
    pending: tuple[OffsetView, ...] = ()
    open_transactions: tuple[tuple[str, str, int, int], ...] = ()
