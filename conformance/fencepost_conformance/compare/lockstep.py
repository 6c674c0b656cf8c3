"""The core against another coordinator over one trace, step by step, up to the first difference."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from fencepost.protocol.choices import Choices
from fencepost.protocol.errors import IMPOSSIBLE
from fencepost.protocol.events import Event
from fencepost.protocol.profile import Profile
from fencepost.protocol.settings import Settings

from ..generate.java_order import JavaOrder
from ..targets.base import Observation
from ..targets.core import CoreSession
from ..targets.ids import MemberIds
from .choices import Answer, Call, Place, WatchedChoices, other_choice, untold_choices
from .difference import Difference, compare_step
from .divergences import explanation

#: how often a trace is run again because the other coordinator chose another leader
_MOST_CHOICES = 50


@dataclass(frozen=True, slots=True)
class Compared:
    """``steps`` agreed. Then the trace ended, or came a ``difference``, which may be a known ``divergence``.

    ``ours`` are the core's observations, with the other's choices where they were handed in (``followed`` times)."""

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
    while True:
        found = first_difference(ours, other)
        if found is None:
            return Compared(min(len(ours), len(other)), None, None, ours, len(given))
        if len(given) < _MOST_CHOICES:
            watched = WatchedChoices(choices(), given)
            _run(settings, profile, events[: found.event + 1], watched)
            told = other_choice(watched.calls, found, other[found.event])
            different = (
                _untold(settings, profile, events[: found.event + 1], other, watched.calls, found, given, choices)
                if told is None
                else dict([told])
            )
            if different.keys() - given.keys():
                given.update(different)
                # the trace was made for the first choice; what comes later may be impossible after the other
                events = events[: next((i for i, seen in enumerate(other) if seen.error in IMPOSSIBLE), len(events))]
                other = other[: len(events)]
                ours = _run(settings, profile, events, WatchedChoices(choices(), given))
                continue
        name = _explained(settings, profile, events[: found.event + 1], other, given, choices)
        return Compared(found.event, found, name, ours, len(given))


def _untold(  # noqa: PLR0917 — what a run needs
    settings: Settings,
    profile: Profile,
    events: Sequence[Event],
    other: Sequence[Observation],
    calls: Sequence[Call],
    found: Difference,
    given: Mapping[Place, Answer],
    choices: Callable[[], Choices],
) -> dict[Place, Answer]:
    """The choices that no observation tells, with answers under which the difference is none; empty if there are none
    such."""

    def attempt(answers: Mapping[Place, Answer]) -> tuple[bool, Sequence[Call]]:
        watched = WatchedChoices(choices(), {**given, **answers})
        ours = _run(settings, profile, events, watched)
        return len(ours) == len(events) and first_difference(ours, other) is None, watched.calls

    return untold_choices(calls, found.event, attempt)


def _explained(  # noqa: PLR0917 — what a run needs
    settings: Settings,
    profile: Profile,
    events: Sequence[Event],
    other: Sequence[Observation],
    given: Mapping[Place, Answer],
    choices: Callable[[], Choices],
) -> str | None:
    """The switches with which the core does what the other did at every one of these events, the choices of the last
    one being the other's."""

    def agrees(changed: Profile) -> bool:
        watched = WatchedChoices(choices(), given)
        ours = _run(settings, changed, events, watched)
        if len(ours) < len(events):
            return False
        found = first_difference(ours, other)
        return found is None or (
            found.event == len(events) - 1
            and bool(_untold(settings, changed, events, other, watched.calls, found, given, choices))
        )

    return explanation(profile, agrees)


def first_difference(left: Sequence[Observation], right: Sequence[Observation]) -> Difference | None:
    """The first event at which the two did not do the same, as far as both go."""
    for index, (one, other) in enumerate(zip(left, right, strict=False)):
        found = compare_step(index, one, other)
        if found is not None:
            return found
    return None


def _run(settings: Settings, profile: Profile, events: Sequence[Event], choices: WatchedChoices) -> list[Observation]:
    session = CoreSession(settings, profile, choices)
    observations = []
    for index, event in enumerate(events):
        choices.event = index
        try:
            observations.append(session.feed(event))
        except ValueError:
            # with another leader the group went another way, and this event has no place in it: the trace ends here
            break
    return observations
