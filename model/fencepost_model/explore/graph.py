"""The result of an exploration: the reachable states, how each was first reached, and optionally every transition."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .index import Ids
from .interface import Label, State, System
from .tables import Column, Tables


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a trace: its label (None: the initial state) and the state after it."""

    label: Label | None
    state: State


@dataclass(slots=True)
class Edges:
    """Transitions sorted by source: those of state s are ``start[s]`` up to ``start[s + 1]``."""

    start: NDArray[np.int64]
    target: Ids
    label: Ids

    @property
    def sources(self) -> Ids:
        return np.repeat(np.arange(self.start.size - 1, dtype=np.int32), np.diff(self.start))


@dataclass(slots=True)
class Graph:
    """Reachable states 0, 1, 2, … in breadth-first order; state i has value numbers ``columns[c][i]``."""

    system: System
    tables: Tables
    columns: list[Column]
    parent: Column
    via: Column
    levels: list[int] = field(default_factory=list)  #: first state of each level
    initial: int = 0  #: how many states are initial; they come first
    edges: Edges | None = None

    @property
    def states(self) -> int:
        return self.parent.size

    def state(self, number: int) -> State:
        values = self.tables.values
        return tuple(values[component][column.view[number]] for component, column in enumerate(self.columns))

    def label(self, number: int) -> Label:
        label: Label = self.tables.labels.values[number][0]
        return label

    def path(self, number: int) -> list[int]:
        """Return state numbers from an initial state to this one, along a shortest path."""
        path = [number]
        parent = self.parent.view
        while parent[path[-1]] >= 0:
            path.append(int(parent[path[-1]]))
        return path[::-1]

    def trace(self, number: int) -> list[Step]:
        """Return a shortest trace to the state."""
        return [
            Step(self.label(self.via.view[each]) if self.parent.view[each] >= 0 else None, self.state(each))
            for each in self.path(number)
        ]

    def transitions(self) -> Iterator[tuple[int, Label, Any, int]]:
        """Yield every transition as (state number, label, note, state number), by source."""
        if self.edges is None:
            raise ValueError("the graph was explored without its transitions; explore with transitions=True")
        labels = self.tables.labels.values
        targets, via = self.edges.target.tolist(), self.edges.label.tolist()
        for source in range(self.states):
            for place in range(int(self.edges.start[source]), int(self.edges.start[source + 1])):
                yield source, *labels[via[place]], targets[place]


def sorted_edges(states: int, source: list[Ids], label: list[Ids], target: list[Ids]) -> Edges:
    sources = np.concatenate([np.empty(0, dtype=np.int32), *source])
    order = np.argsort(sources, kind="stable")
    counts = np.bincount(sources, minlength=states)
    start = np.zeros(states + 1, dtype=np.int64)
    np.cumsum(counts, out=start[1:])
    none = np.empty(0, dtype=np.int32)
    return Edges(start, np.concatenate([none, *target])[order], np.concatenate([none, *label])[order])
