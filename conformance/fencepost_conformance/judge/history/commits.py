"""The committed offsets of a group, plain and in transactions."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, NamedTuple

from .events import UNKNOWN_MS, CommitRow, Event, Kind, Move, Place

_NEVER: Final = -1


class Pending(NamedTuple):
    """An offset in an open transaction, with its record."""

    offset: int
    place_in_log: int
    at_ms: int


@dataclass(slots=True)
class Committed:
    """The commits to one partition. ``record``: the log offset of the last one that counts."""

    offset: int | None = None
    record: int = _NEVER
    commits: int = 0
    last_ms: int = UNKNOWN_MS
    back: int = 0
    furthest: int = 0
    pause_ms: int = 0


@dataclass(slots=True)
class Commits:
    """The committed offsets of a group, and those of open transactions by producer id."""

    committed: dict[Place, Committed] = field(default_factory=dict)
    pending: dict[int, dict[Place, Pending]] = field(default_factory=dict)
    total: int = 0
    back: int = 0
    aborted: int = 0

    def commit(self, place: Place, offset: int, record: int, at_ms: int) -> Event | None:
        """Take a commit; return an event if it goes back."""
        known = self.committed.get(place)
        if known is None:
            known = self.committed[place] = Committed()
        before, last = known.offset, known.last_ms
        self.total += 1
        known.commits += 1
        known.offset, known.record = offset, record
        if last != UNKNOWN_MS and at_ms - last > known.pause_ms:
            known.pause_ms = at_ms - last
        known.last_ms = at_ms
        if before is None or offset >= before:
            return None
        self.back += 1
        known.back += 1
        known.furthest = max(known.furthest, before - offset)
        said = f"from {before} to {offset} ({before - offset} back)"
        return Event(at_ms, record, Kind.COMMIT_BACK, moves=(Move(place, None, None),), details=said)

    def begin(self, producer: int, place: Place, offset: int, record: int, at_ms: int) -> None:
        """Take a commit in a transaction, which counts when the transaction commits (O-TXN-07)."""
        self.pending.setdefault(producer, {})[place] = Pending(offset, record, at_ms)

    def end(self, producer: int, record: int, at_ms: int, *, committed: bool) -> list[Event]:
        """End the transaction of a producer. A later plain commit wins over the transaction (O-TXN-08)."""
        pending = self.pending.pop(producer, {})
        if not committed:
            self.aborted += bool(pending)
            places = tuple(Move(place, None, None) for place in pending)
            said = f"producer {producer}, {len(pending)} offsets do not count"
            return [Event(at_ms, record, Kind.ABORTED, moves=places, details=said)] if pending else []
        events = []
        for place, each in pending.items():
            known = self.committed.get(place)
            if known is None or known.offset is None or known.record < each.place_in_log:
                event = self.commit(place, each.offset, each.place_in_log, at_ms)
                if event is not None:
                    events.append(event)
        return events

    def delete(self, place: Place) -> bool:
        """Take a tombstone; return whether there was an offset."""
        for pending in self.pending.values():
            pending.pop(place, None)
        known = self.committed.get(place)
        if known is None or known.offset is None:
            return False
        known.offset = None
        return True

    def prune(self) -> None:
        """Forget partitions whose offset was deleted."""
        if any(each.offset is None for each in self.committed.values()):
            self.committed = {place: each for place, each in self.committed.items() if each.offset is not None}

    def rows(self) -> tuple[CommitRow, ...]:
        """Return the partitions, sorted."""
        return tuple(
            CommitRow(place, each.offset, each.commits, each.last_ms, each.back, each.furthest, each.pause_ms)
            for place, each in sorted(self.committed.items())
        )
