"""The core beside another coordinator over one trace, step by step, up to the first difference."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from fencepost.protocol.choices import Choices
from fencepost.protocol.errors import IMPOSSIBLE
from fencepost.protocol.events import Event, TimerKind
from fencepost.protocol.profile import Profile
from fencepost.protocol.settings import Settings

from ...targets.core import CoreSession
from ...targets.ids import MemberIds
from ...targets.java_order import JavaOrder
from ...traces.observation import Observation
from .atomic import fails_within, joined
from .choices import Answer, Call, Place, WatchedChoices, other_choice, unobserved_choices
from .difference import Difference, compare_step
from .divergences import explanation

#: how often a trace runs again because the other coordinator chose another leader
_MOST_CHOICES = 50


@dataclass(frozen=True, slots=True)
class Compared:
    """The result. ``steps`` agreed. Then the trace ended, or there was a ``difference``, perhaps a known
    ``divergence``.

    ``ours`` are the core's observations, with the other's choices where they were passed in (``followed`` times)."""

    steps: int
    difference: Difference | None
    divergence: str | None
    ours: Sequence[Observation]
    followed: int = 0


def compare(
    settings: Settings,
    profile: Profile,
    events: Sequence[Event],
    ours: Sequence[Observation],
    other: Sequence[Observation],
    *,
    choices: Callable[[], Choices] = lambda: JavaOrder(MemberIds()),
) -> Compared:
    """Compare the core's observations with another's; ``choices`` makes the choices that the core was run with."""
    given: dict[Place, Answer] = {}
    other = joined(events, other)
    found = first_difference(joined(events, ours), other)
    again = None if found is None else _Again(settings, profile, choices(), given, events)
    while found is not None and again is not None:
        if len(given) < _MOST_CHOICES:
            again.go_to(events, found.event)
            choice = other_choice(again.calls, found, other[found.event])
            different = again.unobserved(events, found.event, other) if choice is None else dict([choice])
            if different.keys() - given.keys():
                given.update(different)
                # the trace was made for the first choice; later events may be impossible after the other
                events = events[: next((i for i, seen in enumerate(other) if seen.error in IMPOSSIBLE), len(events))]
                other = other[: len(events)]
                found = again.differs(events, found.event, other)
                ours = again.seen
                continue
        name = _explained(settings, profile, events[: found.event + 1], other, given, choices)
        return Compared(found.event, found, name, ours, len(given))
    return Compared(min(len(ours), len(other)), None, None, ours, len(given))


class _Again:
    """A second run of the core along a trace: its observations in ``seen``, and the answers ``given``, which may grow.

    It can undo its last step, so that trying other answers costs one step each instead of the whole run."""

    def __init__(
        self,
        settings: Settings,
        profile: Profile,
        choices: Choices,
        given: Mapping[Place, Answer],
        events: Sequence[Event],
    ) -> None:
        self.seen: list[Observation] = []
        self._whole = events  #: of which perhaps only a part is run
        self._given = given
        self._choices = WatchedChoices(choices, given)
        self._session = CoreSession(settings, profile, self._choices)
        self._before = self._session.mark(), self._choices.mark()

    @property
    def calls(self) -> Sequence[Call]:
        return self._choices.calls

    def go_to(self, events: Sequence[Event], last: int) -> None:
        """Run up to and including that event."""
        while len(self.seen) <= last and self._step(events):
            pass

    def differs(self, events: Sequence[Event], last: int, other: Sequence[Observation]) -> Difference | None:
        """Repeat the last step and continue to the first difference or the end of the trace. After another choice an
        event may be impossible; the trace then ends there."""
        self._back(last)
        del self.seen[len(events) :]
        while len(self.seen) < len(events) and self._step(events):
            index = len(self.seen) - 1
            found = compare_step(index, self._shown(index), other[index]) if index < len(other) else None
            if found is not None:
                return found
        return None

    def unobserved(self, events: Sequence[Event], last: int, other: Sequence[Observation]) -> dict[Place, Answer]:
        """Return choices of the last step that no observation shows, with answers that remove the difference; empty if
        there are none."""

        def attempt(answers: Mapping[Place, Answer]) -> tuple[bool, Sequence[Call]]:
            self._back(last)
            self._choices.given = {**self._given, **answers}
            agreed = self._step(events) and compare_step(last, self._shown(last), other[last]) is None
            return agreed, tuple(self.calls)

        try:
            return unobserved_choices(tuple(self.calls), last, attempt)
        finally:
            self._choices.given = self._given

    def _shown(self, index: int) -> Observation:
        """Return the last step as it is compared."""
        if fails_within(self._whole, index) or (index and fails_within(self._whole, index - 1)):
            return joined(self._whole, self.seen)[index]
        return self.seen[index]

    def _back(self, last: int) -> None:
        session, choices = self._before
        self._session.back_to(session)
        self._choices.back_to(choices)
        del self.seen[last:]

    def _step(self, events: Sequence[Event]) -> bool:
        """Take the next event; returns whether the core could."""
        self._choices.event = index = len(self.seen)
        self._before = self._session.mark(), self._choices.mark()
        try:
            self.seen.append(self._session.feed(events[index]))
        except ValueError:
            return False
        return True


def _explained(  # noqa: PLR0917 — the arguments of a run
    settings: Settings,
    profile: Profile,
    events: Sequence[Event],
    other: Sequence[Observation],
    given: Mapping[Place, Answer],
    choices: Callable[[], Choices],
) -> str | None:
    """Return the switches with which the core does what the other did at all these events, with the other's choices in
    the last one."""

    def agrees(changed: Profile) -> bool:
        again, last = _Again(settings, changed, choices(), given, events), len(events) - 1
        again.go_to(events, last)
        if len(again.seen) < len(events):
            return False
        found = first_difference(joined(events, again.seen), other)
        return found is None or (found.event == last and bool(again.unobserved(events, last, other)))

    return explanation(profile, agrees)


def as_far_as_recorded(seen: Sequence[Observation], recorded: Sequence[Observation]) -> list[Observation]:
    """Return the observations without parts that the other record lacks entirely: older recorders note neither the
    timer that expires offsets (O-EXP-26) nor stored offsets."""
    expiry = any(key.kind is TimerKind.EXPIRY for each in recorded for key in each.timers)
    offsets = any(each.offsets is not None for each in recorded)
    return [
        replace(
            each,
            timers={key: at for key, at in each.timers.items() if expiry or key.kind is not TimerKind.EXPIRY},
            offsets=each.offsets if offsets else None,
        )
        for each in seen
    ]


def first_difference(left: Sequence[Observation], right: Sequence[Observation]) -> Difference | None:
    """Return the first difference over the events that both have."""
    for index, (one, other) in enumerate(zip(left, right, strict=False)):
        found = compare_step(index, one, other)
        if found is not None:
            return found
    return None
