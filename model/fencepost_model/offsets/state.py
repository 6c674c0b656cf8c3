"""The offsets of a coordinator, as flat, hashable tuples (G-DATA-40, G-DATA-41), and how a record changes them.

Open transactions are not stored: they follow from the pending offsets. Offsets are stored beside the groups, not in
them (G-DATA-42).
"""

from __future__ import annotations

from typing import NamedTuple

from fencepost.protocol.offset_records import ControlKey, OffsetCommitKey, OffsetCommitValue
from fencepost.protocol.records import Record

from ..machines import COMMITTED, NO_OFFSET, PENDING, PENDING_OVER


class Place(NamedTuple):
    """A partition of a topic, in a group."""

    group: str
    topic: str
    partition: int


class Stored(NamedTuple):
    """The entry of a place. Timestamps in ms. ``leader_epoch`` and ``expire_timestamp`` are -1 if absent, ``topic_id``
    is zero. ``at``: the offset of the record in the log."""

    offset: int
    leader_epoch: int
    metadata: str
    commit_timestamp: int
    expire_timestamp: int
    topic_id: bytes
    at: int


class Offsets(NamedTuple):
    """All offsets of a coordinator, ascending. ``pending``: with the producer id whose transaction is open."""

    committed: tuple[tuple[Place, Stored], ...] = ()
    pending: tuple[tuple[Place, int, Stored], ...] = ()

    def get(self, place: Place) -> Stored | None:
        """Return the committed offset of the place, or None."""
        for each, stored in self.committed:
            if each == place:
                return stored
        return None

    def of_group(self, group_id: str) -> list[tuple[Place, Stored]]:
        """Return the committed offsets of a group."""
        return [row for row in self.committed if row[0].group == group_id]

    def is_pending(self, place: Place) -> bool:
        """Return whether an open transaction has an offset there."""
        return any(each == place for each, _, _ in self.pending)

    def pending_in(self, group_id: str) -> list[Place]:
        """Return the places of a group where open transactions have offsets, each once."""
        return list(dict.fromkeys(place for place, _, _ in self.pending if place.group == group_id))

    def life(self, place: Place) -> str:
        """Return the state of a place by the machine of an offset."""
        if self.is_pending(place):
            return PENDING if self.get(place) is None else PENDING_OVER
        return NO_OFFSET if self.get(place) is None else COMMITTED


class Past(NamedTuple):
    """The offsets as they are for readers until ``behind`` more records are replicated (F-RT-11)."""

    behind: int
    offsets: Offsets


def stored(value: OffsetCommitValue, at: int) -> Stored:
    """Return the entry of a record."""
    return Stored(
        value.offset,
        value.leader_epoch,
        value.metadata,
        value.commit_timestamp,
        value.expire_timestamp,
        value.topic_id,
        at,
    )


def replay(offsets: Offsets, record: Record, at: int) -> Offsets:
    """Return the offsets after one more record of the log (F-REPLAY-02, 03, 05). Records of groups change nothing."""
    key, value = record.key, record.value
    if isinstance(key, ControlKey):
        return offsets if record.producer is None else _ended(offsets, record.producer.producer_id, key.committed)
    if not isinstance(key, OffsetCommitKey):
        return offsets
    place = Place(key.group, key.topic, key.partition)
    if not isinstance(value, OffsetCommitValue):
        return _removed(offsets, place)
    entry = stored(value, at)
    if record.producer is None:
        return offsets._replace(committed=_put(offsets.committed, place, entry))
    producer = record.producer.producer_id
    rows = {(each, owner): kept for each, owner, kept in offsets.pending}  # O-TXN-09
    rows[place, producer] = entry
    return offsets._replace(pending=tuple([(*row, rows[row]) for row in sorted(rows)]))


def _put(rows: tuple[tuple[Place, Stored], ...], place: Place, entry: Stored) -> tuple[tuple[Place, Stored], ...]:
    found = dict(rows)
    found[place] = entry
    return tuple(sorted(found.items()))


def _removed(offsets: Offsets, place: Place) -> Offsets:
    """Remove the committed offset of a place and all pending ones (O-TXN-10)."""
    return Offsets(
        tuple([row for row in offsets.committed if row[0] != place]),
        tuple([row for row in offsets.pending if row[0] != place]),
    )


def _ended(offsets: Offsets, producer: int, committed: bool) -> Offsets:
    """End the producer's transaction: each offset is committed, unless a later record is, or is dropped (O-TXN-08)."""
    rows = dict(offsets.committed)
    for place, owner, entry in offsets.pending:
        if owner == producer and committed:
            before = rows.get(place)
            if before is None or entry.at > before.at:
                rows[place] = entry
    left = tuple([row for row in offsets.pending if row[1] != producer])
    return Offsets(tuple(sorted(rows.items())), left)
