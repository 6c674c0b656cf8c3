"""The bundled core as a target, and a session with it that runs event by event."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from fencepost import coordinator
from fencepost.coordinator import CoordinatorState
from fencepost.functions import KafkaFunctions
from fencepost.protocol.choices import Choices
from fencepost.protocol.consumer_view import ConsumerGroupView
from fencepost.protocol.errors import IllegalEvent
from fencepost.protocol.events import Event, Reply, Request, SetTimer, TimerFired, TimerKey
from fencepost.protocol.offset_view import OffsetsView
from fencepost.protocol.profile import Profile
from fencepost.protocol.settings import Settings
from fencepost.protocol.view import GroupView

from ..traces.observation import Observation
from .ids import MemberIds
from .java_order import JavaOrder, WithoutHyphens
from .wire_form import record_form, wire_form

_FUNCTIONS = KafkaFunctions()


@dataclass(frozen=True, slots=True)
class _Mark:
    """The whole state of a session."""

    state: CoordinatorState
    versions: dict[int, int]
    armed: dict[TimerKey, int]
    groups: dict[str, GroupView]
    consumer_groups: dict[str, ConsumerGroupView]
    offsets: OffsetsView


class CoreSession:
    """A coordinator that takes one event at a time; its answers are shown as their version carries them.

    ``armed`` holds the timers that are set, key to absolute deadline in ms; ``groups`` and ``consumer_groups`` the
    views after the last event.
    """

    def __init__(
        self,
        settings: Settings,
        profile: Profile,
        choices: Choices,
    ) -> None:
        self._state = coordinator.initial_state(settings, profile, functions=_FUNCTIONS)
        self._choices = WithoutHyphens(choices) if profile.draws_no_hyphens else choices
        self._versions: dict[int, int] = {}
        self.armed: dict[TimerKey, int] = {}
        self.groups: dict[str, GroupView] = {}
        self.consumer_groups: dict[str, ConsumerGroupView] = {}
        self.offsets = OffsetsView()

    def feed(self, event: Event) -> Observation:
        """Handle the event and return what it did. Raises what the core raises, including ``IllegalEvent``."""
        old = self._state
        self._state, outcome = coordinator.step(old, event, self._choices)
        timers = self._timers(event, outcome.timers)
        if isinstance(event, Request):
            self._versions[event.id] = event.version
        replies = tuple(
            [
                Reply(reply.request_id, wire_form(reply.body, self._versions.pop(reply.request_id)))
                for reply in outcome.replies
            ]
        )
        groups: dict[str, GroupView | None] = {}
        consumer_groups: dict[str, ConsumerGroupView | None] = {}
        if touched := self._touched(old):
            groups = _changes(touched, self.groups, partial(coordinator.view, self._state))
            consumer_groups = _changes(touched, self.consumer_groups, partial(coordinator.consumer_view, self._state))
        return Observation(
            tuple([record_form(record) for record in outcome.records]),
            replies,
            timers,
            groups,
            consumer_groups=consumer_groups,
            tasks=outcome.tasks,
            offsets=None if self._state.offsets is old.offsets else self._changed_offsets(),
        )

    def _changed_offsets(self) -> OffsetsView | None:
        """Return all offsets, None if they have not changed."""
        before, self.offsets = self.offsets, coordinator.offsets_view(self._state)
        return None if self.offsets == before else self.offsets

    def mark(self) -> _Mark:
        """Return the current state for ``back_to``. The choices are not part of it."""
        return _Mark(
            self._state,
            dict(self._versions),
            dict(self.armed),
            dict(self.groups),
            dict(self.consumer_groups),
            self.offsets,
        )

    def back_to(self, mark: _Mark) -> None:
        """Return to a mark, as if nothing had been fed since; a mark can be used any number of times."""
        self._state, self._versions = mark.state, dict(mark.versions)
        self.armed = dict(mark.armed)
        self.groups, self.consumer_groups = dict(mark.groups), dict(mark.consumer_groups)
        self.offsets = mark.offsets

    def offer(self, event: Event) -> Observation:
        """Handle the event; if the core rejects it, return an observation with only that ``error``."""
        try:
            return self.feed(event)
        except IllegalEvent as refused:
            return Observation(error=refused.reason)

    def _timers(self, event: Event, commands: Sequence[object]) -> dict[TimerKey, int | None]:
        before: dict[TimerKey, int | None] = {}
        armed = self.armed
        if isinstance(event, TimerFired):
            before[event.key] = armed.pop(event.key, None)
        for command in commands:
            key: TimerKey = command.key  # type: ignore[attr-defined]
            if key not in before:
                before[key] = armed.get(key)
            if isinstance(command, SetTimer):
                armed[key] = event.at_ms + command.delay_ms
            else:
                armed.pop(key, None)
        return {key: due for key, old in before.items() if (due := armed.get(key)) != old}

    def _touched(self, old: CoordinatorState) -> list[str]:
        """Return the names whose group object has changed; groups are immutable, so no other group has changed."""
        before, after = old.groups, self._state.groups
        if before is after:
            return []
        return [name for name in before if name not in after] + [
            name for name, group in after.items() if before.get(name) is not group
        ]


_View = TypeVar("_View")


def _changes(
    names: Sequence[str], known: dict[str, _View], view: Callable[[str], _View | None]
) -> dict[str, _View | None]:
    """Return the views of these groups that have changed, and note them as known; None for a removed group."""
    changed: dict[str, _View | None] = {}
    for name in names:
        now = view(name)
        if now == known.get(name):
            continue
        changed[name] = now
        if now is None:
            del known[name]
        else:
            known[name] = now
    return changed


class Core:
    """The core over whole traces; ``choices`` makes the choices of one trace, by default as Kafka does."""

    name = "core"

    def __init__(self, choices: Callable[[], Choices] = lambda: JavaOrder(MemberIds())) -> None:
        self._choices = choices

    def run(self, settings: Settings, profile: Profile, events: Sequence[Event]) -> list[Observation]:
        session = CoreSession(settings, profile, self._choices())
        return [session.offer(event) for event in events]

    def run_until_raised(
        self, settings: Settings, profile: Profile, events: Sequence[Event]
    ) -> tuple[list[Observation], str | None]:
        """As ``run``, but if the core raises: return the observations before that event, and what it raised."""
        session = CoreSession(settings, profile, self._choices())
        observations: list[Observation] = []
        for event in events:
            try:
                observations.append(session.feed(event))
            except Exception as raised:
                return observations, f"{type(raised).__name__}: {raised}"
        return observations, None

    def close(self) -> None:
        """Do nothing: the core holds no resources."""
