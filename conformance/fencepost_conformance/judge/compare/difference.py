"""The first difference between two observations of the same event, down to the field."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from typing import Any

from ...traces.observation import Observation
from .normal import normal

_ABSENT = "(none)"


@dataclass(frozen=True, slots=True)
class Difference:
    """At ``event`` (index), ``left`` and ``right`` are the different values of ``field`` (a path)."""

    event: int
    field: str
    left: str
    right: str

    def __str__(self) -> str:
        return f"event {self.event}, {self.field}: {self.left} / {self.right}"


def compare_step(index: int, left: Observation, right: Observation) -> Difference | None:
    """Return the first difference, None if the two are equal in everything that counts."""
    # the usual case, decided cheaply
    if _compared(left) == _compared(right):
        return None
    one, other = normal(left), normal(right)
    if one == other:
        return None
    for part, of_left, of_right in (
        ("replies", {r.request_id: r.body for r in one.replies}, {r.request_id: r.body for r in other.replies}),
        ("records", one.records, other.records),
        ("groups", one.groups, other.groups),
        ("consumer_groups", one.consumer_groups, other.consumer_groups),
        ("offsets", one.offsets, other.offsets),
        ("timers", one.timers, other.timers),
        ("tasks", one.tasks, other.tasks),
    ):
        found = _first(part, of_left, of_right)
        if found is not None:
            return Difference(index, *found)
    raise AssertionError(f"observations differ in no part: {one} / {other}")


def _compared(seen: Observation) -> tuple[Any, ...]:
    return seen.replies, seen.records, seen.timers, seen.groups, seen.consumer_groups, seen.tasks, seen.offsets


def _first(path: str, left: Any, right: Any) -> tuple[str, str, str] | None:
    """Return path and both values of the first difference below ``path``."""
    if left == right and type(left) is type(right):
        return None
    if is_dataclass(left) and type(left) is type(right):
        for field in fields(left):
            found = _first(f"{path}.{field.name}", getattr(left, field.name), getattr(right, field.name))
            if found is not None:
                return found
        return None
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        for key in sorted({*left, *right}, key=show):
            found = _first(f"{path}[{show(key)}]", left.get(key, _ABSENT), right.get(key, _ABSENT))
            if found is not None:
                return found
        return None
    if isinstance(left, Sequence) and isinstance(right, Sequence) and not isinstance(left, str | bytes):
        for position in range(max(len(left), len(right))):
            found = _first(
                f"{path}[{position}]",
                left[position] if position < len(left) else _ABSENT,
                right[position] if position < len(right) else _ABSENT,
            )
            if found is not None:
                return found
        return None
    if left == right:
        return None
    return path, show(left), show(right)


def show(value: Any) -> str:
    """Return a short text for a value."""
    if isinstance(value, Enum):
        return value.name
    if value is None or isinstance(value, str):
        return "null" if value is None else value or '""'
    if isinstance(value, frozenset):
        return "{" + ", ".join(sorted(map(show, value))) + "}"
    if is_dataclass(value):
        parts = [show(getattr(value, field.name)) for field in fields(value)]
        return f"{type(value).__name__}({', '.join(parts)})"
    return repr(value)
