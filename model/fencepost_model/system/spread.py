"""Exploration distributed over Spark, for graphs that do not fit on one machine.

A state is sent as the digests of its components (12 bytes of BLAKE2b each, so two different values are confused only
with probability 2^-96). The value of a digest is sent once, by broadcast. States belong to partitions by their digests,
and a partition keeps the states that it has seen. One level of the search is one round: each partition expands its
frontier with its tables and sends successors to their partitions, which find out which are new.

Invariants and step properties are checked; a violation is reported with its depth. Traces and liveness need the whole
graph in one place; the other engines are for that. Counts are the same as theirs.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, fields, is_dataclass
from enum import Enum
from functools import lru_cache
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..explore.index import Ids
from ..explore.interface import State
from ..explore.search import step_memo
from ..explore.tables import Memo, Tables
from .families import system_of
from .mutants import mutated
from .problem import Problem

if TYPE_CHECKING:
    from pyspark import RDD
    from pyspark.sql import SparkSession

WIDTH: Final = 12
Rows: TypeAlias = NDArray[np.uint8]  #: one state per row, ``WIDTH`` bytes per component


def canonical(value: Any) -> bytes:
    """Return bytes that are equal exactly for equal values, in every process: sets in a fixed order, types by name."""
    if isinstance(value, frozenset):
        return b"{" + b"".join(sorted(map(canonical, value))) + b"}"
    if isinstance(value, tuple):
        return type(value).__name__.encode() + b"(" + b"".join(map(canonical, value)) + b")"
    if isinstance(value, Enum):
        return f"{type(value).__name__}.{value.name};".encode()
    if is_dataclass(value):
        return canonical((type(value).__name__, *(getattr(value, each.name) for each in fields(value))))
    if value is None or isinstance(value, str | bytes | int):
        text = value if isinstance(value, bytes) else str(value).encode()
        return f"{type(value).__name__}{len(text)}:".encode() + text
    raise TypeError(f"no canonical form of {type(value).__name__}")


class Report(NamedTuple):
    """The report of a partition to the driver about a level: values that may be new, transitions, broken properties."""

    values: dict[bytes, bytes]
    generated: int
    broken: frozenset[str]


@dataclass(slots=True)
class Spread:
    """The result of a distributed exploration."""

    states: int = 0
    generated: int = 0
    depth: int = 0
    broken: dict[str, int] = field(default_factory=dict)  #: property → length of the shortest trace to it


class Worker:
    """A system with its tables in one Python process. Converts between digests and component numbers."""

    def __init__(self, problem: Problem) -> None:
        self.system = system_of(problem)
        self.tables = tables = Tables(self.system)
        self.numbers: list[dict[bytes, int]] = [{} for _ in tables.components]
        self.digests = [np.empty((0, WIDTH), dtype=np.uint8) for _ in tables.components]
        properties = self.system.properties
        self.invariants: list[tuple[str, Memo]] = [
            (each.name, tables.memo(each.holds, each.reads)) for each in properties.invariants
        ]
        self.steps = [(each, step_memo(tables, each)) for each in properties.steps]

    def catch_up(self, component: int) -> dict[bytes, bytes]:
        """Digest the component's values that are new since the last call. Returns them pickled, by digest."""
        values = self.tables.components[component].values
        known = len(self.digests[component])
        found: dict[bytes, bytes] = {}
        for number in range(known, len(values)):
            digest = blake2b(canonical(values[number]), digest_size=WIDTH).digest()
            self.numbers[component][digest] = number
            found[digest] = pickle.dumps(values[number])
        if found:
            new = np.frombuffer(b"".join(found), dtype=np.uint8).reshape(-1, WIDTH)
            self.digests[component] = np.concatenate([self.digests[component], new])
        return found

    def rows(self, columns: list[Ids]) -> tuple[Rows, dict[bytes, bytes]]:
        values: dict[bytes, bytes] = {}
        for component in range(len(columns)):
            values |= self.catch_up(component)
        return np.concatenate([self.digests[each][column] for each, column in enumerate(columns)], axis=1), values

    def columns(self, rows: Rows, values: dict[bytes, bytes]) -> list[Ids]:
        found: list[Ids] = []
        for component, numbers in enumerate(self.numbers):
            part = np.ascontiguousarray(rows[:, component * WIDTH : (component + 1) * WIDTH])
            distinct, inverse = np.unique(part.view(np.dtype((np.void, WIDTH))).ravel(), return_inverse=True)
            for digest in map(bytes, distinct):
                if digest not in numbers:
                    self.tables.components[component].number(pickle.loads(values[digest]))
                    self.catch_up(component)
            local = np.array([numbers[bytes(digest)] for digest in distinct], dtype=np.int32)
            found.append(local[inverse])
        return found

    def initial(self) -> tuple[Rows, dict[bytes, bytes]]:
        states: list[State] = list(self.system.initial())
        columns = [
            np.array([interner.number(value) for value in column], dtype=np.int32)
            for interner, column in zip(self.tables.components, zip(*states, strict=True), strict=True)
        ]
        return self.rows(columns)

    def expand(self, frontier: Rows, known: dict[bytes, bytes]) -> tuple[Rows, Report]:
        """Return the distinct successors of these states, and the report."""
        columns = self.columns(frontier, known)
        broken = {name for name, memo in self.invariants if not memo(self.tables.read(columns, memo.components)).all()}
        seen = self.tables.with_views(columns)
        found: list[Rows] = []
        values: dict[bytes, bytes] = {}
        generated = 0
        for table in self.tables.tables:
            steps = table.steps(seen)
            if steps is None:
                continue
            generated += steps.source.size
            rows, new = self.rows(steps.columns)
            values |= new
            found.append(unique(rows))
            for step, memo in self.steps:
                words = np.array([not step.actions or label[0] in step.actions for label, _ in self.labels])
                places = np.flatnonzero(words[steps.label])
                before = self.tables.read([column[steps.source[places]] for column in columns], step.reads)
                after = self.tables.read([column[places] for column in steps.columns], step.reads)
                if not memo([steps.label[places], *before, *after]).all():
                    broken.add(step.name)
        fresh = {digest: value for digest, value in values.items() if digest not in known}
        rows = unique(np.concatenate(found)) if found else frontier[:0]
        return rows, Report(fresh, generated, frozenset(broken))

    @property
    def labels(self) -> list[Any]:
        return self.tables.labels.values


