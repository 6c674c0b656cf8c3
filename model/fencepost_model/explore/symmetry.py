"""One representative for each class of states that are equal up to renaming members or partitions.

A renaming moves components and renames the names inside their values; both are looked up by number. Of a state's
images, the one with the smallest numbers is the representative. It depends only on the order of numbering, which is the
same in every run.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .graph import Graph, Step
from .index import Ids
from .interface import Permutation, State, successors, visible
from .tables import Memo, Tables


class Canonical:
    """Turns columns of states into columns of their representatives."""

    def __init__(self, tables: Tables, permutations: Sequence[Permutation]) -> None:
        self._tables = tables
        self._permutations = permutations
        self._renames = [
            [self._rename(permutation, target, source) for target, source in enumerate(permutation.source)]
            for permutation in permutations
        ]

    def _rename(self, permutation: Permutation, target: int, source: int) -> Memo:
        numbers = self._tables.components[target]
        return self._tables.memo(lambda value: numbers.number(permutation.rename(source, value)), (source,))

    def __call__(self, columns: Sequence[Ids]) -> list[Ids]:
        best = list(columns)
        for permutation, renames in zip(self._permutations, self._renames, strict=True):
            image = [rename([columns[source]]) for rename, source in zip(renames, permutation.source, strict=True)]
            smaller = np.zeros(best[0].size, dtype=np.bool_)
            equal = np.ones(best[0].size, dtype=np.bool_)
            for mine, other in zip(best, image, strict=True):
                smaller |= equal & (other < mine)
                equal &= other == mine
            if smaller.any():
                best = [np.where(smaller, other, mine) for mine, other in zip(best, image, strict=True)]
        return best

    def _representative(self, state: State) -> tuple[int, ...]:
        columns = [
            np.array([interner.number(value)], dtype=np.int32)
            for interner, value in zip(self._tables.components, state, strict=True)
        ]
        return tuple(int(column[0]) for column in self(columns))

    def concrete(self, graph: Graph, path: Sequence[int]) -> list[Step]:
        """Return a real trace whose states have the representatives along ``path``."""
        rows = [tuple(int(column.view[number]) for column in graph.columns) for number in path]
        state = next(each for each in graph.system.initial() if self._representative(each) == rows[0])
        trace = [Step(None, state)]
        for row in rows[1:]:
            outcome, state = next(
                step for step in successors(graph.system, state) if self._representative(step[1]) == row
            )
            trace.append(Step(outcome.label, state))
        return trace

    def concrete_step(self, graph: Graph, before: State, after: State, name: str) -> Step:
        """Return the step from ``before`` that breaks the property and leads to a state equivalent to ``after``.

        The property may have a part for each client, and here the broken part may be that of another client.
        """
        row = self._representative(after)
        parts = [each for each in graph.system.properties.steps if each.name == name]
        seen = visible(graph.system, before)
        for outcome, state in successors(graph.system, before):
            if self._representative(state) == row:
                now = visible(graph.system, state)
                for part in parts:
                    reads = [tuple(values[each] for each in part.reads) for values in (seen, now)]
                    concerned = not part.actions or outcome.label[0] in part.actions
                    if concerned and not part.holds(outcome.label, reads[0], reads[1]):
                        return Step(outcome.label, state)
        raise ValueError(f"{name} distinguishes states that the system's symmetry makes equivalent")
