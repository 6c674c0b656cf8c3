"""Running some of the events of a trace again, with what they refer to put right.

An event names things that earlier events made: a member id that a JoinGroup was given, a generation, a timer, a place
in the log. If earlier events are left out, those things get other names or are not there. So the events that are kept
are fed to a fresh core one by one, and each is rewritten first:

* a member id that a kept request drew becomes the id that it draws now; of one that was left out it stays what it was,
  an id that nobody has;
* a generation keeps its distance from the group's present one, a member epoch from the member's (of a classic member
  of a consumer group its epoch is its generation), and so does the generation inside of a subscription;
* a timer must be set and due, work beside be under way, an append have something to speak of; else the event is dropped
  as well.

What comes out is a trace of its own that any target can run.
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

from ..generate.java_order import JavaOrder
from ..generate.world import Session
from ..log_around import LogAround
from ..targets.base import Observation
from ..targets.core import CoreSession
from ..targets.ids import MemberIds
from ..told_generations import with_generations

#: a generation further than this from the group's is meant as a number, not as a distance
_NEAR = 3


@dataclass(frozen=True, slots=True)
class Remade:
    """Events, what the core did at each, and of each the index of the event it was made from.

    ``failure``: the core raised at the last event.
    """

    events: tuple[ev.Event, ...]
    observations: tuple[Observation, ...]
    origins: tuple[int, ...]
    failure: str | None


@dataclass(frozen=True, slots=True)
class _Context:
    """Of one event of the original run: the id it drew, generations and member epochs before it, log end after it."""

    drawn: str | None
    generations: Mapping[str, int]
    epochs: Mapping[tuple[str, str], int]
    end: int


class Shrinkable(Session, Protocol):
    """What a trace is run on again. ``last_id``: the member id that the last event drew, None if it drew none."""

    @property
    def last_id(self) -> str | None: ...


class _NotedIds(MemberIds):
    """Remembers what was drawn last."""

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


class Around(LogAround):
    """A coordinator with the log around it."""

    def __init__(self, session: Session) -> None:
        super().__init__()
        self.session = session
        self.ends = [0]  #: places at which the records of a step end
        self.after: list[int] = []  #: the end of the log after each event

    @property
    def end(self) -> int:
        """Of the log."""
        return len(self.log)

    def epochs(self) -> dict[tuple[str, str], int]:
        """The epoch of each member of each consumer group."""
        return {
            (name, row.member_id): row.member_epoch
            for name, view in self.session.consumer_groups.items()
            for row in view.members
        }

    def generations(self) -> dict[str, int]:
        return {name: view.generation_id for name, view in self.session.groups.items()}

    def feed(self, event: ev.Event) -> Observation:
        """What the event did."""
        taken = self.takes(event)
        seen = self.session.feed(event)
        self.note(event, seen, taken=taken, groups=bool(self.session.groups or self.session.consumer_groups))
        ends = [self.before] if self.loaded else [known for known in self.ends if known <= self.before]
        self.ends = [*ends, self.end]
        self.after.append(self.end)
        return seen


class _Core(CoreSession):
    """The core, which tells the ids that it draws."""

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
    """Knows what each event of a trace refers to; ``remake`` runs a part of it again on what ``begin`` makes,
    ``put_right`` helps to run it elsewhere."""

    def __init__(self, settings: Settings, profile: Profile, events: Sequence[ev.Event], begin: Begin = _Core) -> None:
        self.profile = profile
        self.events = events
        self._begin = begin
        self._contexts: list[_Context] = []
        session = begin(settings, profile)
        around = Around(session)
        for event in events:
            generations, epochs = around.generations(), around.epochs()
            # where the core raises, that is what is being shrunk
            try:
                around.feed(event)
                drawn = session.last_id
            except Exception:
                drawn = None
            self._contexts.append(_Context(drawn, generations, epochs, around.end))

    def drawn(self, index: int) -> str | None:
        """The member id that the event drew."""
        return self._contexts[index].drawn

    def remake(
        self, settings: Settings, kept: Collection[int], changed: Mapping[int, ev.Event] | None = None
    ) -> Remade:
        """The kept events (by index), put right; ``changed`` holds other versions of some."""
        session = self._begin(settings, self.profile)
        around = Around(session)
        ids: dict[str, str] = {}
        places: dict[int, int] = {}
        events: list[ev.Event] = []
        observations: list[Observation] = []
        origins: list[int] = []
        for index in sorted(kept):
            original = (changed or {}).get(index, self.events[index])
            event = self.put_right(
                around,
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
                seen = around.feed(event)
            except Exception as raised:
                return Remade(tuple(events), tuple(observations), tuple(origins), f"{type(raised).__name__}: {raised}")
            observations.append(seen)
            was, now = self._contexts[index].drawn, session.last_id
            if now is not None and was is not None:
                ids[was] = now
        return Remade(tuple(events), tuple(observations), tuple(origins), None)

    def put_right(
        self,
        run: Around,
        event: ev.Event,
        index: int,
        *,
        ids: Mapping[str, str],
        places: Mapping[int, int],
        wrote: bool,
    ) -> ev.Event | None:
        """The event as it must read now, None if it makes no sense any more.

        ``ids``: what became of the member ids that were drawn; ``places``: where events of the original run came to
        stand; ``wrote``: the event before this one appended something.
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

    def _request(self, run: Around, original: ev.Request, event: ev.Request, index: int) -> ev.Request:
        body: Any = event.body
        if isinstance(body, ConsumerGroupHeartbeatRequest):
            return replace(event, body=self._with_epoch(run, original.body, body, index))
        if isinstance(body, JoinGroupRequest):
            before = original.body
            body = with_generations(body, lambda told: self._moved(run, before, event.body, told, index))
            return replace(event, body=body)
        generation = getattr(body, "generation_id", None)
        if generation is None:
            return event
        return replace(
            event, body=replace(body, generation_id=self._moved(run, original.body, body, generation, index))
        )

    def _moved(self, run: Around, original: Any, body: Any, generation: int, index: int) -> int:
        """A generation that keeps its distance from the one that the member has, or its group."""
        context = self._contexts[index]
        then = context.epochs.get((original.group_id, original.member_id), context.generations.get(original.group_id))
        now = run.epochs().get((body.group_id, body.member_id), run.generations().get(body.group_id))
        if then is None or now is None or abs(generation - then) > _NEAR:
            return generation
        return now + generation - then

    def _end(self, run: Around, offset: int, index: int, places: Mapping[int, int]) -> int:
        """Where the log ends now that then ended at ``offset``."""
        if offset == self._contexts[index].end:
            return run.end
        wrote = [then for then in range(index) if self._contexts[then].end <= offset and then in places]
        return min(run.after[places[wrote[-1]]], run.end) if wrote else 0

    def _with_epoch(
        self, run: Around, original: Any, body: ConsumerGroupHeartbeatRequest, index: int
    ) -> ConsumerGroupHeartbeatRequest:
        epoch = body.member_epoch
        then = self._contexts[index].epochs.get((original.group_id, original.member_id))
        now = run.epochs().get((body.group_id, body.member_id))
        if then is None or now is None or epoch <= 0 or abs(epoch - then) > _NEAR:
            return body
        return replace(body, member_epoch=now + epoch - then)


def renamed(value: Any, ids: Mapping[str, str]) -> Any:
    """The value with every member id replaced by its new one."""
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
