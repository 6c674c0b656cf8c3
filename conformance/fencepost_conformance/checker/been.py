"""Where a search has been: places that it need not look at again.

A search comes to one state of the group on many ways, and each way has other bounds of the deadlines. The wider bounds
allow all that the narrower ones do: a timer may run out earlier, and must run out later. So a place is known if the
search has been in the same state with bounds that are at least as wide.
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
    """Places of one search: a state with anything that can be compared, and its times."""

    def __init__(self) -> None:
        self._times: dict[Hashable, list[tuple[int, tuple[Clock, ...]]]] = {}

    def before(self, state: Hashable, after: int, clocks: tuple[Clock, ...]) -> bool:
        """True if the search need not look at this place again; it is remembered otherwise.

        ``after``: the next step is not earlier. ``clocks``: the armed timers, which the state decides, in their order.
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
