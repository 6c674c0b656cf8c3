"""The parts of a long benchmark, each with a limit of time and a line of progress.

A part that is late, or cannot run, is skipped with the reason, and the next one begins. So the whole benchmark ends in
bounded time, and its progress shows what takes how long.
"""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import TypeVar

from ...common.errors import BrokerFault, CannotRun
from .measure import Measured, Row

T = TypeVar("T")


class _LateError(Exception):
    """The time of a part is over. It is no ``OSError``, so that no code on the way takes it for a closed port."""


@dataclass(slots=True)
class Parts:
    """Runs parts one after the other, on the main thread. ``name``: of the benchmark. ``total_s``: no part runs longer
    than until so many seconds after the first one began."""

    name: str
    total_s: float
    skipped: dict[str, str] = field(default_factory=dict)
    _began: float | None = None

    def run(self, part: str, limit_s: float, work: Callable[[], T]) -> T | None:
        """Return the result of ``work``, or None if it is skipped; either way print a line of progress."""
        began = time.monotonic()
        self._began = began if self._began is None else self._began
        left_s = self._began + self.total_s - began
        try:
            if left_s <= 0:
                raise CannotRun(f"not begun: the {self.total_s:g} s of the whole benchmark were over")
            with _limited(min(limit_s, left_s)):
                found = work()
        except (_LateError, CannotRun, BrokerFault) as reason:
            self.skipped[f"{self.name}: {part}"] = str(reason)
            self._print(f"{part}: skipped: {str(reason).splitlines()[0]}")
            return None
        self._print(f"{part}: {time.monotonic() - began:.1f} s")
        return found

    def measured(self, rows: Sequence[Row]) -> Measured:
        """Return these rows as the result, with what was skipped."""
        return Measured(rows, self.skipped)

    def _print(self, line: str) -> None:
        print(f"{self.name}: {line}", file=sys.stderr, flush=True)


@contextmanager
def _limited(limit_s: float) -> Iterator[None]:
    """Interrupt the block after ``limit_s`` seconds, whatever it waits for. Raises ``_LateError`` then."""

    def late(number: int, frame: FrameType | None) -> None:
        raise _LateError(f"did not end within {limit_s:.3g} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, limit_s)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
