"""Play many scripts at the same time, on one broker or on two."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final
from uuid import uuid4

from .compare import Difference, first_difference, shrink
from .lines import Place
from .normal import Normal
from .play import NO_LOGINS, Logins, play
from .script import Run, Script

#: how many scripts play at the same time on one broker
TOGETHER: Final = 8
#: how far back the times of batches are: so far that they differ from the times of markers
EARLIER_MS: Final = 600_000


def token() -> str:
    """Four characters that distinguish the names of a run from those of others."""
    return uuid4().hex[:4]


def prefix_of(named: str, number: int) -> str:
    """The prefix of the names of a script. ``named``: a ``token``."""
    return f"s{named}{number:04}-"


async def answers(
    place: Place, script: Script, prefix: str, logins: Logins = NO_LOGINS, *, alone: bool = False
) -> list[Any]:
    """The normalized answers to a script. ``prefix``: of its names, ten characters. Both brokers get the same names,
    since a name decides the partition of Kafka's internal topics. ``alone``: Kafka plays no other script at the same
    time. Raises ``OSError``."""
    run = Run(prefix, int(time.time() * 1_000) - EARLIER_MS)
    normal = Normal(run, alone=alone)
    replies = await play(place, script, run, logins)
    return [normal.of(move.api, answer) for move, answer in zip(script, replies, strict=True)]


async def all_answers(
    place: Place, scripts: Sequence[Script], named: str, logins: Logins = NO_LOGINS, *, alone: bool = False
) -> list[list[Any]]:
    """The normalized answers to each script. ``named``: a ``token``, the same for both brokers. ``alone``: Kafka plays
    one script at a time."""
    gate = asyncio.Semaphore(1 if alone and not place.settled else TOGETHER)

    async def one(number: int, script: Script) -> list[Any]:
        async with gate:
            return await answers(place, script, prefix_of(named, number), logins, alone=alone)

    return list(await asyncio.gather(*(one(at, script) for at, script in enumerate(scripts))))


@dataclass(frozen=True, slots=True)
class Differing:
    """A script whose answers differ. ``number``: of the script in its part. ``one``: the answers of the first broker,
    up to the difference."""

    number: int
    script: Script
    difference: Difference
    one: Sequence[Any]


@dataclass(frozen=True, slots=True)
class Found:
    """A difference and the shortest script that shows it, with the answers of the first broker. ``times``: the number
    of scripts that show it. ``number``: of the script in its part."""

    difference: Difference
    script: Script
    times: int
    one: Sequence[Any]
    number: int = 0


@dataclass(slots=True)
class Compared:
    """``requests`` and ``scripts`` that were compared, and the differences by their keys. ``unsteady``: the number of
    scripts that differed beside others, and not when they were played again alone."""

    requests: int = 0
    scripts: int = 0
    first: dict[tuple[str, str, str], list[Differing]] = field(default_factory=dict)
    unsteady: int = 0

    def add(self, script: Script, one: Sequence[Any], other: Sequence[Any], number: int = 0) -> None:
        found = first_difference(script, one, other)
        self.scripts += 1
        self.requests += len(script) if found is None else found.at + 1
        if found is not None:
            row = Differing(number, script, found, one[: found.at + 1])
            self.first.setdefault(found.key, []).append(row)

    def add_all(self, scripts: Sequence[Script], one: Sequence[Any], other: Sequence[Any]) -> None:
        for number, (script, first, second) in enumerate(zip(scripts, one, other, strict=True)):
            self.add(script, first, second, number)

    def take(self, other: Compared) -> None:
        """Add the results of another comparison."""
        self.requests += other.requests
        self.scripts += other.scripts
        self.unsteady += other.unsteady
        for key, rows in other.first.items():
            self.first.setdefault(key, []).extend(rows)

    def unshrunk(self) -> list[Found]:
        """The shortest script for each kind of difference, as it was played."""
        shortest = [(min(rows, key=_at), len(rows)) for rows in self.first.values()]
        return [Found(each.difference, _beginning(each), times, each.one, each.number) for each, times in shortest]

    @property
    def differ(self) -> int:
        """The number of scripts that differ."""
        return sum(map(len, self.first.values()))


def _at(row: Differing) -> int:
    return row.difference.at


def _beginning(row: Differing) -> Script:
    return row.script[: row.difference.at + 1]


async def shrunk(
    compared: Compared, one: Place, other: Place, report: Callable[[Found], None] = lambda _: None
) -> list[Found]:
    """The shortest script for each kind of difference. A script that shows it only under its own names stays as it
    is."""
    shown: list[tuple[Script, Sequence[Any]]] = []

    async def examine(script: Script) -> Difference | None:
        prefix = f"s{uuid4().hex[:8]}-"
        first, second = await asyncio.gather(*(answers(place, script, prefix, alone=True) for place in (one, other)))
        found = first_difference(script, first, second)
        if found is not None:
            shown.append((script[: found.at + 1], first[: found.at + 1]))
        return found

    found = []
    for each in compared.unshrunk():
        shown.clear()
        shortest = each
        again = await examine(each.script)
        if again is not None and again.key == each.difference.key:
            small, why = await shrink(each.script, again, examine)
            first = next(answers for script, answers in reversed(shown) if script == small)
            shortest = replace(each, difference=why, script=small, one=first)
        found.append(shortest)
        report(shortest)
    return found
