"""One copy of a partition's log, on one broker. Within a copy, no two records ever get the same offset; a compaction
leaves gaps.

Every function returns a new log and leaves the old one unchanged. So a reader can continue with its log while another
is compacted or truncated.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import NamedTuple

from fencepost.protocol.errors import MisuseError
from fencepost.protocol.records import Record


class FencedEpoch(MisuseError):
    """Another leader was elected since, so nothing was appended (F-CONS-07)."""

    def __init__(self, epoch: int, newest: int) -> None:
        over = "is no longer the newest" if epoch < newest else "was never assigned"
        super().__init__(f"leader epoch {epoch} {over} (newest: {newest}); load the log again before you write")


class BehindLog(MisuseError):
    """The log does not have the offset, or the records there are replicated and cannot be removed."""


class StoredRecord(NamedTuple):
    """A record and its offset."""

    offset: int
    record: Record


class Epoch(NamedTuple):
    """Records from offset ``start`` on are from the leader of this epoch."""

    number: int
    start: int


@dataclass(frozen=True, slots=True)
class Batch:
    """Records that were appended together, all or none. ``rows``: those that remain, ascending; ``end``: the offset
    after them. ``horizon_ms``: when its tombstones can be deleted; None until a compaction has seen them."""

    rows: tuple[StoredRecord, ...]
    _: KW_ONLY
    end: int
    horizon_ms: int | None = None


@dataclass(frozen=True, slots=True)
class PartitionLog:
    """``end``: the offset of the next record. ``committed``: the high watermark; all records below it are replicated
    and stay. ``clean``: no record below it is superseded by a later one below it. ``epochs``: those of its leaders, in
    order; ``leader_epoch``: the newest known one, whose leader may have written nothing yet."""

    batches: tuple[Batch, ...] = ()
    _: KW_ONLY
    end: int = 0
    committed: int = 0
    clean: int = 0
    leader_epoch: int = 0
    epochs: tuple[Epoch, ...] = ()

    @property
    def records(self) -> tuple[Record, ...]:
        """The remaining records, in log order. A load reads all of them, not only up to the high watermark
        (F-LOAD-01)."""
        return tuple(row.record for batch in self.batches for row in batch.rows)

    @property
    def replicated_records(self) -> int:
        """The number of records below the high watermark, for ``Load.committed``."""
        return sum(row.offset < self.committed for batch in self.batches for row in batch.rows)

    @property
    def rows(self) -> tuple[StoredRecord, ...]:
        """The remaining records with their offsets."""
        return tuple(row for batch in self.batches for row in batch.rows)


def of_records(records: Sequence[Record]) -> PartitionLog:
    """Create a log from existing records, each in its own batch; all of them are replicated."""
    batches = tuple(Batch((StoredRecord(place, record),), end=place + 1) for place, record in enumerate(records))
    end = len(batches)
    return PartitionLog(batches, end=end, committed=end, epochs=(Epoch(0, 0),) if batches else ())


def lead(log: PartitionLog, leader_epoch: int) -> PartitionLog:
    """Start a leader epoch; earlier leaders can no longer write here. Raises ``FencedEpoch`` for an epoch that is older
    than the newest known one (F-LOAD-03)."""
    if leader_epoch < log.leader_epoch:
        raise FencedEpoch(leader_epoch, log.leader_epoch)
    return replace(log, leader_epoch=leader_epoch)


def append(log: PartitionLog, records: Iterable[Record], leader_epoch: int) -> PartitionLog:
    """Append the records as one batch: a reader sees all of them or none (F-RT-05). They stay, even if the caller that
    waits for them gives up (F-RT-09), until a fail-over to a copy without them.

    Raises ``FencedEpoch`` if another leader was elected since."""
    if leader_epoch < log.leader_epoch:
        raise FencedEpoch(leader_epoch, log.leader_epoch)
    rows = tuple(StoredRecord(log.end + place, record) for place, record in enumerate(records))
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
    """Set the high watermark: all records below ``offset`` are on every in-sync copy, and can be acknowledged and read
    (F-RT-04, F-RT-11). It never decreases. Raises ``BehindLog`` for an offset after the end."""
    if not 0 <= offset <= log.end:
        raise BehindLog(f"offset must be from 0 to {log.end}, the end of the log (got {offset})")
    return log if offset <= log.committed else replace(log, committed=offset)


def high_watermark(log: PartitionLog, in_sync: Iterable[int]) -> int:
    """Return the offset that all in-sync copies have reached; ``in_sync``: the ends of the followers' copies."""
    return max(log.committed, min((log.end, *in_sync)))


def read(log: PartitionLog, offset: int, most: int | None = None) -> tuple[StoredRecord, ...]:
    """Return the rows from an offset on, in whole batches, at most ``most`` of them. A reader that continues after its
    last batch during a compaction may miss superseded records, but never the last record of a key (F-REPLAY-18)."""
    _require_count(most)
    found = [batch for batch in log.batches if batch.rows[-1].offset >= offset]  # no batch is empty
    return tuple(row for batch in found[:most] for row in batch.rows if row.offset >= offset)


def truncate(log: PartitionLog, offset: int) -> PartitionLog:
    """Remove all records from ``offset`` on. Raises ``BehindLog`` for replicated records, which no fail-over may lose
    (F-SURV-01), and for an offset inside a batch, which cannot be split."""
    if offset < log.committed:
        raise BehindLog(f"the log cannot be truncated at {offset}: it is replicated up to {log.committed}")
    if offset >= log.end:
        return log
    batches = tuple(batch for batch in log.batches if batch.end <= offset)
    cut = log.batches[len(batches)] if len(batches) < len(log.batches) else None
    if cut is not None and cut.rows and cut.rows[0].offset < offset:
        raise BehindLog(f"the log cannot be truncated at {offset}: it is not the end of a batch")
    epochs = tuple(each for each in log.epochs if each.start < offset)
    return replace(log, batches=batches, end=offset, clean=min(log.clean, offset), epochs=epochs)


def parting(log: PartitionLog, leader: PartitionLog) -> int:
    """Return the offset up to which a follower's copy equals the leader's: the end of the newest common epoch, in the
    copy where it ends first. This uses only the epochs. A follower learns the high watermark late, so truncating there
    would lose replicated records."""
    theirs = {epoch.number: epoch.start for epoch in leader.epochs}
    for epoch in reversed(log.epochs):
        if theirs.get(epoch.number) == epoch.start:
            return min(_end_of(log, epoch.number), _end_of(leader, epoch.number))
    return 0


def catch_up(log: PartitionLog, leader: PartitionLog, most: int | None = None) -> PartitionLog:
    """Return a follower's copy after it has removed what its leader lacks, and fetched up to ``most`` batches (None:
    all). The copy also gets the leader's high watermark, up to its own end. Raises ``FencedEpoch`` if it knows a newer
    leader: the old leader can no longer replicate (F-CONS-07). Raises ``BehindLog`` if it would lose replicated
    records; that cannot happen after the election of an in-sync copy."""
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
    """Raise ``BehindLog`` for a negative number of batches, which Python would count from the end."""
    if most is not None and most < 0:
        raise BehindLog(f"the number of batches must be >= 0 (got {most})")


def _begun(epochs: tuple[Epoch, ...], number: int, start: int) -> tuple[Epoch, ...]:
    return epochs if epochs and epochs[-1].number == number else (*epochs, Epoch(number, start))


def _end_of(log: PartitionLog, number: int) -> int:
    """Return the end of the epoch's records: the start of the next epoch, or the end of the log."""
    return next((epoch.start for epoch in log.epochs if epoch.number > number), log.end)
