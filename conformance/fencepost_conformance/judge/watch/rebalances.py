"""The last rebalances and events of all groups, from the events of the log. Events that are new are also counted."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from fencepost_server.observe.groups import GroupCounts
from fencepost_server.observe.rebalances import KEPT, SUPERSEDED, Rebalance

from ..history.events import UNKNOWN_MS, Event, Kind, Why
from ..history.life import CLASSIC, CONSUMER, Life

#: events to remember, of all groups together
EVENTS: Final = 500


class Happened(NamedTuple):
    """An event of a group; as text, it is about the cluster, and the group is empty."""

    at_ms: int
    group: str
    event: Event | str


class Rebalances:
    """Listens to the histories of groups. ``live``: whether events are new, and not of the past. ``total``: the new
    rebalances."""

    def __init__(self, counts: GroupCounts) -> None:
        self.live = False
        self.total = 0
        self.new: deque[Happened] = deque(maxlen=EVENTS)  #: new events, for a reader that removes them
        self._counts = counts
        self._last: list[Rebalance] = []
        self._events: list[Happened] = []
        self._open: dict[str, Rebalance] = {}

    def commits(self, life: Life, offsets: int) -> None:
        """Count committed offsets."""
        if self.live:
            self._counts.commit(life.group, offsets)

    def event(self, life: Life, event: Event) -> None:
        """Take an event."""
        match event.kind:
            case Kind.BEGAN:
                self._begin(life, event, event.at_ms, CONSUMER)
            case Kind.ENDED:
                self._end(life.group, event.details, event.duration_ms)
            case Kind.SUPERSEDED:
                self._end(life.group, SUPERSEDED, event.duration_ms)
            case Kind.DELETED:
                self._end(life.group, life.state, None)
            case Kind.GENERATION | Kind.EMPTY:
                began = event.at_ms - (event.duration_ms or 0)
                seen = self._begin(life, event, began, CLASSIC)
                seen.leader, seen.members = life.leader, len(life.members)
                self._end(life.group, "Stable" if event.kind is Kind.GENERATION else "Empty", event.duration_ms)
            case Kind.GONE if event.why is Why.FENCED and self.live:
                self._counts.evict(life.group, len(event.members))
            case _:
                pass
        self.add(Happened(event.at_ms, life.group, event))

    def add(self, happened: Happened) -> None:
        """Remember an event."""
        self._events.append(happened)
        _trim(self._events, EVENTS)
        if self.live or isinstance(happened.event, str):
            self.new.append(happened)

    def _begin(self, life: Life, event: Event, at_ms: int, protocol: str) -> Rebalance:
        reason = (event.why or Why.UNKNOWN).value
        seen = Rebalance(max(at_ms, 0), life.group, protocol, event.epoch or 0, reason, event.cause, converted=False)
        self._open[life.group] = seen
        self._last.append(seen)
        _trim(self._last, KEPT)
        if self.live:
            self.total += 1
            self._counts.rebalance(life.group, reason)
        return seen

    def _end(self, group: str, state: str, duration_ms: int | None) -> None:
        seen = self._open.pop(group, None)
        if seen is not None:
            seen.state, seen.duration_ms = state, duration_ms
            if self.live and duration_ms is not None:
                self._counts.spend(group, duration_ms)

    def forget(self, groups: Iterable[str]) -> None:
        """Forget what is under way in groups whose partition is read again."""
        for name in groups:
            self._open.pop(name, None)

    def last(self, most: int) -> list[Rebalance]:
        """Return the last rebalances, newest first."""
        return sorted(self._last, key=_time)[::-1][:most]

    def events(self, most: int) -> list[Happened]:
        """Return the last events, newest first."""
        return sorted(self._events, key=_time)[::-1][:most]

    def last_of(self) -> dict[str, Rebalance]:
        """Return the last rebalance of each group, of those that are remembered."""
        return {each.group_id: each for each in sorted(self._last, key=_time)}


def _time(each: Rebalance | Happened) -> int:
    return each.at_ms if each.at_ms != UNKNOWN_MS else 0


def _trim(rows: list[Rebalance] | list[Happened], most: int) -> None:
    """Drop the oldest rows when there are twice as many as to keep: partitions are read one after another, so the last
    rows are not the newest."""
    if len(rows) >= 2 * most:
        rows.sort(key=_time)
        del rows[:-most]


def described(rows: Sequence[Happened]) -> list[Happened]:
    """Return the rows that are about more than the first record of a group."""
    return [each for each in rows if isinstance(each.event, str) or each.event.kind is not Kind.APPEARED]
