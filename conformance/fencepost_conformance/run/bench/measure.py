"""Measures two figures in turn and compares neighbours.

Work that runs on one core is measured by the processor time of this process and its children (``processor_seconds``),
so that other users of the machine matter little. Work that should use all cores is measured by wall-clock time.
"""

from __future__ import annotations

import resource
import statistics
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the cost table: ``value`` of ``what`` in ``unit``, beside the same figure of ``versus``.

    ``ratio`` is value / versus value (median over the rounds), None if there is nothing to compare with. ``goal``: the
    project's goal for the ratio or value, in words.
    """

    name: str
    what: str
    value: float
    unit: str
    versus: str = ""
    versus_value: float | None = None
    ratio: float | None = None
    goal: str = ""


@dataclass(frozen=True, slots=True)
class Measured:
    """The rows of a benchmark, and the parts that it left out, each with the reason."""

    rows: Sequence[Row]
    skipped: dict[str, str]


#: Does its work once and returns the amount, in the row's unit without "a second".
Work = Callable[[], int]
#: Returns the time, in seconds.
Clock = Callable[[], float]


def processor_seconds() -> float:
    """Return the processor time of this process, and of its child processes that have ended."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def processor_seconds_of(pid: int) -> float:
    """Return the processor time of all running threads of a process. Linux counts it in nanoseconds here, elsewhere in
    hundredths of a second."""
    taken = 0
    for each in Path(f"/proc/{pid}/task").glob("*/schedstat"):
        with suppress(FileNotFoundError, ProcessLookupError):  # the thread has ended
            taken += int(each.read_text().split()[0])
    return taken / 1e9


def rate(work: Work, clock: Clock = time.perf_counter) -> float:
    """Return how much ``work`` does in a second."""
    began = clock()
    amount = work()
    return amount / (clock() - began)


def single(
    name: str, what: str, unit: str, work: Work, *, rounds: int = 3, goal: str = "", clock: Clock = time.perf_counter
) -> Row:
    """Measure a rate without a comparison: the median of the rounds."""
    return Row(name, what, statistics.median(rate(work, clock) for _ in range(rounds)), unit, goal=goal)


def pair(
    name: str,
    what: str,
    versus: str,
    unit: str,
    *,
    work: Work,
    other: Work,
    rounds: int = 3,
    goal: str = "",
    clock: Clock = time.perf_counter,
) -> Row:
    """Measure two rates in turn, A B A B …; the ratio is the median of the pairs'."""
    pairs = [(rate(work, clock), rate(other, clock)) for _ in range(rounds)]
    return Row(
        name,
        what,
        statistics.median(left for left, _ in pairs),
        unit,
        versus,
        statistics.median(right for _, right in pairs),
        statistics.median(left / right for left, right in pairs),
        goal,
    )
