"""What a coordinator keeps of offsets, as flat, hashable tuples (G-DATA-40, G-DATA-41), and what a record does to it.

Which transactions are open is not stored: it follows from what is pending. Offsets live beside the groups, not in them
(G-DATA-42).
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
    """What is kept for a place. Timestamps in ms; ``leader_epoch`` and ``expire_timestamp`` are -1 where there is none,
    ``topic_id`` is zero. ``at``: the offset of the record in the log."""

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
        """What is committed there."""
        for each, stored in self.committed:
            if each == place:
                return stored
        return None

    def of_group(self, group_id: str) -> list[tuple[Place, Stored]]:
        """What is committed in a group."""
        return [row for row in self.committed if row[0].group == group_id]

    def is_pending(self, place: Place) -> bool:
        """Whether an open transaction has an offset there."""
        return any(each == place for each, _, _ in self.pending)

    def pending_in(self, group_id: str) -> list[Place]:
        """Where open transactions have offsets in a group, each place once."""
        return list(dict.fromkeys(place for place, _, _ in self.pending if place.group == group_id))

    def life(self, place: Place) -> str:
        """The state of a place by the machine of an offset's life."""
        if self.is_pending(place):
            return PENDING if self.get(place) is None else PENDING_OVER
        return NO_OFFSET if self.get(place) is None else COMMITTED


class Past(NamedTuple):
    """The offsets as they are for readers until ``behind`` more records are replicated (F-RT-11)."""

    behind: int
    offsets: Offsets


def stored(value: OffsetCommitValue, at: int) -> Stored:
    """What a record keeps."""
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
    """The offsets after one more record of the log (F-REPLAY-02, 03, 05); those of groups change nothing."""
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
    """O-TXN-10: what is committed goes, and all that is pending there."""
    return Offsets(
        tuple([row for row in offsets.committed if row[0] != place]),
        tuple([row for row in offsets.pending if row[0] != place]),
    )


def _ended(offsets: Offsets, producer: int, committed: bool) -> Offsets:
    """O-TXN-08: each offset of the producer takes its place, unless a later record has it, or is dropped."""
    rows = dict(offsets.committed)
    for place, owner, entry in offsets.pending:
        if owner == producer and committed:
            before = rows.get(place)
            if before is None or entry.at > before.at:
                rows[place] = entry
    left = tuple([row for row in offsets.pending if row[1] != producer])
    return Offsets(tuple(sorted(rows.items())), left)
