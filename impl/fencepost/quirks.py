"""How what Kafka does otherwise stands apart from the protocol as it was meant.

The functions of the coordinator and of the members say what is intended, and nothing else. Where a release of Kafka
does something else, by a fault or because it is older, the function is marked with ``varies``, and what that release
does is a function of its own, marked with ``quirk``, in the package ``quirks`` beside it: it names the switch of the
profile that turns it on, and the function that it stands in for.

    @varies
    def may_compute(step: Step, group: ConsumerGroup) -> bool:
        '''Whether the assignment interval has passed (M-TGT-08).'''

    @quirk("old_no_assignment_interval", of=target.may_compute)
    def computes_always(step: Step, group: ConsumerGroup) -> bool:
        '''Before 4.3 there is no such interval (V-11).'''

The first argument of such a function is what is under way (a step, a draft, a turn) or a state: it has the ``quirks``
of its profile, None if nothing is switched on. So the intended protocol pays one look at None for each such function,
and none of the quirks is ever loaded into its way. If several quirks of one function are on, the one that was written
down first is taken; a quirk that goes on where the intended function goes calls ``intended(function)``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache, wraps
from inspect import signature
from typing import Any, Concatenate, Final, ParamSpec, Protocol, TypeVar

from fencepost.protocol.profile import SWITCH_NAMES, Profile


class _Instead(dict[Callable[..., Any], Callable[..., Any]]):
    """Filled as it is asked for."""

    def __init__(self, profile: Profile) -> None:
        super().__init__()
        self._profile = profile

    def __missing__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        on = (each.function for each in _QUIRKS.get(function, ()) if getattr(self._profile, each.switch))
        found = self[function] = next(on, function)
        return found


class Quirks:
    """What a profile does otherwise. Two of one profile are one object; make it with ``quirks_of``."""

    __slots__ = ("instead", "profile")

    def __init__(self, profile: Profile) -> None:
        self.profile: Final = profile
        #: what stands in for an intended function, or the function itself
        self.instead: Final[Mapping[Callable[..., Any], Callable[..., Any]]] = _Instead(profile)

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Profile]]:
        return quirks_of, (self.profile,)


class HasQuirks(Protocol):
    """What is under way under some profile."""

    @property
    def quirks(self) -> Quirks | None: ...


@dataclass(frozen=True, slots=True)
class Quirk:
    """One thing that Kafka does otherwise: ``function`` instead of ``intended`` where ``switch`` is on."""

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
    """What this profile does otherwise; None if it is the intended protocol."""
    return Quirks(profile) if any(getattr(profile, name) for name in SWITCH_NAMES) else None


def varies(function: Callable[Concatenate[H, P], R]) -> Callable[Concatenate[H, P], R]:
    """Marks a function for which some release of Kafka does something else. It is called with positional arguments."""
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


# The same without packing and unpacking of arguments, which would take longer than the look at the quirks.


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
    """Marks what is done instead of the function ``of`` where the switch is on. Raises ``ValueError`` for a switch
    that no profile has, or a function that does not vary."""

    def register(function: Callable[Q, R]) -> Callable[Q, R]:
        if switch not in SWITCH_NAMES:
            raise ValueError(f"no profile has a switch {switch!r}")
        original = intended(of)
        _QUIRKS.setdefault(original, []).append(Quirk(switch, original, function))
        return function

    return register


def intended(function: Callable[Q, R]) -> Callable[Q, R]:
    """A function that varies, as it was meant. Raises ``ValueError`` for one that does not vary."""
    original: Callable[Q, R] | None = getattr(function, "__wrapped__", None)
    if original is None:
        raise ValueError(f"{function.__module__}.{function.__qualname__} is not marked with varies")
    return original


def registered() -> tuple[Quirk, ...]:
    """All quirks of what is loaded."""
    return tuple(each for quirks in _QUIRKS.values() for each in quirks)
