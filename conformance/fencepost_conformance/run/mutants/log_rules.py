"""A random partition log, a copy of it and its compaction, compared with a list of all records (docs/log.md)."""

from __future__ import annotations

from random import Random

from fencepost.log import PartitionLog, append, catch_up, compact, lead, read, replicated
from fencepost.log.partition import truncate
from fencepost.protocol.records import GroupMetadataKey, GroupMetadataValue, Record

from ...generate.simulate.broken import demand

STEPS, _KEYS, _RETENTION_MS = 40, "abc", 10


def _record(rng: Random, number: int) -> Record:
    key = GroupMetadataKey(rng.choice(_KEYS))
    if rng.random() < 0.3:
        return Record(key, None)
    value = GroupMetadataValue("", generation=number, protocol=None, leader=None, current_state_timestamp=0)
    return Record(key, value)


class Play:
    """A leader's log, a follower's copy, and every record ever appended, by its offset. ``met``: when a compaction
    first saw a tombstone that ends nothing."""

    def __init__(self, seed: int) -> None:
        self.rng = Random(f"log {seed}")
        self.now = 0
        self.all: dict[int, Record] = {}
        self.log = lead(PartitionLog(), 1)
        self.copy = lead(PartitionLog(), 1)
        self.ends: list[int] = []  #: of every appended batch
        self.first_read: dict[int, int] = {}

    def append(self) -> None:
        """Append one to three records in one batch."""
        records = [_record(self.rng, self.log.end + place) for place in range(self.rng.randint(1, 3))]
        self.all.update(enumerate(records, self.log.end))
        self.log = append(self.log, records, 1)
        self.ends.append(self.log.end)

    def replicate(self) -> None:
        """Replicate a prefix of the log to every copy."""
        ends = [batch.end for batch in self.log.batches if batch.end > self.log.committed]
        if ends:
            self.log = replicated(self.log, self.rng.choice(ends))

    def follow(self) -> None:
        """Let the follower fetch some batches, or all."""
        most = self.rng.choice((None, None, 1))
        self.copy = catch_up(self.copy, self.log, most)
        if most is None:
            demand(
                self.copy.end == self.log.end, "F-SURV-01", f"a copy ends at {self.copy.end} instead of {self.log.end}"
            )
            demand({*self.log.rows} <= {*self.copy.rows}, "F-SURV-01", "a copy lacks records of its leader")

    def compact(self) -> None:
        """Compact now, later, or exactly at the end of a tombstone's retention."""
        self.now += self.rng.choice((0, 1, _RETENTION_MS - 1, _RETENTION_MS))
        readers = self.rng.choice((None, None, [self.rng.randint(0, self.log.end)]))
        before, kept = {row.offset for row in self.log.rows}, self.log.committed
        last = {self.all[at].key: at for at in sorted(self.all) if at < kept}
        self.log = compact(self.log, self.now, retention_ms=_RETENTION_MS, readers=readers)
        left = {row.offset for row in self.log.rows}
        for at in sorted(before):
            newest = at >= kept or last[self.all[at].key] == at
            if at < kept and not newest:
                demand(at not in left, "F-REPLAY-18", f"the record at {at} stays, although a later one supersedes it")
            elif self.all[at].value is not None or at >= kept:
                demand(at in left, "F-REPLAY-18", f"the last record of a key, at {at}, is gone")
            else:
                self._tombstone(at, at in left, readers)

    def _tombstone(self, at: int, stays: bool, readers: list[int] | None) -> None:
        first = self.first_read.setdefault(self._batch_of(at), self.now)
        late = self.now < first + _RETENTION_MS
        needed = late if readers is None else any(0 < reader <= at for reader in readers)
        demand(
            stays == needed, "F-REPLAY-18", f"the tombstone at {at} stays: {stays}, expected: {needed}, {self.now} ms"
        )

    def _batch_of(self, at: int) -> int:
        """Return the end of the batch; its tombstones share its time, and its end never changes."""
        return next(end for end in self.ends if at < end)

    def read(self) -> None:
        """Read from any offset, and check that the rows from there on come back."""
        at = self.rng.randint(0, self.log.end)
        wanted = [row for row in self.log.rows if row.offset >= at]
        demand([*read(self.log, at)] == wanted, "F-REPLAY-18", f"a read from {at} gives other rows")

    def cut(self) -> None:
        """Truncate the copy at the end of a batch, and check that everything before stays."""
        ends = [batch.end for batch in self.copy.batches if batch.end >= self.copy.committed]
        if ends:
            at = self.rng.choice(ends)
            kept = [row for row in self.copy.rows if row.offset < at]
            self.copy = truncate(self.copy, at)
            demand([*self.copy.rows] == kept, "F-SURV-01", f"a copy truncated at {at} lost earlier records")


def check_log(seed: int) -> int:
    """Play a random log. Returns the number of steps; raises ``Broken`` if one of them broke a rule."""
    play = Play(seed)
    for _ in range(STEPS):
        play.rng.choice(
            (play.append, play.append, play.replicate, play.follow, play.compact, play.compact, play.read, play.cut)
        )()
    return STEPS
