"""Take two figures in turn and compare neighbours."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the cost table: ``value`` of ``what`` in ``unit``, beside the same figure of ``versus``.

    ``ratio`` is value / versus value (median over the rounds), None if there is nothing to compare with. ``aim`` is the
    ratio or value that the project aims for, in words.
    """

    name: str
    what: str
    value: float
    unit: str
    versus: str = ""
    versus_value: float | None = None
    ratio: float | None = None
    aim: str = ""


#: Does its work once and returns how much was done, in the row's unit without "a second".
Work = Callable[[], int]


def rate(work: Work) -> float:
    """How much ``work`` does in a second."""
    began = time.perf_counter()
    amount = work()
    return amount / (time.perf_counter() - began)


def single(name: str, what: str, unit: str, work: Work, *, rounds: int = 3, aim: str = "") -> Row:
    """A rate with nothing beside it: the median of the rounds."""
    return Row(name, what, statistics.median(rate(work) for _ in range(rounds)), unit, aim=aim)


def pair(
    name: str, what: str, versus: str, unit: str, *, work: Work, other: Work, rounds: int = 3, aim: str = ""
) -> Row:
    """Two rates in turn, A B A B …; the ratio is the median of the pairs'."""
    pairs = [(rate(work), rate(other)) for _ in range(rounds)]
    return Row(
        name,
        what,
        statistics.median(left for left, _ in pairs),
        unit,
        versus,
        statistics.median(right for _, right in pairs),
        statistics.median(left / right for left, right in pairs),
        aim,
    )
