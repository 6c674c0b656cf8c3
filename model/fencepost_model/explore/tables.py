"""Local transition tables: each action's effect on component *numbers*, filled by the model on first use.

Component values are interned: value number i of component c represents a Python value. An action that reads components
r1…rk has one row for each combination of their numbers that has occurred. A row is a range of outcomes. An outcome is a
label and, for each component that some outcome of the action writes or updates, the number of the new value or of the
token (-1: unchanged). Rows are made by calling the action itself, so a step of the explorer is a step of the model.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .index import Ids, Index, Keys, pair
from .interface import Action, System, Value


class Column:
    """A growing array of int32; ``view`` is the filled part."""

    __slots__ = ("_store", "size")

    def __init__(self, capacity: int = 64) -> None:
        self._store: Ids = np.empty(capacity, dtype=np.int32)
        self.size = 0

    def extend(self, values: Sequence[int] | Ids) -> None:
        needed = self.size + len(values)
        if needed > self._store.size:
            store = np.empty(max(needed, 2 * self._store.size), dtype=np.int32)
            store[: self.size] = self._store[: self.size]
            self._store = store
        self._store[self.size : needed] = values
        self.size = needed

    @property
    def view(self) -> Ids:
        return self._store[: self.size]

    @property
    def nbytes(self) -> int:
        return self._store.nbytes


class Interner:
    """Values and their numbers, in order of first appearance."""

    __slots__ = ("_numbers", "values")

    def __init__(self) -> None:
        self._numbers: dict[Value, int] = {}
        self.values: list[Any] = []

    def number(self, value: Value) -> int:
        known = self._numbers.get(value)
        if known is None:
            known = self._numbers[value] = len(self.values)
            self.values.append(value)
        return known

    def __len__(self) -> int:
        return len(self.values)


class Folder:
    """Folds rows of several columns into one column of keys, without collisions: columns are numbered pair by pair, as
    a tree."""

    __slots__ = ("_levels", "width")

    def __init__(self, width: int) -> None:
        self.width = width
        self._levels: list[list[Index]] = []
        while width > 2:
            self._levels.append([Index() for _ in range(width // 2)])
            width -= width // 2

    def fold(self, columns: Sequence[Ids]) -> Keys:
        for level in self._levels:
            folded = [
                index.number(pair(columns[2 * place], columns[2 * place + 1]))[0] for place, index in enumerate(level)
            ]
            columns = [*folded, *columns[2 * len(level) :]]
        if len(columns) == 1:
            return columns[0].astype(np.uint64)
        return pair(columns[0], columns[1])

    @property
    def nbytes(self) -> int:
        return sum(index.nbytes for level in self._levels for index in level)


class Rows:
    """Numbers the combinations of component numbers that have occurred. One component: a plain array; more: an
    index."""

    __slots__ = ("_dense", "_folder", "_index", "count")

    def __init__(self, width: int) -> None:
        self._folder = Folder(width)
        self._index = Index() if width > 1 else None
        self._dense: Ids = np.full(64, -1, dtype=np.int32)
        self.count = 0

    def number(self, columns: Sequence[Ids]) -> tuple[Ids, NDArray[np.int64]]:
        """Return the number of each row of the columns, and the place of each new row's first occurrence."""
        if self._index is not None:
            return self._index.number(self._folder.fold(columns))
        (column,) = columns
        if column.size and (largest := int(column.max())) >= self._dense.size:
            grown = np.full(2 * largest, -1, dtype=np.int32)
            grown[: self._dense.size] = self._dense
            self._dense = grown
        rows = self._dense[column]
        absent = np.flatnonzero(rows < 0)
        if not absent.size:
            return rows, absent
        fresh, first = np.unique(column[absent], return_index=True)
        order = np.argsort(first, kind="stable")
        self._dense[fresh[order]] = np.arange(self.count, self.count + fresh.size, dtype=np.int32)
        self.count += fresh.size
        return self._dense[column], absent[first[order]]

    @property
    def nbytes(self) -> int:
        return self._dense.nbytes + self._folder.nbytes + (self._index.nbytes if self._index is not None else 0)


