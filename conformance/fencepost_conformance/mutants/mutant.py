"""A mutant: one function or guard replaced by a faulty one, from outside, for as long as it is planted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from typing import Any


class Side(Enum):
    """What is faulty, and so what is run against it."""

    COORDINATOR = "coordinator"
    CONSUMER_GROUP = "coordinator of consumer groups"
    MIXED_GROUP = "coordinator of mixed groups"
    MEMBER = "member"
    CONSUMER_MEMBER = "consumer member"
    ASSIGNOR = "assignor"


class Patches:
    """Replacements that are taken back in reverse order."""

    def __init__(self) -> None:
        self._undo: list[Callable[[], None]] = []

    def attribute(self, owner: Any, name: str, new: Any) -> Any:
        """Replace an attribute of a module or class; returns the old one."""
        old = getattr(owner, name)
        setattr(owner, name, new)
        self._undo.append(lambda: setattr(owner, name, old))
        return old

    def item(self, mapping: MutableMapping[Any, Any], key: Any, new: Any) -> Any:
        """Replace an entry of a table; returns the old one."""
        old = mapping[key]
        mapping[key] = new
        self._undo.append(lambda: mapping.__setitem__(key, old))
        return old

    def take_back(self) -> None:
        while self._undo:
            self._undo.pop()()


@dataclass(frozen=True, slots=True)
class Mutant:
    """``source``: where the fault comes from, a known fault of a real system or the rule that it breaks. ``text``: what
    the faulty program does. ``plant`` makes the replacements."""

    name: str
    side: Side
    source: str
    text: str
    plant: Callable[[Patches], None]


@contextmanager
def planted(mutant: Mutant) -> Iterator[None]:
    """While this is entered, the fault is in the program."""
    patches = Patches()
    try:
        mutant.plant(patches)
        yield
    finally:
        patches.take_back()
