"""What was promised to clients about offsets, whoever coordinates them. Values that are committed are all different."""

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
    """What an offset is committed for."""

    group: str
    topic: str
    partition: int


class Promises:
    """``acknowledged``: by key, the value of the last record in log order that somebody was told is committed, with its
    place. ``hidden``: values of transactions that have not ended with a commit; ``pending``: by key, the value of one
    that was acknowledged and has not begun to end."""

    def __init__(self, partitions: int) -> None:
        self.partitions = partitions
        self.acknowledged: dict[Key, tuple[int, int]] = {}
        self.hidden: set[int] = set()
        self.pending: dict[Key, int] = {}
        self.commits = self.reads = self.unstable = 0
        self._places: dict[int, int] = {}  #: where the record of a value was written last
        self._high = [0] * partitions
        self._values = 0

    def fresh(self) -> int:
        """A value that nobody has committed."""
        self._values += 1
        return self._values

    # --- the log ---

    def written(self, partition: int, start: int, records: Iterable[Record]) -> None:
        """Records were appended to some copy from this place on; groups are where their names belong (F-LOC-01)."""
        for place, record in enumerate(records, start):
            key, value = record.key, record.value
            if key.group:
                right = partition_for(key.group, self.partitions)
                demand(right == partition, "F-LOC-01", f"{key.group} is written to {partition}, and belongs to {right}")
            if isinstance(key, OffsetCommitKey) and isinstance(value, OffsetCommitValue):
                self._places[value.offset] = place

    def replicated(self, partition: int, offset: int) -> None:
        """Some leader's high watermark."""
        self._high[partition] = max(self._high[partition], offset)

    def lead(self, partition: int, log: lg.PartitionLog) -> None:
        """A copy is to be the leader's."""
        text = f"the leader of partition {partition} has {log.end} of {self._high[partition]} that were replicated"
        demand(log.end >= self._high[partition], "F-SURV-01", text)

    def loaded(self, partition: int, state: CoordinatorState) -> None:
        """What a coordinator has after a load, or in the end."""
        stored = {Key(row.group_id, row.topic, row.partition): row.offset for row in offsets_view(state).committed}
        for key, (value, place) in self.acknowledged.items():
            if partition_for(key.group, self.partitions) == partition:
                self._not_behind(key, stored.get(key, -1), value, place, "F-SURV-01")
        for key, value in stored.items():
            demand(value not in self.hidden, "INV-TXN-01", f"{value} of {key} was aborted, or is not committed")

    def copied(self, partition: int, log: lg.PartitionLog, leader: lg.PartitionLog) -> None:
        """A follower's copy, once it has all, comes to what its leader's comes to (INV-REPLAY-01)."""
        demand(log.end == leader.end, "F-RT-04", f"a copy of partition {partition} ends at {log.end}, not {leader.end}")
        mine, theirs = (replay(initial_state(Settings(), INTENDED), each.records) for each in (log, leader))
        same = mine.groups.keys() == theirs.groups.keys() and _values(mine) == _values(theirs)
        demand(same, "INV-REPLAY-01", f"copies of partition {partition} come to different groups or offsets")

    # --- answers ---

    def acknowledge(self, key: Key, value: int) -> None:
        """Somebody was told that the value is committed."""
        self.commits += 1
        place = self._places[value]
        if place >= self.acknowledged.get(key, (0, -1))[1]:
            self.acknowledged[key] = value, place

    def known(self, key: Key) -> tuple[int, int] | None:
        """What is acknowledged now: a later read may not be behind it."""
        return self.acknowledged.get(key)

    def read(self, key: Key, value: int, floor: tuple[int, int] | None) -> None:
        """A coordinator that leads has answered; ``floor``: what was known when it was asked (INV-COMMIT-02)."""
        self.reads += 1
        demand(value not in self.hidden, "INV-TXN-01", f"{value} of {key} is shown, and was not committed")
        place, high = self._places.get(value, -1), self._high[partition_for(key.group, self.partitions)]
        demand(place < high, "F-RT-11", f"{key} is {value} (at {place}), and {high} are replicated")
        if floor is not None:
            self._not_behind(key, value, *floor, "INV-COMMIT-02")

    def stable(self, rows: Iterable[Key], unstable: set[Key], pending: set[Key], *, asked: bool) -> None:
        """What a request for stable offsets was told of partitions, in transactions all the while or not
        (O-FETCH-08): nobody else is told that an offset is unstable."""
        self.unstable += len(unstable)
        demand(asked or not unstable, "O-FETCH-08", f"{unstable} are unstable, and stable offsets were not asked for")
        missed = pending & set(rows) - unstable
        demand(not missed, "O-FETCH-08", f"{missed} have a transaction, and are told as stable")

    def _not_behind(self, key: Key, value: int, known: int, place: int, rule: str) -> None:
        found = self._places.get(value, -1)
        later = value == known or found > place
        demand(later, rule, f"{key} is {value} (at {found}), and {known} (at {place}) was acknowledged")


def _values(state: CoordinatorState) -> Mapping[Key, int]:
    return {Key(row.group_id, row.topic, row.partition): row.offset for row in offsets_view(state).committed}
