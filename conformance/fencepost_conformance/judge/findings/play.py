"""Replay the traces of findings on a target, event by event; each event is adapted to what the target did so far.

Ids, epochs, generations, offsets and deadlines differ between releases, so a trace cannot be replayed as it is. Each
event is rebuilt from the target's earlier answers (``shrink.references``). Events that are impossible there are
dropped and reported. A target runs whole traces only. So all traces run again together, each time with one event more;
a JVM runs as often as the longest trace has events.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

from fencepost.protocol.events import Event, Load, Request, TimerFired
from fencepost.protocol.records import Record
from fencepost.protocol.settings import Settings

from ...generate.cleaner import while_read
from ...traces.files import EventTrace
from ...traces.observation import Observation
from ..shrink.references import References, TrackedSession, renamed
from .played_trace import PlayedTrace, Step, played_trace_of

#: runs whole traces, each from the start; returns a list of observations for each
RunMany: TypeAlias = Callable[[Sequence[tuple[Settings, Sequence[Event]]]], Sequence[Sequence[Observation]]]
#: returns one more event after the end of a trace, or None
Probe: TypeAlias = Callable[[PlayedTrace, TrackedSession], Event | None]


def play(traces: Sequence[tuple[EventTrace, Sequence[Probe]]], run: RunMany) -> list[PlayedTrace]:
    """Return what the target does with each trace and then with the events of its probes, in order."""
    players = [_Player(trace, probes) for trace, probes in traces]
    while moving := [player for player in players if player.continue_trace()]:
        for player, seen in zip(moving, run([(each.settings, each.events) for each in moving]), strict=True):
            player.observations = list(seen)
    return [player.played for player in players]


class _Player:
    """The replay of one trace. ``events``: those that the target got so far."""

    def __init__(self, trace: EventTrace, probes: Sequence[Probe]) -> None:
        self.settings = trace.settings
        self.events: list[Event] = []
        self.observations: list[Observation] = []
        self._trace, self._probes = trace, list(probes)
        self._references = References(trace.settings, trace.profile, trace.events)
        recorded = [Observation() if seen is None else seen for seen in trace.observations]
        self._recorded, _ = played_trace_of(trace.settings, trace.events, range(len(trace.events)), recorded)
        self._origins: list[int | None] = []
        self._dropped: list[tuple[int, Event]] = []
        self._next = 0

    @property
    def played(self) -> PlayedTrace:
        return self._played_so_far()[0]

    def _played_so_far(self) -> tuple[PlayedTrace, TrackedSession]:
        return played_trace_of(self.settings, self.events, self._origins, self.observations, self._dropped)

    def continue_trace(self) -> bool:
        """Add the next event; returns False if there is none."""
        played, session_state = self._played_so_far()
        places = {origin: place for place, origin in enumerate(self._origins) if origin is not None}
        ids = self._ids(played)
        while self._next < len(self._trace.events):
            index = self._next
            self._next += 1
            event = self._in_time(played, self._trace.events[index], ids)
            if isinstance(event, Load):
                event = replace(event, records=self._found(played, tuple(event.records), index, places))
            wrote = bool(played.steps and played.last.seen.records)
            right = self._references.put_right(session_state, event, index, ids=ids, places=places, wrote=wrote)
            if right is not None:
                return self._add(right, index)
            self._dropped.append((index, event))
        while self._probes:
            asked = self._probes.pop(0)(played, session_state)
            if asked is not None:
                return self._add(asked, None)
        return False

    def _add(self, event: Event, origin: int | None) -> bool:
        self.events.append(event)
        self._origins.append(origin)
        return True

    def _in_time(self, played: PlayedTrace, event: Event, ids: dict[str, str]) -> Event:
        """Move the event to no earlier than the previous one; a timer with a later deadline fires later."""
        at_ms = max(event.at_ms, self.events[-1].at_ms) if self.events else event.at_ms
        if isinstance(event, TimerFired) and played.steps:
            at_ms = max(at_ms, played.last.armed.get(renamed(event.key, ids), at_ms))
        return replace(event, at_ms=at_ms)

    def _ids(self, played: PlayedTrace) -> dict[str, str]:
        """Map the member ids in the trace to those that the target made."""
        found = {}
        for place, origin in enumerate(self._origins):
            was = None if origin is None else self._references.drawn(origin)
            now = _drawn(played.before(place) if place else None, played.steps[place])
            if was is not None and now is not None:
                found[was] = now
        return found

    def _found(
        self, played: PlayedTrace, records: tuple[Record, ...], index: int, places: dict[int, int]
    ) -> tuple[Record, ...]:
        """Return the target's own records for a load, whole or compacted, that correspond to the trace's."""
        if not index or not self._recorded.steps[index - 1].log:
            return records
        then = self._recorded.steps[:index]
        ours = {0: 0} | {
            len(step.log): len(played.steps[places[at]].log) for at, step in enumerate(then) if at in places
        }
        log = then[-1].log
        for end in sorted(ours, reverse=True):
            if records == log[:end]:
                return played.last.log[: ours[end]]
            for place in sorted(ours):
                if place <= end and records == while_read(log, place, end):
                    return while_read(played.last.log, ours[place], ours[end])
        return records


def _drawn(before: Step | None, step: Step) -> str | None:
    """Return the member id that the coordinator made for the request."""
    if not isinstance(step.event, Request) or getattr(step.body, "member_id", None) != "":
        return None
    for reply in step.seen.replies:
        name: str = getattr(reply.body, "member_id", "") or ""
        if name and reply.request_id == step.event.id:
            return name
    group: str = getattr(step.body, "group_id", "")
    new = _members(step, group) - (_members(before, group) if before is not None else set())
    return new.pop() if len(new) == 1 else None


def _members(step: Step, group: str) -> set[str]:
    classic, consumer = step.classic.get(group), step.consumer.get(group)
    found = set() if classic is None else {each.member_id for each in classic.members} | classic.pending_join
    return found if consumer is None else found | {each.member_id for each in consumer.members}
