"""An event loop whose clock stands still while there is work: a busy machine then makes no timer early."""

from __future__ import annotations

import asyncio
import selectors
from typing import Any


class _Selector(selectors.DefaultSelector):
    """Counts the seconds for which the loop asked to wait, and nothing came."""

    idle = 0.0

    def select(self, timeout: float | None = None) -> list[Any]:
        ready = super().select(timeout)
        if not ready and timeout is not None and timeout > 0:
            self.idle += timeout
        return ready


class IdleClock(asyncio.SelectorEventLoop):
    """Its time is the time spent waiting for nothing. Requests and answers within the loop take no time, so a session
    of 150 ms never expires before the next request, however slow the machine is."""

    def __init__(self) -> None:
        self._idle = _Selector()
        super().__init__(self._idle)

    def time(self) -> float:
        return self._idle.idle
