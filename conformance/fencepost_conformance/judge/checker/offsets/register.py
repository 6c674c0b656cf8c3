"""The committed offset of one partition as a register with many writers: its writes, and the reads that they explain.

The trace does not show when a coordinator processes a commit, only that it does so between its request and its answer.
So a read may find a value if a write of it could be the last one at some time between the read's request and its
answer: the write may have begun before the read ended, and no other write that certainly came after it had certainly
ended before the read began (O-COMMIT-13: the last one wins). A value that a read has found counts as written from then
on, so later reads cannot find an older one. The literature on atomic registers demands the same of a register with many
writers. The checker does not look for orders that only several partitions together exclude.

In a transaction, two times differ (O-TXN-07, O-TXN-08). An offset takes its place in the order when it becomes pending,
and reads can find it once the end of the transaction was requested. Between the two, a read for stable offsets gets
UNSTABLE_OFFSET_COMMIT, so it never finds the value that the transaction replaces (O-FETCH-08). The marker is written
after the answer to EndTxn; other reads may find the old value until one has found the new.

Events without a request have bounds. A commit that failed, or was not answered, takes effect by ``latest`` or never: a
read that begins later and does not find it rules it out. An offset may expire from ``old_from`` on, and a read that
begins after ``gone_by`` does not find it (``expiry``).

The broker keeps an offset with the id of its topic, if the commit named the id or the broker knew it. A read that names
another id of the same topic finds nothing (O-FETCH-06).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

NEVER: Final = 1 << 62


@dataclass(frozen=True, slots=True)
class Value:
    """A committed value. ``leader_epoch`` is None in answers of versions that do not carry it."""

    offset: int
    leader_epoch: int | None = -1
    metadata: str = ""

    def shows(self, other: Value) -> bool:
        """Whether an answer with this value can be about the other value."""
        return (
            self.offset == other.offset
            and self.metadata == other.metadata
            and (self.leader_epoch is None or other.leader_epoch is None or self.leader_epoch == other.leader_epoch)
        )

    def __str__(self) -> str:
        return "nothing" if self.offset < 0 else str(self.offset)


NOTHING: Final = Value(-1)


@dataclass(slots=True, eq=False)
class Write:
    """A commit, or a deletion. All times are lines of the trace.

    ``value`` None: the unknown value from before the trace. ``begin`` and ``end``: between them the write took effect;
    ``end`` is ``NEVER`` if it may never have taken effect, and ``latest`` is then the time by which it has, if at all.
    ``shown_from``: no read finds it before. ``shown_by``: every read that begins later finds it, or a later write;
    ``NEVER`` if that is not known. ``topic_id``: the id of the topic in the commit, or None. ``old_from``: from then on
    it may have expired. ``gone_by``: from then on it has. ``over_from``: from then on it is gone, as a read has shown.
    """

    value: Value | None
    begin: int
    end: int
    shown_from: int
    shown_by: int
    transaction: Pending | None = None
    latest: int = NEVER
    topic_id: str | None = None
    old_from: int = NEVER
    gone_by: int = NEVER
    over_from: int = NEVER


@dataclass(slots=True, eq=False)
class Pending:
    """An offset that is pending in a transaction. ``taken``: the group certainly accepted the commit. ``ends_from``:
    the transaction cannot have ended before. ``kept``: it ended with a commit. ``gone_by``: it is no longer pending by
    then, as a read or the end of the transaction has shown."""

    value: Value
    begin: int
    end: int
    taken: bool
    ends_from: int
    kept: bool
    gone_by: int = NEVER


@dataclass(frozen=True, slots=True)
class Read:
    """One partition's row of an answer. ``value`` None: UNSTABLE_OFFSET_COMMIT, the caller must wait for a transaction.
    ``listed``: the request names the partition, and does not ask for all. ``topic_id``: the id in the request, if
    any."""

    begin: int
    end: int
    value: Value | None
    stable: bool
    listed: bool
    topic_id: str | None = None


@dataclass(frozen=True, slots=True)
class Wrong:
    """Why a read is impossible: what it could have found, in words, and the rules. ``values``: the commits that it
    could have found."""

    allowed: tuple[str, ...]
    rules: tuple[str, ...]
    values: tuple[Value, ...] = ()


@dataclass(slots=True)
class Register:
    """All writes of one partition in one group. ``several``: its topic may have had several ids."""

    writes: list[Write]
    pending: list[Pending]
    several: bool = False

    def take(self, read: Read) -> Wrong | None:
        """Judge a read and learn from it; None if it is possible. Call it in the order of the reads' ends."""
        holding = [each for each in self.pending if _may_hold(each, read)]
        if read.value is None:
            if holding and read.stable:
                return None
            return Wrong(self._texts(read), ("O-FETCH-08",), self._values(read))
        possible = self._possible(read)
        if read.stable and read.listed and any(_must_hold(each, read) for each in holding):
            return Wrong(("UNSTABLE_OFFSET_COMMIT, since a transaction holds it",), ("O-FETCH-08",))
        found = [each for each in possible if self._shows(read.value, read.topic_id, each)]
        if found and all(each.gone_by < read.begin for each in found):
            return Wrong(("nothing: it has expired",), ("O-EXP-01", "O-EXP-02", "O-EXP-04", "O-EXP-05"))
        if not found and not self._expires(read, possible):
            return Wrong(self._texts(read), self._rules(read), self._values(read))
        if len(found) == 1:
            self._learn(found[0], read)
        for write in self.writes:
            if write.latest < read.begin and write not in found:
                write.over_from = min(write.over_from, read.end)
        if read.stable and read.listed:
            for each in holding:
                if each.end < read.begin:  # the transaction held it then, and holds it no longer
                    each.gone_by = min(each.gone_by, read.end)
        return None

    def _possible(self, read: Read) -> list[Write]:
        last = max((each.begin for each in self.writes if _shown_by(each, read) < read.begin), default=-1)
        return [
            each
            for each in self.writes
            if each.shown_from < read.end and last <= each.end and each.over_from >= read.begin
        ]

    def _shows(self, shown: Value, topic_id: str | None, write: Write) -> bool:
        """Whether the answer to a read by this topic id, or by name, can be about the write."""
        if write.value is None:
            return True
        if topic_id is not None and write.value.offset >= 0:
            if write.topic_id is not None and write.topic_id != topic_id:
                return shown.shows(NOTHING)
            if write.topic_id is None and self.several and shown.shows(NOTHING):
                return True
        return shown.shows(write.value)

    def _expires(self, read: Read, possible: Sequence[Write]) -> bool:
        """Whether the read shows that the offset has expired (O-EXP-01…06); it then stays expired."""
        old = [each.old_from for each in possible if each.old_from <= read.end]
        if read.value is None or not read.value.shows(NOTHING) or not old:
            return False
        self.writes.append(Write(NOTHING, min(old), read.end, min(old), read.end))
        return True

    def _learn(self, write: Write, read: Read) -> None:
        if write.value is None:
            if read.topic_id is not None and self.several and read.value == NOTHING:
                return  # it may be kept under another id
            write.value = read.value
        write.shown_by = min(write.shown_by, read.end)
        write.end = min(write.end, read.end)

    def _values(self, read: Read) -> tuple[Value, ...]:
        return tuple(dict.fromkeys(each.value for each in self._possible(read) if each.value is not None))

    def _texts(self, read: Read) -> tuple[str, ...]:
        texts = dict.fromkeys(str(each.value) for each in self._possible(read) if each.value is not None)
        if read.stable and any(_may_hold(each, read) for each in self.pending):
            texts["UNSTABLE_OFFSET_COMMIT"] = None
        return tuple(texts)

    def _rules(self, read: Read) -> tuple[str, ...]:
        assert read.value is not None
        if any(read.value.shows(each.value) for each in self.writes if each.value is not None):
            return ("O-COMMIT-11", "O-COMMIT-13")
        if any(read.value.shows(each.value) for each in self.pending):
            return ("O-TXN-07", "O-TXN-08")
        return ("O-COMMIT-14", "O-FETCH-06")


def _shown_by(write: Write, read: Read) -> int:
    held = write.transaction
    if held is not None and held.kept and held.taken and read.stable and read.listed:
        return min(write.shown_by, held.end)
    return write.shown_by


def _may_hold(each: Pending, read: Read) -> bool:
    return each.begin < read.end and each.gone_by >= read.begin


def _must_hold(each: Pending, read: Read) -> bool:
    return each.taken and each.end < read.begin and read.end < each.ends_from
