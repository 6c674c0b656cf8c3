"""Properties of a closed system by their names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias, TypeVar

from ..explore.interface import Fairness, Invariant, LeadsTo, Properties, Settles, StepInvariant

Part: TypeAlias = Invariant | StepInvariant | LeadsTo | Settles
SystemT = TypeVar("SystemT")


class UnknownProperty(ValueError):
    """There is no property of that name; ``known`` are all names."""

    def __init__(self, name: str, known: tuple[str, ...]) -> None:
        super().__init__(f"unknown property {name}; known: {', '.join(known)}")
        self.name, self.known = name, known


def gather(
    system: SystemT,
    names: Sequence[str],
    catalogue: Mapping[str, Callable[[SystemT], Iterable[Part]]],
    fairness: tuple[Fairness, ...],
) -> Properties:
    """Return all parts of the named properties. Raises UnknownProperty for a name that is not in the catalogue."""
    for name in names:
        if name not in catalogue:
            raise UnknownProperty(name, tuple(catalogue))
    parts = [part for name in names for part in catalogue[name](system)]
    return Properties(
        invariants=tuple(part for part in parts if isinstance(part, Invariant)),
        steps=tuple(part for part in parts if isinstance(part, StepInvariant)),
        leads_to=tuple(part for part in parts if isinstance(part, LeadsTo)),
        settles=tuple(part for part in parts if isinstance(part, Settles)),
        fairness=fairness,
    )
