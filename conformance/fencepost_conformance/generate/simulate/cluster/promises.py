"""Promises to clients about offsets, whichever broker coordinates them. All committed values differ."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from fencepost import log as lg
from fencepost.coordinator import CoordinatorState, initial_state, offsets_view, replay
from fencepost.protocol.offset_records import OffsetCommitKey, OffsetCommitValue
from fencepost.protocol.profiles import INTENDED
from fencepost.protocol.records import Record
from fencepost.protocol.settings import Settings
from fencepost.sharding import partition_for

from ..broken import demand


class Key(NamedTuple):
    """The group and partition that an offset is committed for."""

    group: str
    topic: str
    partition: int


class Promises:
    """``acknowledged``: by key, the acknowledged value whose record is last in the log, and its offset. ``hidden``:
    values of transactions that have not ended with a commit. ``pending``: by key, the acknowledged value of a
    transaction whose end has not begun."""

    def __init__(self, partitions: int) -> None:
        self.partitions = partitions
        self.acknowledged: dict[Key, tuple[int, int]] = {}
        self.hidden: set[int] = set()
        self.pending: dict[Key, int] = {}
        self.commits = self.reads = self.unstable = 0
        self._places: dict[int, int] = {}  #: offset of the last record with a value
        self._high = [0] * partitions
        self._values = 0

    def fresh(self) -> int:
        """Return a value that has never been committed."""
        self._values += 1
        return self._values

    # --- the log ---

    def written(self, partition: int, start: int, records: Iterable[Record]) -> None:
        """Check records appended to some copy from ``start`` on: each group is in its name's partition (F-LOC-01)."""
        for place, record in enumerate(records, start):
            key, value = record.key, record.value
            if key.group:
                right = partition_for(key.group, self.partitions)
                demand(right == partition, "F-LOC-01", f"{key.group} is written to {partition}, but belongs to {right}")
            if isinstance(key, OffsetCommitKey) and isinstance(value, OffsetCommitValue):
                self._places[value.offset] = place

    def replicated(self, partition: int, offset: int) -> None:
        """Note some leader's high watermark."""
        self._high[partition] = max(self._high[partition], offset)

    def lead(self, partition: int, log: lg.PartitionLog) -> None:
        """Check a copy that becomes the leader's."""
        text = f"the leader of partition {partition} has {log.end} of {self._high[partition]} replicated records"
        demand(log.end >= self._high[partition], "F-SURV-01", text)

    def loaded(self, partition: int, state: CoordinatorState) -> None:
        """Check a coordinator's state after a load, or in the end."""
        stored = {Key(row.group_id, row.topic, row.partition): row.offset for row in offsets_view(state).committed}
        for key, (value, place) in self.acknowledged.items():
            if partition_for(key.group, self.partitions) == partition:
                self._not_behind(key, stored.get(key, -1), value, place, "F-SURV-01")
        for key, value in stored.items():
            demand(value not in self.hidden, "INV-TXN-01", f"{value} of {key} was aborted, or is not committed")

    def copied(self, partition: int, log: lg.PartitionLog, leader: lg.PartitionLog) -> None:
        """Check that a follower's complete copy replays to the same state as its leader's (INV-REPLAY-01)."""
        demand(log.end == leader.end, "F-RT-04", f"a copy of partition {partition} ends at {log.end}, not {leader.end}")
        mine, theirs = (replay(initial_state(Settings(), INTENDED), each.records) for each in (log, leader))
        same = mine.groups.keys() == theirs.groups.keys() and _values(mine) == _values(theirs)
        demand(same, "INV-REPLAY-01", f"copies of partition {partition} replay to different groups or offsets")

    # --- answers ---

    def acknowledge(self, key: Key, value: int) -> None:
        """Note that a client got an acknowledgement of the value."""
        self.commits += 1
        place = self._places[value]
        if place >= self.acknowledged.get(key, (0, -1))[1]:
            self.acknowledged[key] = value, place

    def known(self, key: Key) -> tuple[int, int] | None:
        """Return what is acknowledged now; later reads must not be behind it."""
        return self.acknowledged.get(key)

    def read(self, key: Key, value: int, floor: tuple[int, int] | None) -> None:
        """Check the answer of a leading coordinator; ``floor``: what was acknowledged when it was asked
        (INV-COMMIT-02)."""
        self.reads += 1
        demand(value not in self.hidden, "INV-TXN-01", f"{value} of {key} is returned, but was not committed")
        place, high = self._places.get(value, -1), self._high[partition_for(key.group, self.partitions)]
        demand(place < high, "F-RT-11", f"{key} is {value} (at {place}), but only {high} are replicated")
        if floor is not None:
            self._not_behind(key, value, *floor, "INV-COMMIT-02")

    def stable(self, rows: Iterable[Key], unstable: set[Key], pending: set[Key], *, asked: bool) -> None:
        """Check an answer about offsets. ``pending``: partitions in an open transaction the whole time. Only a request
        for stable offsets (``asked``) may be answered that an offset is unstable (O-FETCH-08)."""
        self.unstable += len(unstable)
        demand(asked or not unstable, "O-FETCH-08", f"{unstable} are unstable, but stable offsets were not asked for")
        missed = pending & set(rows) - unstable
        demand(not missed, "O-FETCH-08", f"{missed} have an open transaction, but are returned as stable")

    def _not_behind(self, key: Key, value: int, known: int, place: int, rule: str) -> None:
        found = self._places.get(value, -1)
        later = value == known or found > place
        demand(later, rule, f"{key} is {value} (at {found}), but {known} (at {place}) was acknowledged")


def _values(state: CoordinatorState) -> Mapping[Key, int]:
    return {Key(row.group_id, row.topic, row.partition): row.offset for row in offsets_view(state).committed}
