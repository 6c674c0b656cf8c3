"""Played traces: what a coordinator did with the events of a finding, step by step, for judges to read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fencepost.protocol.consumer_view import ConsumerGroupView
from fencepost.protocol.events import Event, Request, TaskKey, TimerKey, Topic
from fencepost.protocol.events import TopicsChanged as TopicsChangedEvent
from fencepost.protocol.messages import RequestBody, ResponseBody
from fencepost.protocol.records import Record
from fencepost.protocol.settings import Settings
from fencepost.protocol.view import GroupView

from ...traces.observation import Observation
from ..shrink.references import TrackedSession


@dataclass(frozen=True, slots=True)
class Step:
    """One event, its observation, and the state after it. ``origin``: position of the event in the finding's trace,
    None for a probe. ``log``: the records in the log; ``replicated``: how many are replicated."""

    event: Event
    origin: int | None
    seen: Observation
    classic: Mapping[str, GroupView]
    consumer: Mapping[str, ConsumerGroupView]
    armed: Mapping[TimerKey, int]
    log: tuple[Record, ...]
    replicated: int
    tasks: frozenset[TaskKey]

    @property
    def quiet(self) -> bool:
        """Whether all written records are replicated."""
        return self.replicated == len(self.log)

    @property
    def body(self) -> RequestBody | None:
        """The body, if the event is a request."""
        return self.event.body if isinstance(self.event, Request) else None


@dataclass(frozen=True, slots=True)
class PlayedTrace:
    """A finding's trace as a target played it. ``dropped``: events of the trace that could not be played, such as a
    timer that is not set there, with their positions in the trace."""

    settings: Settings
    steps: tuple[Step, ...]
    dropped: tuple[tuple[int, Event], ...] = ()
    requests: Mapping[int, tuple[int, Request]] = field(default_factory=dict)  #: by id, with its step
    answers: Mapping[int, tuple[int, ResponseBody]] = field(default_factory=dict)  #: by request, with its step

    @property
    def last(self) -> Step:
        return self.steps[-1]

    def before(self, step: int) -> Step:
        """Return the step before this one. The first two only announce the topics and load the log."""
        return self.steps[max(step - 1, 0)]

    def asked(self, *kinds: type[RequestBody]) -> Iterator[tuple[int, Any, ResponseBody | None]]:
        """Yield the requests of these kinds: step, body, and the answer or None."""
        for number, (step, request) in self.requests.items():
            if isinstance(request.body, kinds):
                yield step, request.body, self.answers[number][1] if number in self.answers else None

    def waiting(self, step: int) -> list[Request]:
        """Return the requests that are open after the step."""
        found = []
        for number, (asked, request) in self.requests.items():
            answered = self.answers.get(number)
            if asked <= step and (answered is None or answered[0] > step):
                found.append(request)
        return found

    def topics(self, step: int) -> tuple[Topic, ...]:
        """Return the topics as the coordinator knows them after the step."""
        images = [each.event for each in self.steps[: step + 1] if isinstance(each.event, TopicsChangedEvent)]
        return images[-1].topics if images else ()


class _RecordedSession:
    """A session that returns recorded observations. Feed it in order."""

    def __init__(self, observations: Sequence[Observation]) -> None:
        self._observations = iter(observations)
        self.armed: dict[TimerKey, int] = {}
        self.groups: dict[str, GroupView] = {}
        self.consumer_groups: dict[str, ConsumerGroupView] = {}

    def feed(self, event: Event) -> Observation:
        del event
        seen = next(self._observations)
        for key, deadline in seen.timers.items():
            _put(self.armed, key, deadline)
        for name, view in seen.groups.items():
            _put(self.groups, name, view)
        for name, shown in seen.consumer_groups.items():
            _put(self.consumer_groups, name, shown)
        return seen


def _put(known: dict[Any, Any], key: object, value: object) -> None:
    if value is None:
        known.pop(key, None)
    else:
        known[key] = value


def played_trace_of(
    settings: Settings,
    events: Sequence[Event],
    origins: Sequence[int | None],
    observations: Sequence[Observation],
    dropped: Sequence[tuple[int, Event]] = (),
) -> tuple[PlayedTrace, TrackedSession]:
    """Return the played trace of these events, and the coordinator's surroundings at its end."""
    session_state = TrackedSession(_RecordedSession(observations))
    steps: list[Step] = []
    requests: dict[int, tuple[int, Request]] = {}
    answers: dict[int, tuple[int, ResponseBody]] = {}
    for place, (event, origin) in enumerate(zip(events, origins, strict=True)):
        seen = session_state.feed(event)
        if isinstance(event, Request):
            requests[event.id] = (place, event)
        for reply in seen.replies:
            answers[reply.request_id] = (place, reply.body)
        session = session_state.session
        views = dict(session.groups), dict(session.consumer_groups), dict(session.armed)
        steps.append(
            Step(
                event,
                origin,
                seen,
                *views,
                tuple(session_state.log),
                session_state.replicated,
                frozenset(session_state.tasks),
            )
        )
    return PlayedTrace(settings, tuple(steps), tuple(dropped), requests, answers), session_state
