"""Every property of the closed system by its name: those that must hold, and witnesses that must not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ...explore.interface import Properties
from ..fairness import of_system
from ..gather import gather
from .closed import ConsumerSystem
from .properties import CATALOGUE, SYSTEM
from .steps import STEPS
from .witnesses import WITNESSES


def properties_of(system: ConsumerSystem, wanted: Sequence[str], *, fair: bool = False) -> Properties:
    """Return the named properties for the system. Raises ValueError for an unknown name."""
    return gather(system, wanted, {**CATALOGUE, **STEPS, **WITNESSES}, FAIRNESS if fair else ())


FAIRNESS: Final = of_system(SYSTEM)
