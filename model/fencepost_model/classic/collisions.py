"""Timers that Kafka cannot distinguish (M-TMR-01, C-TMR-11).

The key of a timer is one string: the names of its group and its member, joined by hyphens. Names may have hyphens too:
group `g` with member `0-x` has the key of group `g-0` with member `x`. The model keys timers by group, kind and member.
This module computes which other timers have the same string: arming or cancelling one cancels them all.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from ..consumer.state import JOIN, SYNC
from .state import Timer

#: How the string of a member's timer begins, if a timer of a whole group begins the same way (X-TMR-01).
_SHARED: Final = {JOIN: "join", SYNC: "sync"}
_KINDS: Final = {beginning: kind for kind, beginning in _SHARED.items()}


@lru_cache(maxsize=1 << 12)
def mistaken(group_id: str, timer: Timer) -> tuple[tuple[str, Timer], ...]:
    """Return all other timers that have the string of this one, if such groups and members exist."""
    beginning = _SHARED.get(timer.kind, timer.kind)
    words = (group_id if timer.kind in _KINDS else f"{group_id}-{timer.member_id}").split("-")
    readings = [
        ("-".join(words[:at]), Timer(_KINDS.get(beginning, beginning), "-".join(words[at:])))
        for at in range(1, len(words))
    ]
    if beginning in _KINDS:
        readings.append(("-".join(words), Timer(beginning)))
    return tuple([reading for reading in readings if reading != (group_id, timer)])
