"""The states in which a reader may find a log: as it was written, or after the log cleaner, or during its work.

The cleaner reads the log up to some offset, its *head*, and remembers the last offset of each key there. Then it
rewrites the head from its beginning, segment by segment, without records that a later record of their key in the head
supersedes. A tombstone stays for ``delete.retention.ms`` (a day) after the first cleaning, and may be removed later.
Records behind the head stay. So between any two segments

- a cleaner that is killed leaves the head cleaned up to there, and whole behind;
- a reader that is past this place has read the beginning as it was, and finds the rest cleaned.

Neither happens within a batch: the records of one operation are in one segment. A reader takes much less than a day, so
it finds the tombstones of everything that it has read.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from itertools import pairwise
from random import Random
from typing import NamedTuple

from fencepost.log import outlived
from fencepost.protocol.events import AppendFailed, Event, Load
from fencepost.protocol.records import Record


class Reading(StrEnum):
    """The state in which a log is found."""

    WHOLE = "whole"
    COMPACTED = "compacted"
    BARE = "compacted, without tombstones"
    PARTLY = "compacted up to some offset"
    KILLED = "compaction interrupted"
    WHILE_READ = "compacted while it is read"


class Log(NamedTuple):
    """Records, and the number of the batch that each belongs to, ascending."""

    records: tuple[Record, ...] = ()
    batches: tuple[int, ...] = ()
    next_batch: int = 0

    def after(self, event: Event, written: Sequence[Record]) -> Log:
        """Return the log after one more event, which wrote these records. Records that a load found in the previous log
        (compared by identity) keep their batches; others, with which a trace begins, are a batch each."""
        records, batches, number = self
        if isinstance(event, Load):
            known = {id(record): batch for record, batch in zip(records, batches, strict=True)}
            found = [known.get(id(record)) for record in event.records]
            batches = tuple(number + place if batch is None else batch for place, batch in enumerate(found))
            records, number = tuple(event.records), number + len(found)
        elif isinstance(event, AppendFailed):
            keep = batches.index(batches[-1])
            records, batches = records[:keep], batches[:keep]
        records = (*records, *written)
        batches = (*batches, *(number for _ in written))
        return Log(records, batches, number + 1)

    @property
    def ends(self) -> tuple[int, ...]:
        """The positions between batches, with the beginning and the end of the log."""
        between = (place for place, (one, other) in enumerate(pairwise(self.batches), 1) if one != other)
        return tuple(sorted({0, *between, len(self.records)}))

    @property
    def last_batch(self) -> tuple[Record, ...]:
        return self.records[self.batches.index(self.batches[-1]) :]


def readings(log: Log, rng: Random) -> dict[Reading, tuple[Record, ...]]:
    """Return what a reader may find, once for each state; the positions are drawn."""
    whole = len(log.records)
    ends = log.ends
    head = rng.choice(ends)
    place = rng.choice([end for end in ends if end <= head])
    return {
        Reading.WHOLE: log.records,
        Reading.COMPACTED: _cleaned(log.records, 0, whole, whole),
        Reading.BARE: _cleaned(log.records, 0, whole, whole, tombstones=False),
        Reading.PARTLY: _cleaned(log.records, 0, head, head),
        Reading.KILLED: _cleaned(log.records, 0, place, head, tombstones=rng.random() < 0.5),
        Reading.WHILE_READ: while_read(log.records, place, head),
    }


def compacted(records: Sequence[Record], *, tombstones: bool) -> tuple[Record, ...]:
    """Return the whole log after compaction, with or without its tombstones."""
    return _cleaned(records, 0, len(records), len(records), tombstones=tombstones)


def while_read(records: Sequence[Record], place: int, head: int) -> tuple[Record, ...]:
    """Return the log for a reader that was at ``place`` when the cleaner of ``head`` passed it."""
    return _cleaned(records, place, head, head)


def _cleaned(
    records: Sequence[Record], first: int, end: int, head: int, *, tombstones: bool = True
) -> tuple[Record, ...]:
    """The records with those from ``first`` to ``end`` rewritten by a cleaner that knows the ``head``."""
    plain = [place for place, record in enumerate(records[:head]) if not of_transaction(record)]
    found = outlived([records[place] for place in plain])
    gone = {plain[at] for at in found.superseded}
    if not tombstones:
        held = {record.key for record in records if of_transaction(record)}
        gone.update(plain[at] for at in found.ending if records[plain[at]].key not in held)
    return tuple(record for place, record in enumerate(records) if place not in gone or not first <= place < end)


def of_transaction(record: Record) -> bool:
    """Whether the record was written within a transaction, or ended one. A cleaner may keep all of these, and then the
    tombstones of their keys too; removing them is not drawn."""
    return record.producer is not None
