"""The places that a search has visited and need not visit again.

A search reaches the same state of the group by many paths, and each path gives the deadlines of timers other bounds.
Wider bounds allow all that narrower ones do: the timer may fire earlier, and must fire only later. So the search skips
a place if it has visited the same state with bounds that are at least as wide.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple

from fencepost_model.classic.state import Timer


class Clock(NamedTuple):
    """An armed timer: the bounds of its deadline, in ms of the trace."""

    timer: Timer
    earliest: int
    latest: int


class Been:
    """The visited places of one search: states, as values that can be compared, with their times."""

    def __init__(self) -> None:
        self._times: dict[Hashable, list[tuple[int, tuple[Clock, ...]]]] = {}

    def before(self, state: Hashable, after: int, clocks: tuple[Clock, ...]) -> bool:
        """Whether the search has visited this place; if not, remember it.

        ``after``: the earliest time of the next step. ``clocks``: the armed timers, in the order that the state gives.
        """
        known = self._times.setdefault(state, [])
        if any(then <= after and _as_wide(others, clocks) for then, others in known):
            return True
        known.append((after, clocks))
        return False


def _as_wide(these: tuple[Clock, ...], those: tuple[Clock, ...]) -> bool:
    return all(
        this.earliest <= that.earliest and this.latest >= that.latest for this, that in zip(these, those, strict=True)
    )
