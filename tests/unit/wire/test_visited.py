"""Places that a search need not visit again."""

from __future__ import annotations

from fencepost_conformance.judge.checker.been import Been, Clock
from fencepost_model.classic.state import JOIN_TIMER, SYNC_TIMER

PLACE = (3, "state")


def test_only_places_within_known_bounds_are_known() -> None:
    been = Been()
    clocks = (Clock(JOIN_TIMER, 100, 200), Clock(SYNC_TIMER, 100, 200))
    assert not been.before(PLACE, 50, clocks)
    assert been.before(PLACE, 50, clocks)
    assert been.before(PLACE, 60, (clocks[0], Clock(SYNC_TIMER, 120, 180)))
    assert not been.before((4, "state"), 50, clocks)
    assert not been.before(PLACE, 40, clocks)
    assert not been.before(PLACE, 50, (clocks[0], Clock(SYNC_TIMER, 90, 200)))
    assert not been.before(PLACE, 50, (Clock(JOIN_TIMER, 100, 210), clocks[1]))
