"""Values of the specification's variables, as Python code reads them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..tlc.values import Function, TlaValue, show


class View(Mapping[Any, Any]):
    """A record or a function of the specification.

    ``group.state`` and ``group["state"]`` are the same. A function of the clients is read as ``client["c1"]``.
    """

    __slots__ = ("_value", "_values")

    def __init__(self, value: Function) -> None:
        self._value = value
        self._values = {key: view(each) for key, each in value}

    def __getitem__(self, key: Any) -> Any:
        return self._values[key]

    def __getattr__(self, name: str) -> Any:
        try:
            return self._values[name]
        except KeyError:
            known = ", ".join(sorted(map(str, self._values))) or "nothing"
            raise AttributeError(f"no field {name!r}; there is {known}") from None

    def __iter__(self) -> Iterator[Any]:
        return iter(sorted(self._values, key=repr))

    def __len__(self) -> int:
        return len(self._values)

    def __hash__(self) -> int:
        return hash(self._value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, View) and self._value == other._value

    def __repr__(self) -> str:
        return show(self._value)


def view(value: TlaValue) -> Any:
    """Return the value with its records and functions as ``View``. Sets stay sets, and sequences stay tuples."""
    if isinstance(value, Function):
        return View(value)
    if isinstance(value, frozenset):
        return frozenset(map(view, value))
    if isinstance(value, tuple):
        return View(Function()) if not value else tuple(map(view, value))
    return value
