"""Breadth-first exploration of all inputs of a member and its model."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TypeVar

from .beside import Beside, Disagreement


@dataclass(frozen=True, slots=True)
class PairsExplored:
    """The result. ``trail``: a shortest sequence of inputs that leads to ``problem``."""

    states: int
    transitions: int
    problem: str | None = None
    trail: tuple[str, ...] = ()


P = TypeVar("P", bound=Beside)


def explore_pairs(start: P, transitions: int) -> PairsExplored:
    """Explore every input breadth first, at most so many transitions."""
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
