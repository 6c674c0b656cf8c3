"""Judge what clients say on standard output: no partition is used that was not granted, nor by two members at once.

The convention is in ``docs/clients.md``. A client that says nothing is judged by its requests alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import inf
from typing import Any, Final

from .stage import ClientRun, Unkept

Place = tuple[str, int]
#: how long two members may say that they hold a partition: the output of one may be late
_SLACK_S: Final = 1.0


@dataclass(slots=True)
class _Held:
    """A partition that a client held, by its own words, from one time to another."""

    run: ClientRun
    place: Place
    since_s: float
    until_s: float = inf


def judge_events(runs: Sequence[ClientRun], *, exclusive: bool) -> None:
    """Judge the events of all clients of a case. Raises ``Unkept``.

    Args:
        runs: the clients.
        exclusive: no partition may be held by two members; false where a client cannot know that it was replaced.
    """
    every = [held for run in runs if run.events("assigned") for held in _held(run)]
    for one, other in combinations(every, 2) if exclusive else ():
        first, second = sorted((one, other), key=lambda each: each.since_s)
        both_s = min(first.until_s, second.until_s) - second.since_s
        if first.run is not second.run and first.place == second.place and both_s > _SLACK_S:
            name = f"{first.place[0]}-{first.place[1]}"
            text = f"{first.run.name} still held {name} {both_s:.1f} s after {second.run.name} was assigned it"
            raise Unkept(first.run.name, text, "one member at a time for each partition")


def _held(run: ClientRun) -> list[_Held]:
    """Return the partitions that a client held. Raises ``Unkept`` if it used another one."""
    now: dict[Place, _Held] = {}
    every: list[_Held] = []
    for said in run.said:
        match said.event:
            case "assigned":
                for place in _places(said.values):
                    if place not in now:
                        now[place] = _Held(run, place, said.at_s)
                        every.append(now[place])
            case "revoked" | "lost":
                for place in _places(said.values):
                    if (held := now.pop(place, None)) is not None:
                        held.until_s = said.at_s
            case "processed":
                place = (str(said.values.get("topic")), int(said.values.get("partition", -1)))
                if place not in now:
                    sent = f"{run.name} says that it processed a record of {place[0]}-{place[1]}"
                    raise Unkept(run.name, sent, "records only of partitions that it was assigned and did not give up")
    for held in now.values():
        held.until_s = run.closing_s or inf
    return every


def _places(values: dict[str, Any]) -> list[Place]:
    rows = values.get("partitions")
    return [(str(row[0]), int(row[1])) for row in rows] if isinstance(rows, list) else []
