"""Breadth-first exploration.

States are numbered in the order in which they are found, so the frontier is the range of numbers not yet expanded. A
block of it is expanded at once. Each action's table turns the block's columns of component numbers into columns of
successors. These are folded into one key per successor, and one look-up in the index of visited states numbers the new
ones. A block never crosses a level, so the first path found to a state is a shortest one. Numbers follow only the order
of actions and sources, so counts and counter-examples are the same in every run.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import NDArray

from ..collector import uncollected
from .graph import Graph, Step, sorted_edges
from .index import Ids, Index
from .interface import Label, StepInvariant, System, Value
from .symmetry import Canonical
from .tables import Column, Folder, Memo, Steps, Tables, together

#: How many states are expanded at once. Large enough to hide NumPy's cost per call, small enough to stay in the cache.
BLOCK = 1 << 14


@dataclass(frozen=True, slots=True)
class Limits:
    """Exploration stops, incomplete, before it exceeds one of these."""

    states: int = 50_000_000
    bytes: int = 8 << 30
    seconds: float = float("inf")


@dataclass(frozen=True, slots=True)
class Violation:
    """A broken property and a shortest trace to it. For a lasso, the steps after ``trace[loop]`` repeat for ever."""

    property: str
    kind: str  #: "invariant", "step", "deadlock" or "liveness"
    trace: list[Step]
    loop: int | None = None


@dataclass(slots=True)
class Exploration:
    """The result of an exploration. ``complete`` is False if a limit, an interruption or a violation ended it early."""

    graph: Graph
    generated: int
    complete: bool
    stopped: str | None
    seconds: float
    bytes: int
    violations: list[Violation] = field(default_factory=list)
    unseen: list[str] = field(default_factory=list)  #: witnesses that no state satisfied
    taken: dict[str, int] = field(default_factory=dict)  #: first word of the label → transitions

    @property
    def states(self) -> int:
        return self.graph.states

    @property
    def depth(self) -> int:
        """Levels of the graph, including initial states (TLC's depth)."""
        return len(self.graph.levels)


#: Called after each block with (states found, states expanded, transitions generated).
Watch = Callable[[int, int, int], None]


def explore(
    system: System,
    *,
    limits: Limits | None = None,
    transitions: bool = False,
    symmetry: bool = False,
    stop_at_violation: bool = True,
    watch: Watch | None = None,
    block: int = BLOCK,
) -> Exploration:
    """Explore all reachable states.

    ``transitions`` keeps every transition (8 bytes each), which liveness and graph comparison need. ``symmetry``
    explores one representative for each class of states that are equal up to renaming; it is unsound for liveness. A
    keyboard interrupt ends the exploration early and returns what was found; it raises no exception.
    """
    options = Options(limits or Limits(), transitions, symmetry, stop_at_violation, watch, block)
    with uncollected():
        return _Search(system, options).run()


@dataclass(frozen=True, slots=True)
class Options:
    """The arguments of ``explore``."""

    limits: Limits
    transitions: bool
    symmetry: bool
    stop_at_violation: bool
    watch: Watch | None
    block: int


class _Search:
    def __init__(self, system: System, options: Options) -> None:
        self.system, self.options = system, options
        tables = Tables(system)
        width = len(system.components)
        self.graph = Graph(system, tables, [Column() for _ in range(width)], Column(), Column())
        self.tables = tables
        self.canonical = Canonical(tables, system.symmetry) if options.symmetry and system.symmetry else None
        self.folder, self.visited = Folder(width), Index()
        self.keep = options.transitions
        self.kept: tuple[list[Ids], list[Ids], list[Ids]] = ([], [], [])
        self.generated = 0
        self.taken = np.zeros(0, dtype=np.int64)
        properties = system.properties
        self.invariants = [(each.name, tables.memo(each.holds, each.reads)) for each in properties.invariants]
        self.witnesses = {each.name: tables.memo(each.holds, each.reads) for each in properties.witnesses}
        self.steps = [(each, step_memo(tables, each)) for each in properties.steps]
        self.may_end = properties.may_end and tables.memo(properties.may_end[1], properties.may_end[0])
        self.violations: list[Violation] = []
        self.broken: set[str] = set()

    def run(self) -> Exploration:
        began = time.monotonic()
        stopped: str | None = None
        done = 0
        try:
            self._initial()
            graph = self.graph
            while done < graph.states and stopped is None:
                graph.levels.append(done)
                level_end = graph.states
                while done < level_end and stopped is None:
                    upto = min(done + self.options.block, level_end)
                    if self.violations and self.options.stop_at_violation:
                        stopped = "a property is broken"
                        break
                    self._expand(done, upto)
                    done = upto
                    if self.options.watch is not None:
                        self.options.watch(graph.states, done, self.generated)
                    stopped = self._beyond(began)
        except KeyboardInterrupt:
            stopped = "interrupted"
        if self.violations and self.options.stop_at_violation and stopped is None and done < self.graph.states:
            stopped = "a property is broken"
        complete = stopped is None
        if self.keep:
            self.graph.edges = sorted_edges(self.graph.states, *self.kept)
        labels = self.tables.labels.values
        taken: dict[str, int] = {}
        for number, count in enumerate(self.taken.tolist()):
            name = labels[number][0][0]
            taken[name] = taken.get(name, 0) + count
        return Exploration(
            self.graph,
            self.generated,
            complete,
            stopped,
            time.monotonic() - began,
            self.nbytes,
            self.violations,
            sorted(self.witnesses) if complete else [],
            taken,
        )

    def _beyond(self, began: float) -> str | None:
        if self.graph.states > self.options.limits.states:
            return f"more than {self.options.limits.states:,} states"
        if self.nbytes > self.options.limits.bytes:
            return f"more than {self.options.limits.bytes >> 20:,} MiB"
        if time.monotonic() - began > self.options.limits.seconds:
            return f"more than {self.options.limits.seconds:g} s"
        return None

    @property
    def nbytes(self) -> int:
        columns = sum(column.nbytes for column in (*self.graph.columns, self.graph.parent, self.graph.via))
        edges = sum(part.nbytes for parts in self.kept for part in parts)
        return self.visited.nbytes + self.folder.nbytes + self.tables.nbytes + columns + edges

    def _initial(self) -> None:
        rows = [
            [interner.number(value) for interner, value in zip(self.tables.components, state, strict=True)]
            for state in self.system.initial()
        ]
        columns = [np.array(column, dtype=np.int32) for column in zip(*rows, strict=True)]
        if not columns:
            return
        if self.canonical is not None:
            columns = self.canonical(columns)
        _, new = self.visited.number(self.folder.fold(columns))
        self.generated += len(rows)
        minus = np.full(new.size, -1, dtype=np.int32)
        self._append([column[new] for column in columns], minus, minus)
        self.graph.initial = new.size
        self._check_states(0)

    def _append(self, columns: Sequence[Ids], parent: Ids, via: Ids) -> None:
        for kept, column in zip(self.graph.columns, columns, strict=True):
            kept.extend(column)
        self.graph.parent.extend(parent)
        self.graph.via.extend(via)

    def _expand(self, first: int, upto: int) -> None:
        columns = self.tables.with_views([column.view[first:upto] for column in self.graph.columns])
        found = [steps for table in self.tables.tables if (steps := table.steps(columns)) is not None]
        self._check_ends(first, upto, found)
        if not found:
            return
        steps = together(found)
        self._check_steps(columns, steps, first)  # on the real successors, whose names match the label
        if self.canonical is not None:
            steps.columns = self.canonical(steps.columns)
        targets, new = self.visited.number(self.folder.fold(steps.columns))
        self.generated += targets.size
        self._count(steps)
        before = self.graph.states
        sources = (steps.source + first).astype(np.int32)
        self._append([column[new] for column in steps.columns], sources[new], steps.label[new])
        if self.keep:
            for kept, part in zip(self.kept, (sources, steps.label, targets), strict=True):
                kept.append(part)
        self._check_states(before)

    def _count(self, steps: Steps) -> None:
        counts = np.bincount(steps.label, minlength=self.taken.size)
        counts[: self.taken.size] += self.taken
        self.taken = counts

    def _report(self, name: str, kind: str, trace: Callable[[], list[Step]]) -> None:
        if name not in self.broken:
            self.broken.add(name)
            self.violations.append(Violation(name, kind, trace()))

    def _trace(self, number: int) -> list[Step]:
        if self.canonical is not None:
            return self.canonical.concrete(self.graph, self.graph.path(number))
        return self.graph.trace(number)

    def _trace_step(self, number: int, broken: str, step: Step) -> list[Step]:
        trace = self._trace(number)
        if self.canonical is not None:
            step = self.canonical.concrete_step(self.graph, trace[-1].state, step.state, broken)
        return [*trace, step]

    def _check_states(self, first: int) -> None:
        """Check invariants and witnesses on the states from ``first`` on."""
        columns = [column.view[first:] for column in self.graph.columns]
        for name, memo in self.invariants:
            if name in self.broken:
                continue
            broken = np.flatnonzero(memo(self.tables.read(columns, memo.components)) == 0)
            if broken.size:
                self._report(name, "invariant", partial(self._trace, first + int(broken[0])))
        for name in list(self.witnesses):
            memo = self.witnesses[name]
            if memo(self.tables.read(columns, memo.components)).any():
                del self.witnesses[name]

    def _check_steps(self, before: Sequence[Ids], steps: Steps, first: int) -> None:
        words = {self.graph.label(label)[0] for label in np.flatnonzero(np.bincount(steps.label)).tolist()}
        for step, memo in self.steps:
            if step.name in self.broken or (step.actions and not words & step.actions):
                continue
            places: NDArray[np.int64] = np.arange(steps.label.size)
            if step.actions and not words <= step.actions:
                places = np.flatnonzero(self._begins(step.actions)[steps.label])
            if step.changed:
                places = places[self._changed(before, steps, places, step.changed)]
            if not places.size:
                continue
            read_before = self._seen(before, steps.source[places], step.reads)
            read_after = self._seen(steps.columns, places, step.reads)
            broken = np.flatnonzero(memo([steps.label[places], *read_before, *read_after]) == 0)
            if broken.size:
                place = int(places[broken[0]])
                label = self.graph.label(int(steps.label[place]))
                after = tuple(self.tables.values[each][column[place]] for each, column in enumerate(steps.columns))
                number = first + int(steps.source[place])
                self._report(step.name, "step", partial(self._trace_step, number, step.name, Step(label, after)))

    def _seen(self, columns: Sequence[Ids], places: NDArray[np.int64], reads: Sequence[int]) -> list[Ids]:
        """Return the columns of these components and views, at these places."""
        needed = frozenset(self.tables.component_of(each) for each in reads)
        taken = [
            column[places] if each in needed else column[:0]
            for each, column in enumerate(columns[: len(self.tables.components)])
        ]
        return self.tables.read(taken, reads)

    def _changed(
        self, before: Sequence[Ids], steps: Steps, places: NDArray[np.int64], reads: Sequence[int]
    ) -> NDArray[np.bool_]:
        """Return which of the steps change one of these components or views."""
        after = self._seen(steps.columns, places, reads)
        earlier = self._seen(before, steps.source[places], reads)
        differ: NDArray[np.bool_] = np.logical_or.reduce(
            [now != then for now, then in zip(after, earlier, strict=True)]
        )
        return differ

    def _begins(self, words: frozenset[str]) -> NDArray[np.bool_]:
        """Return which labels begin with one of the words."""
        return np.array([label[0] in words for label, _ in self.tables.labels.values], dtype=np.bool_)

    def _check_ends(self, first: int, upto: int, found: list[Steps]) -> None:
        if self.may_end is None:
            return
        ended: NDArray[np.bool_] = np.ones(upto - first, dtype=np.bool_)
        for steps in found:
            ended[steps.source] = False
        numbers = np.flatnonzero(ended) + first
        if numbers.size:
            allowed = self.may_end(
                self.tables.read([each.view[numbers] for each in self.graph.columns], self.may_end.components)
            )
            bad = numbers[allowed == 0]
            if bad.size:
                self._report("deadlock", "deadlock", partial(self._trace, int(bad[0])))


def step_memo(tables: Tables, step: StepInvariant) -> Memo:
    """Remember a step property by label and by the numbers of what it reads before and after."""
    reads = len(step.reads)

    def holds(label: tuple[Label, Value], *values: Value) -> int:
        return int(step.holds(label[0], values[:reads], values[reads:]))

    values = [tables.labels.values, *(tables.values[component] for component in step.reads * 2)]
    return Memo(holds, range(1 + 2 * reads), values)
