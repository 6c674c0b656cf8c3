"""Breadth first over every input of a member, its model beside it."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TypeVar

from .beside import Beside, Disagreement


@dataclass(frozen=True, slots=True)
class PairsExplored:
    """``trail``: a shortest way to the ``problem``."""

    states: int
    transitions: int
    problem: str | None = None
    trail: tuple[str, ...] = ()


P = TypeVar("P", bound=Beside)


def explore_pairs(start: P, transitions: int) -> PairsExplored:
    """Breadth first over every input, member and model side by side."""
    queue: deque[tuple[P, tuple[str, ...]]] = deque([(start, ())])
    seen = {start.key()}
    taken = 0
    while queue:
        pair, trail = queue.popleft()
        for what in pair.inputs():
            if taken == transitions:
                return PairsExplored(len(seen), taken)
            taken += 1
            try:
                after = pair.after(what)
            except Disagreement as found:
                return PairsExplored(len(seen), taken, str(found), (*trail, str(what)))
            key = after.key()
            if key not in seen:
                seen.add(key)
                queue.append((after, (*trail, str(what))))
    return PairsExplored(len(seen), taken)
