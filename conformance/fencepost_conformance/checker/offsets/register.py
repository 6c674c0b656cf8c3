"""One partition's committed offset as a register: who wrote what, and which reads that explains.

Nobody sees when a coordinator takes a commit up; that is somewhere between its request and its answer. So a read may
find a value if some write of it could be the last one at some moment between the read's request and its answer: it may
have begun before the read ended, and no other write that certainly came after it had certainly ended before the read
began (O-COMMIT-13: the last one wins). What a read finds counts as written from then on, so no later read goes back
behind it. That is what is demanded of a register with many writers in the literature on atomic registers; orders that
only several partitions together exclude are not looked for.

Within a transaction two moments fall apart (O-TXN-07, O-TXN-08). What it commits takes its place in the order when it
is pending, and can be seen once its end was asked for. Who asks for stable offsets is told to wait from the first of
these moments to the second, so such a read never finds what the transaction replaces (O-FETCH-08). The marker is
written after the answer to EndTxn; other reads may find the old value until one has found the new.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

NEVER: Final = 1 << 62


@dataclass(frozen=True, slots=True)
class Value:
    """What is committed. ``leader_epoch`` is None in answers of versions that do not carry it."""

    offset: int
    leader_epoch: int | None = -1
    metadata: str = ""

    def shows(self, other: Value) -> bool:
        """Whether an answer that says this can speak of the other."""
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
    """A commit, or a deletion of what was committed. Moments are lines of the trace.

    ``value`` None stands for what was there before the trace and is not known. ``begin`` and ``end``: between them it
    took its place in the order; ``end`` is ``NEVER`` if that is not known to have happened. ``shown_from``: not seen
    before. ``shown_by``: seen by every read that begins later; ``NEVER`` if that is not known.
    """

    value: Value | None
    begin: int
    end: int
    begin_ms: int
    shown_from: int
    shown_by: int
    transaction: Pending | None = None


@dataclass(slots=True, eq=False)
class Pending:
    """An offset that a transaction holds. ``taken``: the commit was let in for certain. ``ends_from``,
    ``ends_from_ms``: no end of the transaction can have come before. ``kept``: it ended with a commit. ``gone_by``: a
    read has shown that it is over."""

    value: Value
    begin: int
    end: int
    taken: bool
    ends_from: int
    ends_from_ms: int
    kept: bool
    gone_by: int = NEVER


@dataclass(frozen=True, slots=True)
class Read:
    """One partition's row of an answer; ``value`` None: the caller is to wait for a transaction. ``listed``: it was
    asked for by name, and not found, or not, among all that there are."""

    begin: int
    end: int
    end_ms: int
    value: Value | None
    stable: bool
    listed: bool


@dataclass(frozen=True, slots=True)
class Wrong:
    """Why a read has no explanation: what it could have found, and the rules that say so."""

    allowed: tuple[str, ...]
    rules: tuple[str, ...]


@dataclass(slots=True)
class Register:
    """All that a trace tells of one partition in one group."""

    writes: list[Write]
    pending: list[Pending]
    retention_ms: int

    def take(self, read: Read) -> Wrong | None:
        """What is wrong with a read; reads come in the order of their ends."""
        holding = [each for each in self.pending if _may_hold(each, read)]
        if read.value is None:
            if holding and read.stable:
                return None
            return Wrong(self._texts(read), ("O-FETCH-08",))
        possible = self._possible(read)
        if read.stable and read.listed and any(_must_hold(each, read) for each in holding):
            return Wrong(("to be told to wait for the transaction that holds it",), ("O-FETCH-08",))
        found = [each for each in possible if each.value is None or read.value.shows(each.value)]
        if not found:
            if self._may_be_old(read, possible):
                return None
            return Wrong(self._texts(read), self._rules(read))
        if len(found) == 1:
            self._learn(found[0], read)
        if read.stable and read.listed:
            for each in holding:
                if each.end < read.begin:  # it was there, and is no more
                    each.gone_by = min(each.gone_by, read.end)
        return None

    def _possible(self, read: Read) -> list[Write]:
        last = max((each.begin for each in self.writes if _shown_by(each, read) < read.begin), default=-1)
        return [each for each in self.writes if each.shown_from < read.end and last <= each.end]

    def _may_be_old(self, read: Read, possible: Sequence[Write]) -> bool:
        """Whether it may have expired (O-EXP-01…06)."""
        return (
            read.value is not None
            and read.value.shows(NOTHING)
            and any(read.end_ms - each.begin_ms >= self.retention_ms for each in possible)
        )

    @staticmethod
    def _learn(write: Write, read: Read) -> None:
        if write.value is None:
            write.value = read.value
        write.shown_by = min(write.shown_by, read.end)
        write.end = min(write.end, read.end)

    def _texts(self, read: Read) -> tuple[str, ...]:
        texts = dict.fromkeys(str(each.value) for each in self._possible(read) if each.value is not None)
        if read.stable and any(_may_hold(each, read) for each in self.pending):
            texts["to be told to wait"] = None
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
    return each.taken and each.end < read.begin and read.end < each.ends_from and read.end_ms < each.ends_from_ms
