"""The cost of a step as the coordinator grows, as ratios to the smallest in the same run; and its memory."""

from __future__ import annotations

import gc
import statistics
import tracemalloc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice

from fencepost.coordinator import CoordinatorState, step
from fencepost.protocol.events import Event

from ...show.listing import Listing
from .measure import Row, processor_seconds
from .sizes import CASES, Case, choices, classic_members, consumer_members, many_groups

_ROUNDS = 5
#: Limits of a round of one size: seconds of processor time, and number of steps.
_ROUND, _STEPS = 0.02, 400
UNIT, BYTES = "µs a step", "bytes"
_MEMORY = 10_000  #: number of groups for the memory; the number of members is as in the cases


def growth() -> list[Row]:
    """Measure every case at every size, then the memory."""
    return [*(row for case in CASES for row in growth_of(case)), *memory()]


def growth_of(case: Case) -> list[Row]:
    """Measure one kind of step: microseconds at each size. The ratio is the median over the rounds, each compared with
    the smallest size in the same round."""
    with _quiet():
        runs = [_Run(case.made(size), list(islice(case.events(size), _STEPS))) for size in case.sizes]
        gc.collect()
        gc.freeze()
        for run in runs:
            run.take(1)
            run.settle()
        rounds = [[run.microseconds() for run in runs] for _ in range(_ROUNDS)]
        gc.unfreeze()
    values = [statistics.median(column) for column in zip(*rounds, strict=True)]
    smallest = f"{case.sizes[0]:,} {case.of}"
    return [
        Row(
            "growth",
            f"{case.what}; {size:,} {case.of}",
            value,
            UNIT,
            smallest,
            values[0],
            statistics.median(each[at] / each[0] for each in rounds),
            f"grows: {case.grows}" if case.grows else "1",
        )
        for at, (size, value) in enumerate(zip(case.sizes, values, strict=True))
    ]


@dataclass(slots=True)
class _Run:
    """Steps from one state, each independent: a state is a value, so several steps can start from it."""

    state: CoordinatorState
    events: Sequence[Event]
    steps: int = 1

    def take(self, count: int) -> float:
        """Take so many steps; returns their seconds of processor time."""
        chooses, events = choices(), [self.events[number % len(self.events)] for number in range(count)]
        began = processor_seconds()
        for event in events:
            step(self.state, event, chooses)
        return processor_seconds() - began

    def settle(self) -> None:
        """Decide how many steps a round has."""
        while self.steps < _STEPS and self.take(self.steps) < _ROUND / 2:
            self.steps *= 2

    def microseconds(self) -> float:
        return self.take(self.steps) / self.steps * 1e6


def memory() -> list[Row]:
    """Measure memory by tracemalloc: what Python allocated for a state and still holds, per group or member; and what a
    step adds while every earlier state is kept."""
    members = max(size for case in CASES if case.made is consumer_members for size in case.sizes)
    rows = [
        _bytes("a group of one member, half of each kind", lambda: many_groups(_MEMORY), _MEMORY),
        _bytes("a member of a classic group", lambda: classic_members(members), members),
        _bytes("a member of a consumer group", lambda: consumer_members(members), members),
    ]
    kept = [case for case in CASES if case.what in ("Heartbeat", "heartbeat", "JoinGroup to a new group")]
    for case in kept:
        size = case.sizes[-2]
        state, events = case.made(size), list(islice(case.events(size), 100))
        rows.append(
            _bytes(
                f"an old state that is kept, one {case.what} ago; {size:,} {case.of}",
                lambda state=state, events=events: _kept(state, events),
                len(events),
            )
        )
    return rows


def _kept(state: CoordinatorState, events: Sequence[Event]) -> list[CoordinatorState]:
    chooses, states = choices(), [state]
    for event in events:
        states.append(step(states[-1], event, chooses)[0])
    return states


def _bytes(what: str, make: object, count: int) -> Row:
    assert callable(make)
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        made = make()
        gc.collect()
        held = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert made is not None
    return Row("growth", what, held / count, BYTES)


@contextmanager
def _quiet() -> Iterator[None]:
    """Disable the garbage collector, which scans everything from time to time, whichever code runs."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def by_size(rows: Sequence[Row]) -> dict[str, list[tuple[Case, list[Row]]]]:
    """Return the rows of each case, smallest size first, by the growing thing."""
    found: dict[str, list[tuple[Case, list[Row]]]] = {}
    for case in CASES:
        of_case = [row for size in case.sizes for row in rows if row.what == f"{case.what}; {size:,} {case.of}"]
        if of_case:
            found.setdefault(case.of, []).append((case, of_case))
    return found


def listing(rows: Sequence[Row]) -> Listing:
    """Return a table for the terminal: microseconds at the smallest size, and the factors at the others."""
    sizes = sorted({size for case in CASES for size in case.sizes})
    columns = ("of", "what", "smallest", *(f"{size:,}" for size in sizes[1:]))
    table = Listing(columns, title="Cost of a step as the coordinator grows", numbers=frozenset(columns[2:]))
    for of, cases in by_size(rows).items():
        for case, of_case in cases:
            ratio = {size: row.ratio for size, row in zip(case.sizes, of_case, strict=True)}
            ratios = [ratio.get(size) for size in sizes[1:]]
            table.add(
                of,
                case.what,
                f"{of_case[0].value:,.0f} µs",
                *("" if each is None else f"{each:,.2g}" if each < 10 else f"{each:,.0f}" for each in ratios),
            )
    for row in rows:
        if row.unit == BYTES:
            table.add("memory", row.what, f"{row.value:,.0f} bytes", *("" for _ in sizes[1:]))
    return table
