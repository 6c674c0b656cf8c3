"""The class of falsified copies, and the table of all kinds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ...traces.files import WireTrace
from .exchanges import Exchange

#: A member id that no coordinator could have made for these clients.
NOBODY = "nobody-00000000-0000-0000-0000-000000000000"


@dataclass(frozen=True, slots=True)
class Falsehood:
    """A falsified copy. ``first`` and ``last`` are line numbers after the header, from 1, as the checker counts
    them."""

    kind: str
    trace: WireTrace
    first: int
    last: int


Made = Iterator[tuple[WireTrace, int, int]]
KINDS: dict[str, Callable[[WireTrace, list[Exchange]], Made]] = {}


def falsehood(make: Callable[[WireTrace, list[Exchange]], Made]) -> Callable[[WireTrace, list[Exchange]], Made]:
    KINDS[make.__name__.replace("_", "-")] = make
    return make
