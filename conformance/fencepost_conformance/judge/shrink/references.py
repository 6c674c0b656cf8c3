"""Runs some events of a trace again, with their references adapted.

An event refers to results of earlier events: a member id that a JoinGroup got, a generation, a timer, a place in the
log. If earlier events are left out, those things get other names or do not exist. So the kept events are fed to a fresh
core one by one, and each is rewritten first:

* a member id that a kept request drew becomes the id that it draws now; one of a dropped request stays, and is then
  unknown;
* a generation keeps its distance from the group's current one, and a member epoch from the member's (for a classic
  member of a consumer group the generation is its epoch); so does a generation inside a subscription;
* a timer must be set and due, a background task must run, a failing append must exist; otherwise the event is dropped
  too.

The result is an independent trace that any target can run.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, Protocol

from fencepost.protocol import events as ev
from fencepost.protocol.consumer_messages import ConsumerGroupHeartbeatRequest
from fencepost.protocol.messages import JoinGroupRequest
from fencepost.protocol.profile import Profile
from fencepost.protocol.settings import Settings

from ...generate.subscription_generations import with_generations
from ...generate.world import Session
from ...targets.core import CoreSession
from ...targets.ids import MemberIds
from ...targets.java_order import JavaOrder
from ...targets.tracked_log import TrackedLog
from ...traces.observation import Observation

#: a generation further than this from the group's is a number, not a distance
_NEAR = 3


@dataclass(frozen=True, slots=True)
class Remade:
    """Events, the core's observation of each, and the index of the original event of each.

    ``failure``: what the core raised at the last event.
    """

    events: tuple[ev.Event, ...]
    observations: tuple[Observation, ...]
    origins: tuple[int, ...]
    failure: str | None


@dataclass(frozen=True, slots=True)
class _Context:
    """The context of an event of the original run: the id it drew, generations and epochs before it, log end after
    it."""

    drawn: str | None
    generations: Mapping[str, int]
    epochs: Mapping[tuple[str, str], int]
    end: int


class Shrinkable(Session, Protocol):
    """Runs a trace again. ``last_id``: the member id that the last event drew, None if it drew none."""

    @property
    def last_id(self) -> str | None: ...


class _NotedIds(MemberIds):
    """Remembers the last drawn id."""

    __slots__ = ("last",)

    def __init__(self) -> None:
        super().__init__()
        self.last: str | None = None

    def __call__(self, prefix: str) -> str:
        self.last = super().__call__(prefix)
        return self.last

    def uuid(self) -> str:
        self.last = super().uuid()
        return self.last


class TrackedSession(TrackedLog):
    """A coordinator with the log around it."""

    def __init__(self, session: Session) -> None:
        super().__init__()
        self.session = session
        self.ends = [0]  #: offsets at which the records of a step end
        self.after: list[int] = []  #: the end of the log after each event

    @property
    def end(self) -> int:
        """End of the log."""
        return len(self.log)

    def epochs(self) -> dict[tuple[str, str], int]:
        """Return the epoch of each member of each consumer group."""
        return {
            (name, row.member_id): row.member_epoch
            for name, view in self.session.consumer_groups.items()
            for row in view.members
        }

    def generations(self) -> dict[str, int]:
        return {name: view.generation_id for name, view in self.session.groups.items()}

    def feed(self, event: ev.Event) -> Observation:
        """Feed the event and return its observation."""
        taken = self.takes(event)
        seen = self.session.feed(event)
        self.note(event, seen, taken=taken, groups=bool(self.session.groups or self.session.consumer_groups))
        ends = [self.before] if self.loaded else [known for known in self.ends if known <= self.before]
        self.ends = [*ends, self.end]
        self.after.append(self.end)
        return seen


class _Core(CoreSession):
    """The core, with access to the ids that it draws."""

    def __init__(self, settings: Settings, profile: Profile) -> None:
        self._ids = _NotedIds()
        super().__init__(settings, profile, JavaOrder(self._ids))

    @property
    def last_id(self) -> str | None:
        return self._ids.last

    def feed(self, event: ev.Event) -> Observation:
        self._ids.last = None
        return super().feed(event)


#: begins a run of a trace
Begin = Callable[[Settings, Profile], Shrinkable]


class References:
    """Knows the references of each event of a trace. ``remake`` runs a part of it again on what ``begin`` makes;
    ``put_right`` helps to run it elsewhere."""

    def __init__(self, settings: Settings, profile: Profile, events: Sequence[ev.Event], begin: Begin = _Core) -> None:
        self.profile = profile
        self.events = events
        self._begin = begin
        self._contexts: list[_Context] = []
        session = begin(settings, profile)
        session_state = TrackedSession(session)
        for event in events:
            generations, epochs = session_state.generations(), session_state.epochs()
            # if the core raises, that is the failure to shrink
            try:
                session_state.feed(event)
                drawn = session.last_id
            except Exception:
                drawn = None
            self._contexts.append(_Context(drawn, generations, epochs, session_state.end))

    def drawn(self, index: int) -> str | None:
        """Return the member id that the event drew."""
        return self._contexts[index].drawn

    def remake(
        self, settings: Settings, kept: Collection[int], changed: Mapping[int, ev.Event] | None = None
    ) -> Remade:
        """Run the kept events (by index) again, adapted; ``changed`` holds other versions of some."""
        session = self._begin(settings, self.profile)
        session_state = TrackedSession(session)
        ids: dict[str, str] = {}
        places: dict[int, int] = {}
        events: list[ev.Event] = []
        observations: list[Observation] = []
        origins: list[int] = []
        for index in sorted(kept):
            original = (changed or {}).get(index, self.events[index])
            event = self.put_right(
                session_state,
                original,
                index,
                ids=ids,
                places=places,
                wrote=bool(observations and observations[-1].records),
            )
            if event is None:
                continue
            places[index] = len(events)
            events.append(event)
            origins.append(index)
            try:
                seen = session_state.feed(event)
            except Exception as raised:
                return Remade(tuple(events), tuple(observations), tuple(origins), f"{type(raised).__name__}: {raised}")
            observations.append(seen)
            was, now = self._contexts[index].drawn, session.last_id
            if now is not None and was is not None:
                ids[was] = now
        return Remade(tuple(events), tuple(observations), tuple(origins), None)

    def put_right(
        self,
        run: TrackedSession,
        event: ev.Event,
        index: int,
        *,
        ids: Mapping[str, str],
        places: Mapping[int, int],
        wrote: bool,
    ) -> ev.Event | None:
        """Return the event in its new form, None if it is no longer possible.

        ``ids``: new member ids by the old ones; ``places``: new positions of events of the original run; ``wrote``: the
        event before this one appended something.
        """
        if isinstance(event, ev.Request):
            return self._request(run, event, renamed(event, ids), index)
        if isinstance(event, ev.TimerFired):
            key = renamed(event.key, ids)
            if key.kind is ev.TimerKind.OPERATION and key.operation < 0:
                place = places.get(-key.operation - 1)
                if place is None:
                    return None
                key = replace(key, operation=-(place + 1))
            deadline = run.session.armed.get(key)
            return replace(event, key=key) if deadline is not None and deadline <= event.at_ms else None
        if isinstance(event, ev.TaskDone):
            return event if event.key in run.tasks else None
        if isinstance(event, ev.AppendFailed):
            return event if wrote else None
        if isinstance(event, ev.Appended):
            end = self._end(run, event.offset, index, places)
            offset = max(known for known in run.ends if known <= end)
            return replace(event, offset=offset) if offset > run.replicated else None
        if isinstance(event, ev.Load):
            return renamed(event, ids)  # type: ignore[no-any-return]
        return event

    def _request(self, run: TrackedSession, original: ev.Request, event: ev.Request, index: int) -> ev.Request:
        body: Any = event.body
        if isinstance(body, ConsumerGroupHeartbeatRequest):
            return replace(event, body=self._with_epoch(run, original.body, body, index))
        if isinstance(body, JoinGroupRequest):
            before = original.body
            body = with_generations(body, lambda epoch: self._moved(run, before, event.body, epoch, index))
            return replace(event, body=body)
        generation = getattr(body, "generation_id", None)
        if generation is None:
            return event
        return replace(
            event, body=replace(body, generation_id=self._moved(run, original.body, body, generation, index))
        )

    def _moved(self, run: TrackedSession, original: Any, body: Any, generation: int, index: int) -> int:
        """Return a generation with the same distance from the member's own, or its group's."""
        context = self._contexts[index]
        then = context.epochs.get((original.group_id, original.member_id), context.generations.get(original.group_id))
        now = run.epochs().get((body.group_id, body.member_id), run.generations().get(body.group_id))
        if then is None or now is None or abs(generation - then) > _NEAR:
            return generation
        return now + generation - then

    def _end(self, run: TrackedSession, offset: int, index: int, places: Mapping[int, int]) -> int:
        """Return the log end that corresponds to ``offset`` in the original run."""
        if offset == self._contexts[index].end:
            return run.end
        wrote = [then for then in range(index) if self._contexts[then].end <= offset and then in places]
        return min(run.after[places[wrote[-1]]], run.end) if wrote else 0

    def _with_epoch(
        self, run: TrackedSession, original: Any, body: ConsumerGroupHeartbeatRequest, index: int
    ) -> ConsumerGroupHeartbeatRequest:
        epoch = body.member_epoch
        then = self._contexts[index].epochs.get((original.group_id, original.member_id))
        now = run.epochs().get((body.group_id, body.member_id))
        if then is None or now is None or epoch <= 0 or abs(epoch - then) > _NEAR:
            return body
        return replace(body, member_epoch=now + epoch - then)


def renamed(value: Any, ids: Mapping[str, str]) -> Any:
    """Return the value with every member id replaced by its new one."""
    if isinstance(value, str):
        return ids.get(value, value)
    if isinstance(value, tuple):
        return tuple(renamed(inner, ids) for inner in value)
    if is_dataclass(value) and not isinstance(value, type):
        changes = {}
        for field in fields(value):
            old = getattr(value, field.name)
            new = renamed(old, ids)
            if new is not old and new != old:
                changes[field.name] = new
        return replace(value, **changes) if changes else value
    return value
