"""Virtual time: scheduled actions and the timers of coordinators, in one order."""

from __future__ import annotations

import heapq
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Hashable, Mapping
from random import Random
from typing import Generic, TypeVar

from .broken import Broken

LAST_LINES = 40
#: more turns than this in one millisecond are a loop, since no timer of a client is that short
MOST_AT_ONCE = 10_000

K = TypeVar("K", bound=Hashable)


class Clockwork(ABC, Generic[K]):
    """Virtual time. ``now`` is in ms; ``rng`` draws everything random; ``K`` names a timer."""

    def __init__(self, seed: str) -> None:
        self.now = 0
        self.rng = Random(seed)
        self._agenda: list[tuple[int, int, Callable[[], None]]] = []
        self._count = 0
        self._lines: deque[str] = deque(maxlen=LAST_LINES)
        self._at_once = 0
        self._steps = 0

    @property
    @abstractmethod
    def timers(self) -> Mapping[K, int]:
        """Return the timers that are set, with their deadlines in ms."""

    @abstractmethod
    def fire(self, timer: K) -> None:
        """Handle a timer that is due."""

    def later(self, delay_ms: int, what: Callable[[], None]) -> None:
        self._count += 1
        heapq.heappush(self._agenda, (self.now + delay_ms, self._count, what))

    def _until(self, end: int) -> None:
        """Run everything that is due before ``end``."""
        while self._turn(end):
            pass
        self.now = end

    def _turn(self, end: int) -> bool:
        """Run the first thing that is due before ``end``; False if there is none."""
        timers = self.timers
        first = min(timers.values(), default=end)
        if self._agenda and self._agenda[0][0] <= first:
            at, _, what = self._agenda[0]
            if at >= end:
                return False
            heapq.heappop(self._agenda)
            self._at_once = 0 if at > self.now else self._at_once + 1
            if self._at_once > MOST_AT_ONCE:
                raise Broken("LIV-12", f"endless loop: {MOST_AT_ONCE} turns in one millisecond")
            self.now = max(self.now, at)
            what()
            return True
        if first < end:
            self.now = max(self.now, first)
            self.fire(self.rng.choice(sorted((key for key, at in timers.items() if at <= self.now), key=str)))
            return True
        return False

    def note(self, text: str) -> None:
        self._steps += 1
        self._lines.append(f"{self.now:>7} ms  {text}")

    def jitter(self) -> float:
        return self.rng.uniform(0.8, 1.2)
