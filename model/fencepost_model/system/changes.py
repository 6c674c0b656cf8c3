"""Counter-examples as states: the specification's variables after each step, and what each step changed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

from ..tlc.values import Function, TlaValue, is_field, show


@dataclass(frozen=True, slots=True)
class Shown:
    """A state of a counter-example. ``action`` is empty for the first state, otherwise the action and its
    parameters."""

    action: tuple[str, ...]
    state: Mapping[str, TlaValue]


@dataclass(frozen=True, slots=True)
class Change:
    """A field that a step changed. ``path`` reads as in TLA+, for example ``client["c1"].state``. ``old`` or ``new`` is
    ``ABSENT`` if the field did not exist. A set of records is printed as the elements that
    differ."""

    path: str
    old: Any
    new: Any

    @property
    def sides(self) -> tuple[list[str], list[str]]:
        """What is gone and what has come, in TLA+ notation: of two sets, the elements that differ."""
        if _is_set(self.old) and _is_set(self.new):
            return sorted(map(show, self.old - self.new)), sorted(map(show, self.new - self.old))
        return [] if self.old is ABSENT else [show(self.old)], [] if self.new is ABSENT else [show(self.new)]

    def __str__(self) -> str:
        if _is_set(self.old) and any(isinstance(each, Function) for each in (*self.old, *self.new)):
            gone, come = self.sides
            return f"{self.path}: {', '.join([*(f'- {each}' for each in gone), *(f'+ {each}' for each in come)])}"
        return f"{self.path}: {shown(self.old)} -> {shown(self.new)}"


def _is_set(value: object) -> bool:
    return isinstance(value, frozenset) and not isinstance(value, Function)


#: Stands for the value of a field that does not exist.
ABSENT: Final = "(absent)"


def shown(value: TlaValue) -> str:
    """Return the value in TLA+ notation."""
    return ABSENT if value is ABSENT else show(value)


def changes(before: Mapping[str, TlaValue], after: Mapping[str, TlaValue]) -> list[Change]:
    """Return the fields that differ between two states, each as deep as both states have it."""
    return [change for name in after for change in _changes(name, before[name], after[name])]


def all_changes(states: Sequence[Shown]) -> list[list[Change]]:
    """Return the changes of each step. The first state has none."""
    return [[], *(changes(one.state, two.state) for one, two in pairwise(states))]


def _changes(path: str, old: TlaValue, new: TlaValue) -> Iterator[Change]:
    if old == new and type(old) is type(new):
        return
    one, two = _fields(old), _fields(new)
    if one is None or two is None or not (one or two):
        yield Change(path, old, new)
        return
    for key in sorted({*one, *two}, key=repr):
        there = _joined(path, key)
        if key in one and key in two:
            yield from _changes(there, one[key], two[key])
        else:
            yield Change(there, one.get(key, ABSENT), two.get(key, ABSENT))


def _fields(value: TlaValue) -> dict[Any, TlaValue] | None:
    """Return the fields of a record, function or sequence; None for any other value."""
    if isinstance(value, Function):
        return dict(value)
    if isinstance(value, tuple):
        return dict(enumerate(value, 1))
    return None


def _joined(path: str, key: Any) -> str:
    return f"{path}.{key}" if is_field(key) else f"{path}[{show(key)}]"