class Memo:
    """A function of component values with integer results, remembered by the numbers of the values."""

    __slots__ = ("_function", "_results", "_rows", "_values", "components")

    def __init__(
        self, function: Callable[..., int], components: Sequence[int], values: Sequence[Sequence[Any]]
    ) -> None:
        self._function = function
        self.components = tuple(components)
        self._values = [values[component] for component in self.components]
        self._rows = Rows(len(self.components))
        self._results = Column()

    def __call__(self, columns: Sequence[Ids]) -> Ids:
        """Return the function's result for each row of the *read* columns."""
        rows, new = self._rows.number(columns)
        if new.size:
            arguments = [
                [values[number] for number in column[new].tolist()]
                for values, column in zip(self._values, columns, strict=True)
            ]
            self._results.extend([self._function(*each) for each in zip(*arguments, strict=True)])
        return self._results.view[rows]


@dataclass(slots=True)
class Steps:
    """Successors of a block of states by one action: for each the place of its source in the block, label, columns."""

    source: NDArray[np.int64]
    label: Ids
    columns: list[Ids]


def together(found: Sequence[Steps]) -> Steps:
    """Return the steps of several actions, at least one, concatenated."""
    return Steps(
        np.concatenate([steps.source for steps in found]),
        np.concatenate([steps.label for steps in found]),
        [np.concatenate(columns) for columns in zip(*(steps.columns for steps in found), strict=True)],
    )


class Table:
    """One action's rows and outcomes."""

    def __init__(self, action: Action, tables: Tables) -> None:
        self._action = action
        self._tables = tables
        self._rows = Rows(len(action.reads))
        self._start = Column()
        self._count = Column()
        self._label = Column()
        self._writes: dict[int, Column] = {}
        self._updates: dict[int, Column] = {}

    @property
    def rows(self) -> int:
        return self._start.size

    def steps(self, columns: Sequence[Ids]) -> Steps | None:
        """Return all successors by this action of the states in ``columns`` (one column per component, then one per
        view)."""
        read = [columns[component] for component in self._action.reads]
        rows, new = self._rows.number(read)
        if new.size:
            self._fill([column[new] for column in read])
        counts = self._count.view[rows]
        source = np.flatnonzero(counts)
        if not source.size:
            return None
        rows, counts = rows[source], counts[source]
        place: NDArray[Any] = self._start.view[rows]
        if counts.max() > 1:
            source = np.repeat(source, counts)
            first = np.cumsum(counts) - counts
            place = np.repeat(place - first, counts) + np.arange(source.size, dtype=np.int64)
        return self._apply(columns, source, place)

    def _apply(self, columns: Sequence[Ids], source: NDArray[np.int64], place: NDArray[Any]) -> Steps | None:
        updates = {component: column.view[place] for component, column in self._updates.items()}
        possible: NDArray[np.bool_] | None = None
        after: list[Ids] = []
        for component in range(len(self._tables.components)):
            numbers = columns[component][source]
            if component in self._writes:
                written = self._writes[component].view[place]
                numbers = np.where(written >= 0, written, numbers).astype(np.int32, copy=False)
            if component in updates:
                changed = np.flatnonzero(updates[component] >= 0)
                numbers[changed] = self._tables.updated(component, numbers[changed], updates[component][changed])
                if (numbers < 0).any():
                    possible = numbers >= 0 if possible is None else possible & (numbers >= 0)
            after.append(numbers)
        label = self._label.view[place]
        if possible is not None:
            kept = np.flatnonzero(possible)
            if not kept.size:
                return None
            source, label, after = source[kept], label[kept], [numbers[kept] for numbers in after]
        return Steps(source, label, after)

    def _fill(self, read: Sequence[Ids]) -> None:
        """Compute the rows for these combinations of component numbers, by the model."""
        tables = self._tables
        arguments = [
            [tables.values[component][number] for number in column.tolist()]
            for component, column in zip(self._action.reads, read, strict=True)
        ]
        starts: list[int] = []
        counts: list[int] = []
        labels: list[int] = []
        written: dict[int, list[tuple[int, int]]] = {}
        updated: dict[int, list[tuple[int, int]]] = {}
        size = self._label.size
        for combination in zip(*arguments, strict=True):
            starts.append(size + len(labels))
            before = len(labels)
            for outcome in self._action.outcomes(*combination):
                here = size + len(labels)
                labels.append(tables.labels.number((outcome.label, outcome.note)))
                for component, value in outcome.writes:
                    number = tables.components[component].number(value)
                    written.setdefault(component, []).append((here, number))
                for component, token in outcome.updates:
                    number = tables.tokens[component].number(token)
                    updated.setdefault(component, []).append((here, number))
            counts.append(len(labels) - before)
        self._start.extend(starts)
        self._count.extend(counts)
        self._label.extend(labels)
        for effects, found in ((self._writes, written), (self._updates, updated)):
            for component in found:
                effects.setdefault(component, Column())
            for component, column in effects.items():
                column.extend(np.full(self._label.size - column.size, -1, dtype=np.int32))
                if component in found:
                    places, numbers = zip(*found[component], strict=True)
                    column.view[list(places)] = numbers

    @property
    def nbytes(self) -> int:
        effects = [*self._writes.values(), *self._updates.values(), self._start, self._count, self._label]
        return self._rows.nbytes + sum(column.nbytes for column in effects)


