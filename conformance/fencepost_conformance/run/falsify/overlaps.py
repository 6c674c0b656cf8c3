"""Copies of a trace in which requests take longer; whatever explains the trace explains each copy too.

The coordinator handles a request at some moment between the request and its answer. Moving a request earlier, or an
answer later, only adds possibilities. So a checker that accepts the trace must accept the copy. A checker that draws
wrong conclusions when requests overlap rejects some copy.

This holds for the coordinator, not for clients: a client acts on the answers on all its connections. So the copies do
not request that clients' positions are judged.

Two orders stay: that of the lines of one connection, and that between the first answer that shows a member id and the
requests that name it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random
from typing import Any, Final

from ...judge.checker.positions.judge import POSITIONS
from ...traces.files import WireTrace
from ...traces.lines import ReceivedLine, SentLine

#: No line moves further than this: the checker lets answers be late by ``Limits.slack_ms``, and no more.
MOST_MS: Final = 700

_IDS: Final = frozenset({"member_id", "leader"})


def widened(trace: WireTrace, rng: Random, share: float, most_ms: int = MOST_MS) -> WireTrace:
    """Return a copy in which this share of the lines (0 to 1) has moved, each by at most ``most_ms``."""
    lines = trace.lines
    times = [line.at_ms for line in lines]
    before = _neighbours(trace)
    after: dict[int, list[int]] = {}
    for at, earlier in before.items():
        for other in earlier:
            after.setdefault(other, []).append(at)
    places = [float(at) for at in range(len(lines))]

    def time_of(place: float) -> int:
        low = min(int(place), len(times) - 1)
        high = min(low + 1, len(times) - 1)
        return round(times[low] + (place - low) * (times[high] - times[low]))

    for at, line in enumerate(lines):
        if isinstance(line, SentLine) and rng.random() < share:
            low = max((float(other) for other in before.get(at, ())), default=-1.0)
            while low < at - 1 and line.at_ms - time_of(max(low, 0.0)) > most_ms:
                low = min(int(low) + 1.0, at - 1.0)
            place = low + (at - low) * max(rng.random(), 0.01)
            places[at] = place if line.at_ms - time_of(max(place, 0.0)) <= most_ms else at
    for at, line in enumerate(lines):
        if isinstance(line, ReceivedLine) and rng.random() < share:
            high = min((places[other] for other in after.get(at, ())), default=float(len(lines)))
            while high > at + 1 and time_of(high) - line.at_ms > most_ms:
                high = max(high - 1.0, at + 1.0)
            place = at + (high - at) * min(rng.random(), 0.99)
            places[at] = place if time_of(place) - line.at_ms <= most_ms else at
    order = sorted(range(len(lines)), key=lambda at: (places[at], at))
    moved = [lines[at].model_copy(update={"at_ms": time_of(places[at])}) for at in order]
    provenance = tuple((name, value) for name, value in trace.provenance if name != POSITIONS)
    return replace(trace, lines=tuple(moved), provenance=provenance, numbers=())


def _neighbours(trace: WireTrace) -> dict[int, list[int]]:
    """Return for each line the positions of the lines that must stay before it."""
    before: dict[int, list[int]] = {}
    last: dict[int, int] = {}
    shown: dict[str, int] = {}
    for at, line in enumerate(trace.lines):
        if line.connection in last:
            before.setdefault(at, []).append(last[line.connection])
        last[line.connection] = at
        if isinstance(line, ReceivedLine):
            for name in _ids(line.body):
                shown.setdefault(name, at)
        elif isinstance(line, SentLine):
            before.setdefault(at, []).extend(shown[name] for name in _ids(line.body) if name in shown)
    return before


def _ids(body: Any) -> Iterator[str]:
    """Yield every member id in a message."""
    if isinstance(body, dict):
        for name, value in body.items():
            if name in _IDS and isinstance(value, str) and value:
                yield value
            else:
                yield from _ids(value)
    elif isinstance(body, list):
        for inner in body:
            yield from _ids(inner)
