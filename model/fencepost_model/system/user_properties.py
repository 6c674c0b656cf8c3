"""Properties that the user writes: functions in a Python file, over the specification's variables.

A function of the file is a property if its name does not begin with an underscore. Its parameters are names of
variables (``docs/closed-system.md``), and it returns whether the state is as it should be. A parameter ``new_group`` is
the variable ``group`` after a step. With such a parameter, the property is about every step, and ``action`` is the
action's name with its parameters. The file needs no import of Fencepost.
"""

from __future__ import annotations

import inspect
import runpy
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import FunctionType
from typing import Any, Final

from ..explore.interface import Invariant, Label, Properties, StepInvariant
from .cfg import BadConfiguration, UnknownName
from .families import Family
from .variables import Makers
from .views import view

_NEW: Final = "new_"
_ACTION: Final = "action"


@dataclass(frozen=True, slots=True)
class UserProperty:
    """A property that the user wrote, with the names of its parameters and the file."""

    name: str
    function: FunctionType
    parameters: tuple[str, ...]
    path: Path

    @property
    def line(self) -> int:
        return self.function.__code__.co_firstlineno

    @property
    def is_of_steps(self) -> bool:
        return any(each == _ACTION or each.startswith(_NEW) for each in self.parameters)


def run_file(path: Path) -> dict[str, Any]:
    """Execute a Python file and return its names. Raises BadConfiguration with the line that raised, OSError."""
    try:
        return runpy.run_path(str(path), run_name=path.stem)
    except OSError:
        raise
    except SyntaxError as wrong:
        raise BadConfiguration(f"{path}:{wrong.lineno}: {type(wrong).__name__}: {wrong.msg}") from None
    except Exception as raised:
        raise BadConfiguration(where_raised(path, raised)) from None


def where_raised(path: Path, raised: Exception) -> str:
    """Return the line of the file from which the error comes, and the error."""
    lines = [frame.lineno for frame in traceback.extract_tb(raised.__traceback__) if frame.filename == str(path)]
    at = f"{path}:{lines[-1]}" if lines else str(path)
    return f"{at}: {type(raised).__name__}: {raised}"


def properties_in(path: Path, names: Mapping[str, Any]) -> list[UserProperty]:
    """Return the properties among the names that an executed file has defined."""
    return [
        UserProperty(name, each, tuple(inspect.signature(each).parameters), path)
        for name, each in names.items()
        if isinstance(each, FunctionType) and not name.startswith("_") and each.__module__ == path.stem
    ]


def read_properties(path: Path) -> list[UserProperty]:
    """Return the properties of a file. Raises BadConfiguration, OSError."""
    found = properties_in(path, run_file(path))
    if not found:
        raise BadConfiguration(f"{path}: no property; write a function whose parameters are variables: def p(group)")
    return found


@dataclass(slots=True)
class Added:
    """The properties that the user wrote, ready for a system. ``raised``: the error of each property that raised."""

    properties: Properties
    raised: dict[str, str] = field(default_factory=dict)


def added(system: Any, family: Family, own: Sequence[UserProperty]) -> Added:
    """Return the system's properties and the user's. Raises UnknownName for a parameter that names another thing."""
    makers: Makers = family.makers(system)
    raised: dict[str, str] = {}
    invariants: list[Invariant] = []
    steps: list[StepInvariant] = []
    for each in own:
        for parameter in each.parameters:
            if parameter != _ACTION and parameter.removeprefix(_NEW) not in makers:
                where = f"{each.path}:{each.line}: property {each.name}"
                raise UnknownName(where, f"variable of a {family.name} system", parameter, tuple(makers))
        if each.is_of_steps:
            steps.append(_step(each, makers, raised))
        else:
            invariants.append(_invariant(each, makers, raised))
    known: Properties = system.properties
    return Added(
        replace(known, invariants=(*known.invariants, *invariants), steps=(*known.steps, *steps)),
        raised,
    )


def _invariant(own: UserProperty, makers: Makers, raised: dict[str, str]) -> Invariant:
    reads, of = _reader(own.parameters, makers)
    ask = _asking(own, raised)
    return Invariant(own.name, reads, lambda *values: ask(of(values)))


def _step(own: UserProperty, makers: Makers, raised: dict[str, str]) -> StepInvariant:
    variables = tuple(dict.fromkeys(each.removeprefix(_NEW) for each in own.parameters if each != _ACTION))
    reads, of = _reader(variables, makers)
    ask = _asking(own, raised)

    def holds(label: Label, before: tuple[Any, ...], after: tuple[Any, ...]) -> bool:
        old, new = dict(zip(variables, of(before), strict=True)), dict(zip(variables, of(after), strict=True))
        values = {_ACTION: label, **old, **{_NEW + name: each for name, each in new.items()}}
        return ask([values[each] for each in own.parameters])

    return StepInvariant(own.name, reads, holds)


def _reader(variables: Sequence[str], makers: Makers) -> tuple[tuple[int, ...], Callable[[tuple[Any, ...]], list[Any]]]:
    """Return the components that the variables are made of, and a function from these to the variables."""
    reads = tuple(dict.fromkeys(component for name in variables for component in makers[name][0]))
    places = [([reads.index(component) for component in makers[name][0]], makers[name][1]) for name in variables]
    known: dict[tuple[int, tuple[Any, ...]], Any] = {}

    def of(values: tuple[Any, ...]) -> list[Any]:
        found = []
        for number, (at, make) in enumerate(places):
            key = (number, tuple(values[each] for each in at))
            if key not in known:
                known[key] = view(make(*key[1]))
            found.append(known[key])
        return found

    return reads, of


def _asking(own: UserProperty, raised: dict[str, str]) -> Callable[[Iterable[Any]], bool]:
    """Return a function that asks the property. A property that raises counts as broken, so that the exploration ends
    with a trace to the state; ``raised`` keeps the error."""

    def ask(values: Iterable[Any]) -> bool:
        try:
            answer = own.function(*values)
        except Exception as wrong:
            raised.setdefault(own.name, f"property {own.name} raised: {where_raised(own.path, wrong)}")
            return False
        if not isinstance(answer, bool):
            reason = f"{own.path}:{own.line}: it returned {answer!r}, neither True nor False"
            raised.setdefault(own.name, f"property {own.name} gave no answer: {reason}")
            return False
        return answer

    return ask