class Tables:
    """Everything known so far of a system's local steps."""

    def __init__(self, system: System) -> None:
        self.system = system
        self.labels = Interner()  #: (label, note)
        self.components = [Interner() for _ in system.components]
        self.tokens = [Interner() for _ in system.components]
        views = [Interner() for _ in system.views]
        self.values: list[list[Any]] = [interner.values for interner in (*self.components, *views)]
        self._views = [
            self.memo(lambda value, view=view, seen=seen: seen.number(view.of(value)), (view.component,))
            for view, seen in zip(system.views, views, strict=True)
        ]
        self.tables = [Table(action, self) for action in system.actions]
        self._updates = [self._update_memo(component) for component in range(len(self.components))]

    def _update_memo(self, component: int) -> Memo:
        def result(value: Any, token: Any) -> int:
            after = self.system.update(component, value, token)
            return -1 if after is None else self.components[component].number(after)

        return Memo(result, (0, 1), [self.values[component], self.tokens[component].values])

    def with_views(self, columns: list[Ids]) -> list[Ids]:
        """Return the columns of the components, then those of the views."""
        return [*columns, *(memo([columns[memo.components[0]]]) for memo in self._views)]

    def read(self, columns: Sequence[Ids], reads: Sequence[int]) -> list[Ids]:
        """Return the columns of these components and views; ``columns`` holds at least the components."""
        width = len(self.components)
        return [
            columns[each] if each < len(columns) else self._views[each - width]([columns[self.component_of(each)]])
            for each in reads
        ]

    def component_of(self, read: int) -> int:
        """Return the component that is read; for a view, its component."""
        return read if read < len(self.components) else self._views[read - len(self.components)].components[0]

    def updated(self, component: int, numbers: Ids, tokens: Ids) -> Ids:
        return self._updates[component]((numbers, tokens))

    def memo(self, function: Callable[..., Any], reads: Sequence[int]) -> Memo:
        """Remember ``function`` for the values of these components."""
        return Memo(lambda *values: int(function(*values)), reads, self.values)

    @property
    def nbytes(self) -> int:
        return sum(table.nbytes for table in self.tables)