@lru_cache(maxsize=1)
def _worker(problem: Problem) -> Worker:
    """Return this process's tables. Spark keeps its Python workers, so they last from level to level."""
    return Worker(problem)


def unique(rows: Rows) -> Rows:
    """Return the distinct rows, sorted."""
    if not rows.size:
        return rows
    width = rows.shape[1]
    keys = np.unique(np.ascontiguousarray(rows).view(np.dtype((np.void, width))).ravel())
    return keys.view(np.uint8).reshape(-1, width)


def without(rows: Rows, seen: Rows) -> Rows:
    """Return the sorted rows that are not among the sorted rows ``seen``."""
    if not rows.size or not seen.size:
        return rows
    kind = np.dtype((np.void, rows.shape[1]))
    mine, other = (np.ascontiguousarray(each).view(kind).ravel() for each in (rows, seen))
    place = np.minimum(np.searchsorted(other, mine), other.size - 1)
    new: Rows = rows[other[place] != mine]
    return new


def homes(rows: Rows, partitions: int) -> NDArray[np.int64]:
    """Return the partition of each state."""
    mixed = np.zeros(len(rows), dtype=np.uint64)
    for first in range(0, rows.shape[1], WIDTH):
        part = np.ascontiguousarray(rows[:, first : first + 8]).view(np.uint64).ravel()
        mixed = mixed * np.uint64(0x9E3779B97F4A7C15) + part
    return ((mixed >> np.uint64(32)) % np.uint64(partitions)).astype(np.int64)


def split(rows: Rows, partitions: int) -> Iterator[tuple[int, Rows]]:
    home = homes(rows, partitions)
    for partition in range(partitions):
        mine = rows[home == partition]
        if mine.size:
            yield partition, mine


def spread(
    session: SparkSession,
    problem: Problem,
    *,
    partitions: int,
    copies: int = 1,
    watch: Callable[[int, int], None] | None = None,
) -> Spread:
    """Explore on the session's cores. ``watch`` gets (states, depth) after each level.

    The visited states are held by ``copies`` executors (1 or 2): with two, a lost executor costs only its tasks.
    """
    from pyspark import StorageLevel  # noqa: PLC0415 — Spark is optional

    held = StorageLevel.MEMORY_AND_DISK_2 if copies > 1 else StorageLevel.MEMORY_ONLY
    context = session.sparkContext
    with mutated(*problem.mutants):
        first, known = Worker(problem).initial()
    found = Spread()
    homed = dict(split(unique(first), partitions))
    empty = first[:0]
    state: RDD[tuple[int, tuple[Rows, Rows]]] = context.parallelize(
        [(partition, (homed.get(partition, empty),) * 2) for partition in range(partitions)], partitions
    ).partitionBy(partitions)
    fresh = found.generated = sum(len(rows) for rows in homed.values())
    while fresh:
        found.states += fresh
        found.depth += 1
        catalogue = context.broadcast(known)

        def expand(element: tuple[int, tuple[Rows, Rows]], catalogue: Any = catalogue) -> list[tuple[int, Any]]:
            frontier = element[1][1]
            if not frontier.size:
                return []
            with mutated(*problem.mutants):
                rows, report = _worker(problem).expand(frontier, catalogue.value)
            return [(-1, report), *split(rows, partitions)]

        expanded = state.flatMap(expand).persist(held)
        for report in expanded.filter(lambda each: each[0] < 0).values().collect():
            known |= report.values
            found.generated += report.generated
            for name in report.broken:
                found.broken.setdefault(name, found.depth)
        arrived = expanded.filter(lambda each: each[0] >= 0).groupByKey(partitions)
        following = state.leftOuterJoin(arrived, partitions).mapValues(_merge).persist(held)
        if found.depth % 8 == 0:
            following.localCheckpoint()
        fresh = following.map(lambda each: len(each[1][1])).sum()
        expanded.unpersist()
        state.unpersist()
        catalogue.unpersist()
        state = following
        if watch is not None:
            watch(found.states, found.depth)
        if found.broken:
            break
    state.unpersist()
    return found


def _merge(element: tuple[tuple[Rows, Rows], Iterable[Rows] | None]) -> tuple[Rows, Rows]:
    """Return (seen, frontier) of the next level, from those of this one and the rows that arrived."""
    (seen, _), arrived = element
    if arrived is None:
        return seen, seen[:0]
    new = without(unique(np.concatenate(list(arrived))), seen)
    return unique(np.concatenate([seen, new])), new
