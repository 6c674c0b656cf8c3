"""Faults that are not written as texts yet: functions that are patched."""

from __future__ import annotations

from collections.abc import Callable, MutableMapping
from dataclasses import dataclass
from typing import Any

from .mutant import Mutant, Side


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
class Patched(Mutant):
    """``plant`` makes the replacements."""

    plant: Callable[[Patches], None]


def patched(name: str, side: Side, source: str, words: str, plant: Callable[[Patches], None]) -> Patched:
    return Patched(name, side, (), source, words, (), plant)
