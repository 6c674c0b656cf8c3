"""Breadth-first search over the product of core and model; it finds a shortest run to the first disagreement."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence

from ..broken import Broken
from .both import Both
from .bounds import Bounds, Explored, Moves
from .classic_moves import classic_moves
from .equal import state_key


def explore(bounds: Bounds, moves: Sequence[Moves] = (classic_moves,)) -> Explored:
    """Explore from a coordinator that has just loaded an empty log; ``moves`` generates the clients' requests."""
    start = Both(bounds, moves).loaded()
    queue: deque[tuple[Both, int, tuple[str, ...]]] = deque([(start, 0, ())])
    seen = {state_key(start)}
    inputs: Counter[str] = Counter()
    answers: Counter[str] = Counter()
    transitions, complete = 0, True
    while queue:
        both, depth, trail = queue.popleft()
        for who, what, event in both.events():
            if transitions == bounds.transitions:
                return Explored(len(seen), transitions, False, inputs, answers)
            transitions += 1
            inputs[what] += 1
            name = f"{who} {what}".strip()
            try:
                after = both.after(event)
            except Broken as found:
                return Explored(len(seen), transitions, False, inputs, answers, str(found), (*trail, name))
            answers.update(after.answers)
            key = state_key(after)
            if key in seen:
                continue
            if depth + 1 == bounds.depth:
                complete = False
                continue
            seen.add(key)
            queue.append((after, depth + 1, (*trail, name)))
    return Explored(len(seen), transitions, complete, inputs, answers)
