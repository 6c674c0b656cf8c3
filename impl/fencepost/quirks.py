"""How Kafka's deviations are kept apart from the intended protocol.

The functions of the coordinator and of the members contain only the intended behaviour. Where a Kafka release differs,
because of a bug or because it is older, the function is marked with ``varies``. The release's behaviour is a separate
function, marked with ``quirk``, in the package ``quirks`` next to it. The mark contains the profile's switch that
enables it, and the function that it changes.

    @varies
    def stored(step: Step, group: ConsumerGroup, member: ConsumerMember) -> Share:
        '''The stored target of a member (M-HB-07).'''

    @quirk("fault_new_instance_has_no_target", of=target.stored)
    def new_instance_has_no_target(call_next: Next[Share], step: Step, …) -> Share:
        '''Kafka only looks for the member that has the instance id (M-HB-07, LIV-16).'''

The first argument of a function that varies is the working object (a step, a draft, a turn) or a state. Its ``quirks``
are those of the profile, or None if no switch is on. So each such function costs the intended protocol one comparison
with None.

A quirk gets the function that it changes as its first argument: the intended one, or the next quirk if several switches
of the function are on. A quirk that replaces the function names this argument ``_``. ``quirk_order`` declares which
quirk comes first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import lru_cache, partial, wraps
from inspect import signature
from typing import Any, Concatenate, Final, ParamSpec, Protocol, TypeAlias, TypeVar

from fencepost.protocol.profile import SWITCH_NAMES, Profile
from fencepost.quirk_order import ORDER


class _Instead(dict[Callable[..., Any], Callable[..., Any]]):
    """The function to use for each intended function, computed on first use."""

    def __init__(self, profile: Profile) -> None:
        super().__init__()
        self._profile = profile

    def __missing__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        on = [each.function for each in _QUIRKS.get(function, ()) if each.is_on(self._profile)]
        found = self[function] = composed(function, on)
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
    """One difference of Kafka: ``function`` changes ``intended`` if one of the switches is on."""

    switches: tuple[str, ...]
    intended: Callable[..., Any]
    function: Callable[..., Any]

    def is_on(self, profile: Profile) -> bool:
        """Whether the profile has this difference."""
        return any(getattr(profile, each) for each in self.switches)


_QUIRKS: Final[dict[Callable[..., Any], list[Quirk]]] = {}

H = TypeVar("H", bound=HasQuirks)
P = ParamSpec("P")
Q = ParamSpec("Q")
R = TypeVar("R")

#: The function that a quirk changes: the intended one, or the next quirk.
Next: TypeAlias = Callable[..., R]


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


def quirk(
    *switches: str, of: Callable[Q, R]
) -> Callable[[Callable[Concatenate[Next[R], Q], R]], Callable[Concatenate[Next[R], Q], R]]:
    """Mark a change of the function ``of`` for when one of the switches is on. Raises ``ValueError`` for an unknown
    switch, if ``of`` is not marked with ``varies``, or if its order with another quirk is not declared."""

    def register(function: Callable[Concatenate[Next[R], Q], R]) -> Callable[Concatenate[Next[R], Q], R]:
        for switch in switches:
            if switch not in SWITCH_NAMES:
                raise ValueError(f"no profile has a switch {switch!r}; add it to fencepost.protocol.profile")
        original: Callable[..., Any] | None = getattr(of, "__wrapped__", None)
        if original is None:
            raise ValueError(f"{name_of(of)} is not marked with varies")
        found = [*_QUIRKS.get(original, ()), Quirk(switches, original, function)]
        _QUIRKS[original] = found if len(found) == 1 else _in_order(name_of(of), found)
        return function

    return register


def _in_order(name: str, quirks: list[Quirk]) -> list[Quirk]:
    """The quirks of the function in their declared order. Raises ``ValueError`` if there is none."""
    order = ORDER.get(name, ())
    unknown = [each.switches[0] for each in quirks if each.switches[0] not in order]
    if unknown:
        raise ValueError(
            f"{' and '.join(each.switches[0] for each in quirks)} change {name}; "
            f"add their order to ORDER in fencepost/quirk_order.py (missing: {', '.join(unknown)})"
        )
    return sorted(quirks, key=lambda each: order.index(each.switches[0]))


def name_of(function: Callable[..., Any]) -> str:
    """The name of a function as ``quirk_order`` has it."""
    return f"{function.__module__.removeprefix('fencepost.')}.{function.__qualname__}"


def composed(function: Callable[..., R], quirks: list[Callable[..., R]]) -> Callable[..., R]:
    """The function with these quirks, the first of which is called first."""
    for each in quirks[::-1]:
        function = partial(each, function)
    return function


def registered() -> tuple[Quirk, ...]:
    """Return all quirks in loaded modules."""
    return tuple(each for quirks in _QUIRKS.values() for each in quirks)


@dataclass(frozen=True, slots=True)
class Value:
    """``field`` of some rules has this value if the switch is on. ``says``: Kafka's behaviour, and the rule."""

    switch: str
    field: str
    value: Any
    says: str


_VALUES: Final[dict[type, tuple[Value, ...]]] = {}


def register_values(rules: type, *values: Value) -> None:
    """Register the values of switches for a class of rules. Raises ``ValueError`` for an unknown switch or field, or if
    two switches give a field different values."""
    known = {each.name for each in fields(rules)}
    for number, each in enumerate(values):
        if each.switch not in SWITCH_NAMES:
            raise ValueError(f"no profile has a switch {each.switch!r}; add it to fencepost.protocol.profile")
        if each.field not in known:
            raise ValueError(f"{rules.__name__} has no field {each.field!r}, which {each.switch} sets")
        for other in values[:number]:
            if other.field == each.field and other.value != each.value:
                raise ValueError(
                    f"{other.switch} and {each.switch} set {rules.__name__}.{each.field} to different values; "
                    "use a field for each, and let the core say which counts"
                )
    _VALUES[rules] = values


def values_of(rules: type, profile: Profile) -> dict[str, Any]:
    """Return the values of this profile that differ from the intended ones, by field."""
    return {each.field: each.value for each in _VALUES.get(rules, ()) if getattr(profile, each.switch)}


def registered_values() -> tuple[Value, ...]:
    """Return all values in loaded modules."""
    return tuple(each for values in _VALUES.values() for each in values)
