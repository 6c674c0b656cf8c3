"""Differences of many traces, grouped by key."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable
from dataclasses import dataclass, field

from ...generate.plan import GroupProtocol
from ..verdict import Tally, Unsettled, Verdict
from .job import Found, Row


@dataclass(slots=True)
class Group:
    """All differences with one key. ``first``: in the smallest seed (of the first protocol that has one); ``example``:
    the one that is earliest in its trace. ``following``: number of differences that are consequences of one of
    these."""

    key: str
    traces: int = 0
    times: int = 0
    following: int = 0
    first: tuple[GroupProtocol, int, Found] | None = None
    example: tuple[GroupProtocol, int, Found] | None = None
    values: set[tuple[str, str]] = field(default_factory=set)
    others: Counter[str] = field(default_factory=Counter)
    protocols: set[GroupProtocol] = field(default_factory=set)

    @property
    def always(self) -> tuple[str, str] | None:
        """Both values, if they are the same at every occurrence."""
        return next(iter(self.values)) if len(self.values) == 1 else None

    def add(self, row: Row, found: Found) -> None:
        self.traces += 1
        self.times += found.times
        self.protocols.add(row.protocol)
        self.others.update(found.others)
        if len(self.values) < 2:
            self.values.add((found.left, found.right))
        here = (row.protocol, row.seed, found)
        self.first = here if self.first is None else min(self.first, here, key=_by_seed)
        self.example = here if self.example is None else min(self.example, here, key=_by_event)


_ORDER = list(GroupProtocol)


def _by_seed(place: tuple[GroupProtocol, int, Found]) -> tuple[int, int]:
    return _ORDER.index(place[0]), place[1]


def _by_event(place: tuple[GroupProtocol, int, Found]) -> tuple[int, int, int]:
    return place[2].event, *_by_seed(place)


@dataclass(slots=True)
class Groups:
    """Collects rows in any order; the result does not depend on the order."""

    groups: dict[str, Group] = field(default_factory=dict)
    traces: int = 0
    steps: int = 0
    differing: int = 0  #: traces with a difference
    sets: Counter[frozenset[str]] = field(default_factory=Counter)  #: number of traces by their set of groups
    broken: list[Row] = field(default_factory=list)  #: traces that a side could not run

    def add(self, row: Row) -> None:
        self.traces += 1
        self.steps += row.steps
        if row.broken:
            self.broken = sorted([*self.broken, row], key=lambda kept: (_ORDER.index(kept.protocol), kept.seed))
        self.differing += bool(row.found)
        if row.found:
            self.sets[frozenset(found.key for found in row.found)] += 1
        for found in row.found:
            self._group(found.key).add(row, found)
        for key, count in row.following.items():
            self._group(key).following += count

    def add_all(self, rows: Iterable[Row]) -> None:
        for row in rows:
            self.add(row)

    def _group(self, key: str) -> Group:
        return self.groups.setdefault(key, Group(key))

    def tally(self, accepted: Container[str]) -> Tally:
        """Return the verdicts; a trace that differs in ``accepted`` groups only has passed."""
        failed = sum(traces for keys, traces in self.sets.items() if any(key not in accepted for key in keys))
        broken = len(self.broken)
        return Tally(passed=self.traces - failed - broken, failed=failed, broken=broken)

    def unsettled(self) -> list[Unsettled]:
        """Return the traces that a side could not run."""
        return [
            Unsettled(
                Verdict.BROKEN,
                f"{row.protocol} seed {row.seed}",
                row.broken,
                {"protocol": row.protocol.value, "seed": row.seed},
            )
            for row in self.broken
        ]

    def ordered(self) -> list[Group]:
        """Return the groups, those in most traces first."""
        return sorted(self.groups.values(), key=lambda group: (-group.traces, group.key))
