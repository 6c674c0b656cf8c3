"""One copy of a partition's log, on one broker. Offsets are given once and never again to another record of the copy
that keeps it; a compaction leaves gaps between them.

Every function returns another log and leaves the old one as it was: who reads goes on with what he has while the log is
compacted or cut.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import NamedTuple

from fencepost.protocol.errors import MisuseError
from fencepost.protocol.records import Record


class FencedEpoch(MisuseError):
    """Another leader has been elected since: nothing was appended (F-CONS-07)."""

    def __init__(self, epoch: int, newest: int) -> None:
        over = "is over" if epoch < newest else "was never given"
        super().__init__(f"leader epoch {epoch} {over}, the log knows of {newest}; load again before you write")


class BehindLog(MisuseError):
    """An offset that the log does not have, or that is replicated and may not go."""


class Row(NamedTuple):
    """A record and its offset."""

    offset: int
    record: Record


class Epoch(NamedTuple):
    """From ``start`` on, records were written by the leader of this epoch."""

    number: int
    start: int


@dataclass(frozen=True, slots=True)
class Batch:
    """What was appended at once, all of it or nothing: ``rows`` that are left of it, ascending, ``end`` the offset
    behind it. ``horizon_ms``: from when on the tombstones in it may go; None until a compaction has met them."""

    rows: tuple[Row, ...]
    _: KW_ONLY
    end: int
    horizon_ms: int | None = None


@dataclass(frozen=True, slots=True)
class PartitionLog:
    """``end``: the offset of the next record. ``committed``: the high watermark, below which all is replicated and
    stays. ``clean``: below it no record is left that a later one there supersedes. ``epochs``: of its leaders, in
    order, and ``leader_epoch`` the newest that it knows of, who may have written nothing yet."""

    batches: tuple[Batch, ...] = ()
    _: KW_ONLY
    end: int = 0
    committed: int = 0
    clean: int = 0
    leader_epoch: int = 0
    epochs: tuple[Epoch, ...] = ()

    @property
    def records(self) -> tuple[Record, ...]:
        """What is left, in log order: what a load reads, up to the end and not only to the high watermark
        (F-LOAD-01)."""
        return tuple(row.record for batch in self.batches for row in batch.rows)

    @property
    def replicated_records(self) -> int:
        """How many of these are below the high watermark: what a load says is ``committed``."""
        return sum(row.offset < self.committed for batch in self.batches for row in batch.rows)

    @property
    def rows(self) -> tuple[Row, ...]:
        """The same with their offsets."""
        return tuple(row for batch in self.batches for row in batch.rows)


def of_records(records: Sequence[Record]) -> PartitionLog:
    """A log that was found whole, each record a batch of its own; all of it is replicated."""
    batches = tuple(Batch((Row(place, record),), end=place + 1) for place, record in enumerate(records))
    end = len(batches)
    return PartitionLog(batches, end=end, committed=end, epochs=(Epoch(0, 0),) if batches else ())


def lead(log: PartitionLog, leader_epoch: int) -> PartitionLog:
    """A leader was elected; those before it cannot write here any more. Raises ``FencedEpoch`` for one that is older
    than whom the log knows of (F-LOAD-03)."""
    if leader_epoch < log.leader_epoch:
        raise FencedEpoch(leader_epoch, log.leader_epoch)
    return replace(log, leader_epoch=leader_epoch)


def append(log: PartitionLog, records: Iterable[Record], leader_epoch: int) -> PartitionLog:
    """Adds the records behind the others as one batch: a reader finds all of them or none (F-RT-05). They are there
    from now on, whether anybody waits for them or gave up (F-RT-09), until a fail-over that did not get them.

    Raises ``FencedEpoch`` if another leader has been elected since."""
    if leader_epoch < log.leader_epoch:
        raise FencedEpoch(leader_epoch, log.leader_epoch)
    rows = tuple(Row(log.end + place, record) for place, record in enumerate(records))
    if not rows:
        return log
    end = log.end + len(rows)
    return replace(
        log,
        batches=(*log.batches, Batch(rows, end=end)),
        end=end,
        leader_epoch=leader_epoch,
        epochs=_begun(log.epochs, leader_epoch, log.end),
    )


def replicated(log: PartitionLog, offset: int) -> PartitionLog:
    """All below the offset is on every copy that counts: it may be answered for, and read (F-RT-04, F-RT-11). The high
    watermark never goes back. Raises ``BehindLog`` beyond the end."""
    if not 0 <= offset <= log.end:
        raise BehindLog(f"the log ends at {log.end}, so {offset} cannot be replicated")
    return log if offset <= log.committed else replace(log, committed=offset)


def high_watermark(log: PartitionLog, in_sync: Iterable[int]) -> int:
    """How far all copies that are in sync have come: ``in_sync`` are the ends of those of the followers."""
    return max(log.committed, min((log.end, *in_sync)))


def read(log: PartitionLog, offset: int, most: int | None = None) -> tuple[Row, ...]:
    """The rows from an offset on, or from the first that is left behind it; whole batches, ``most`` of them. Who goes
    on behind the end of the last batch while the log is compacted may find that later records of what he has read are
    gone, but never the last of a key (F-REPLAY-18)."""
    _require_count(most)
    found = [batch for batch in log.batches if batch.rows[-1].offset >= offset]  # none is kept empty
    return tuple(row for batch in found[:most] for row in batch.rows if row.offset >= offset)


def truncate(log: PartitionLog, offset: int) -> PartitionLog:
    """Drops what stands at the offset and behind it. Raises ``BehindLog`` for what is replicated: that no fail-over may
    lose (F-SURV-01), and within a batch, which is there as a whole or not at all."""
    if offset < log.committed:
        raise BehindLog(f"up to {log.committed} the log is replicated; it cannot be cut at {offset}")
    if offset >= log.end:
        return log
    batches = tuple(batch for batch in log.batches if batch.end <= offset)
    cut = log.batches[len(batches)] if len(batches) < len(log.batches) else None
    if cut is not None and cut.rows and cut.rows[0].offset < offset:
        raise BehindLog(f"at {offset} there is no end of a batch")
    epochs = tuple(each for each in log.epochs if each.start < offset)
    return replace(log, batches=batches, end=offset, clean=min(log.clean, offset), epochs=epochs)


def parting(log: PartitionLog, leader: PartitionLog) -> int:
    """Up to which offset a follower's copy is the leader's: the end of the newest epoch that both have, where it ends
    first. By the epochs alone, not by the high watermark, which a follower learns late: cut there it would lose what is
    replicated."""
    theirs = {epoch.number: epoch.start for epoch in leader.epochs}
    for epoch in reversed(log.epochs):
        if theirs.get(epoch.number) == epoch.start:
            return min(_end_of(log, epoch.number), _end_of(leader, epoch.number))
    return 0


def catch_up(log: PartitionLog, leader: PartitionLog, most: int | None = None) -> PartitionLog:
    """A follower's copy after it has cut off what its leader does not have and fetched ``most`` batches of what it
    lacks (all, if None). It learns the high watermark as far as it has come. Raises ``FencedEpoch`` if it knows of a
    newer leader: whom it has left gets nothing replicated any more (F-CONS-07); ``BehindLog`` if it would lose what is
    replicated, which no election of a copy that was in sync brings about."""
    if leader.leader_epoch < log.leader_epoch:
        raise FencedEpoch(leader.leader_epoch, log.leader_epoch)
    _require_count(most)
    mine = truncate(log, parting(log, leader))
    lacking = [batch for batch in leader.batches if batch.end > mine.end]
    fetched = lacking[:most]
    end = leader.end if len(fetched) == len(lacking) else fetched[-1].end if fetched else mine.end
    epochs = tuple(epoch for epoch in leader.epochs if epoch.start < end)
    return replace(
        mine,
        batches=(*mine.batches, *fetched),
        end=end,
        committed=max(mine.committed, min(leader.committed, end)),
        leader_epoch=leader.leader_epoch,
        epochs=epochs,
    )


def _require_count(most: int | None) -> None:
    """Raises ``BehindLog`` for a negative number of batches, which Python would count from the end."""
    if most is not None and most < 0:
        raise BehindLog(f"a read takes 0 batches or more (got {most})")


def _begun(epochs: tuple[Epoch, ...], number: int, start: int) -> tuple[Epoch, ...]:
    return epochs if epochs and epochs[-1].number == number else (*epochs, Epoch(number, start))


def _end_of(log: PartitionLog, number: int) -> int:
    """Where the epoch's records end: where the next one's begin, or at the end of the log."""
    return next((epoch.start for epoch in log.epochs if epoch.number > number), log.end)
