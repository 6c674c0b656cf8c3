"""Properties that are computed once, at first use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class once(Generic[T]):
    """Like ``functools.cached_property``, which before Python 3.12 takes a lock that costs more than most
    computations."""

    def __init__(self, make: Callable[[Any], T]) -> None:
        self._make = make
        self._name = make.__name__

    def __get__(self, instance: Any, owner: type) -> T:
        found = instance.__dict__[self._name] = self._make(instance)
        return found
