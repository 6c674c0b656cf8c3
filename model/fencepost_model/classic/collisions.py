"""Which timers Kafka cannot tell from one another (M-TMR-01, C-TMR-11).

A timer has one string for a key, its group's and its member's name joined by hyphens. Names may have hyphens too: group
`g` with member `0-x` is group `g-0` with member `x`. The model keys by group, kind and member, so it says what the
string does to the others: whoever arms or cancels a timer cancels all that read the same.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from ..consumer.state import JOIN, SYNC
from .state import Timer

#: What a string begins with where a kind of member's timer has the same beginning as one of a whole group (X-TMR-01).
_SHARED: Final = {JOIN: "join", SYNC: "sync"}
_KINDS: Final = {beginning: kind for kind, beginning in _SHARED.items()}


@lru_cache(maxsize=1 << 12)
def mistaken(group_id: str, timer: Timer) -> tuple[tuple[str, Timer], ...]:
    """All other timers whose string is that of this one, if there are such groups and members."""
    beginning = _SHARED.get(timer.kind, timer.kind)
    words = (group_id if timer.kind in _KINDS else f"{group_id}-{timer.member_id}").split("-")
    readings = [
        ("-".join(words[:at]), Timer(_KINDS.get(beginning, beginning), "-".join(words[at:])))
        for at in range(1, len(words))
    ]
    if beginning in _KINDS:
        readings.append(("-".join(words), Timer(beginning)))
    return tuple([reading for reading in readings if reading != (group_id, timer)])
