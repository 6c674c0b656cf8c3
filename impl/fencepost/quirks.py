"""How Kafka's deviations are kept apart from the intended protocol.

The functions of the coordinator and of the members contain only the intended behaviour. Where a Kafka release differs,
because of a bug or because it is older, the function is marked with ``varies``. The release's behaviour is a separate
function, marked with ``quirk``, in the package ``quirks`` next to it. The mark contains the profile's switch that
enables it, and the function that it replaces.

    @varies
    def may_compute(step: Step, group: ConsumerGroup) -> bool:
        '''Whether the assignment interval has passed (M-TGT-08).'''

    @quirk("old_no_assignment_interval", of=target.may_compute)
    def computes_always(step: Step, group: ConsumerGroup) -> bool:
        '''Before 4.3 there is no such interval (V-11).'''

The first argument of such a function is the working object (a step, a draft, a turn) or a state. Its ``quirks`` are
those of the profile, or None if no switch is on. So each such function costs the intended protocol one comparison with
None, and no quirk is ever called. If several quirks of one function are on, the first in the source is used. A quirk
that also needs the intended behaviour calls ``intended(function)``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache, wraps
from inspect import signature
from typing import Any, Concatenate, Final, ParamSpec, Protocol, TypeVar

from fencepost.protocol.profile import SWITCH_NAMES, Profile


class _Instead(dict[Callable[..., Any], Callable[..., Any]]):
    """The function to use for each intended function, computed on first use."""

    def __init__(self, profile: Profile) -> None:
        super().__init__()
        self._profile = profile

    def __missing__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        on = (each.function for each in _QUIRKS.get(function, ()) if getattr(self._profile, each.switch))
        found = self[function] = next(on, function)
        return found


class Quirks:
    """The quirks of a profile; get it with ``quirks_of``. Each profile has one such object."""

    __slots__ = ("instead", "profile")

    def __init__(self, profile: Profile) -> None:
        self.profile: Final = profile
        #: the replacement of an intended function, or the function itself
        self.instead: Final[Mapping[Callable[..., Any], Callable[..., Any]]] = _Instead(profile)

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Profile]]:
        return quirks_of, (self.profile,)


class HasQuirks(Protocol):
    """An object that belongs to a profile."""

    @property
    def quirks(self) -> Quirks | None: ...


@dataclass(frozen=True, slots=True)
class Quirk:
    """One difference of Kafka: ``function`` replaces ``intended`` if ``switch`` is on."""

    switch: str
    intended: Callable[..., Any]
    function: Callable[..., Any]


_QUIRKS: Final[dict[Callable[..., Any], list[Quirk]]] = {}

H = TypeVar("H", bound=HasQuirks)
P = ParamSpec("P")
Q = ParamSpec("Q")
R = TypeVar("R")


@lru_cache(maxsize=256)
def quirks_of(profile: Profile) -> Quirks | None:
    """Return the quirks of this profile; None for the intended protocol."""
    return Quirks(profile) if any(getattr(profile, name) for name in SWITCH_NAMES) else None


def varies(function: Callable[Concatenate[H, P], R]) -> Callable[Concatenate[H, P], R]:
    """Mark a function from which some Kafka release differs. It is called with positional arguments."""
    parameters = signature(function).parameters.values()
    positional = all(each.kind is each.POSITIONAL_OR_KEYWORD for each in parameters)
    chooser = _CHOOSERS.get(len(parameters), _of_any) if positional else _of_any
    chosen: Callable[Concatenate[H, P], R] = wraps(function)(chooser(function))
    return chosen


def _of_any(function: Callable[..., Any]) -> Callable[..., Any]:
    def chosen(subject: Any, /, *args: Any, **kwargs: Any) -> Any:
        quirks = subject.quirks
        return (function if quirks is None else quirks.instead[function])(subject, *args, **kwargs)

    return chosen


# The same without packing and unpacking of arguments, which would take longer than the check for quirks.


def _of_one(function: Callable[..., Any]) -> Callable[..., Any]:
    def chosen(subject: Any) -> Any:
        quirks = subject.quirks
        return function(subject) if quirks is None else quirks.instead[function](subject)

    return chosen


def _of_two(function: Callable[..., Any]) -> Callable[..., Any]:
    def chosen(subject: Any, one: Any) -> Any:
        quirks = subject.quirks
        return function(subject, one) if quirks is None else quirks.instead[function](subject, one)

    return chosen


def _of_three(function: Callable[..., Any]) -> Callable[..., Any]:
    def chosen(subject: Any, one: Any, two: Any) -> Any:
        quirks = subject.quirks
        return function(subject, one, two) if quirks is None else quirks.instead[function](subject, one, two)

    return chosen


def _of_four(function: Callable[..., Any]) -> Callable[..., Any]:
    def chosen(subject: Any, one: Any, two: Any, three: Any) -> Any:
        quirks = subject.quirks
        return (function if quirks is None else quirks.instead[function])(subject, one, two, three)

    return chosen


_CHOOSERS: Final = {1: _of_one, 2: _of_two, 3: _of_three, 4: _of_four}


def quirk(switch: str, *, of: Callable[Q, R]) -> Callable[[Callable[Q, R]], Callable[Q, R]]:
    """Mark the replacement of the function ``of`` for when the switch is on. Raises ``ValueError`` for an unknown
    switch, or if ``of`` is not marked with ``varies``."""

    def register(function: Callable[Q, R]) -> Callable[Q, R]:
        if switch not in SWITCH_NAMES:
            raise ValueError(f"no profile has a switch {switch!r}; add it to fencepost.protocol.profile")
        original = intended(of)
        _QUIRKS.setdefault(original, []).append(Quirk(switch, original, function))
        return function

    return register


def intended(function: Callable[Q, R]) -> Callable[Q, R]:
    """Return the intended function behind ``varies``. Raises ``ValueError`` for a function without that mark."""
    original: Callable[Q, R] | None = getattr(function, "__wrapped__", None)
    if original is None:
        raise ValueError(f"{function.__module__}.{function.__qualname__} is not marked with varies")
    return original


def registered() -> tuple[Quirk, ...]:
    """Return all quirks in loaded modules."""
    return tuple(each for quirks in _QUIRKS.values() for each in quirks)
