"""Play many scripts at the same time, on one broker or on two."""

from __future__ import annotations

import asyncio
import gzip
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

from ..addresses import Address
from .compare import Difference, first_difference, shrink
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


async def answers(address: Address, script: Script, prefix: str, logins: Logins = NO_LOGINS) -> list[Any]:
    """The normalized answers to a script. ``prefix``: of its names, ten characters. Both brokers get the same names,
    since a name decides the partition of Kafka's internal topics. Raises ``OSError``."""
    run = Run(prefix, int(time.time() * 1_000) - EARLIER_MS)
    normal = Normal(run)
    told = await play(address, script, run, logins)
    return [normal.of(move.api, answer) for move, answer in zip(script, told, strict=True)]


async def all_answers(
    address: Address, scripts: Sequence[Script], named: str, together: int = TOGETHER, logins: Logins = NO_LOGINS
) -> list[list[Any]]:
    """The normalized answers to each script. ``named``: a ``token``, the same for both brokers."""
    gate = asyncio.Semaphore(together)

    async def one(number: int, script: Script) -> list[Any]:
        async with gate:
            return await answers(address, script, prefix_of(named, number), logins)

    return list(await asyncio.gather(*(one(at, script) for at, script in enumerate(scripts))))


@dataclass(frozen=True, slots=True)
class Found:
    """A difference and the shortest script that shows it; ``times``: the number of scripts that show it."""

    difference: Difference
    script: Script
    times: int


@dataclass(slots=True)
class Compared:
    """The result of a comparison: the number of compared requests, and the differences by their keys."""

    requests: int = 0
    first: dict[tuple[str, str, str], list[tuple[Script, Difference]]] = field(default_factory=dict)

    def add(self, script: Script, one: Sequence[Any], other: Sequence[Any]) -> None:
        found = first_difference(script, one, other)
        self.requests += len(script) if found is None else found.at + 1
        if found is not None:
            self.first.setdefault(found.key, []).append((script, found))


async def shrunk(
    compared: Compared, one: Address, other: Address, tell: Callable[[Found], None] = lambda _: None
) -> list[Found]:
    """The shortest script for each kind of difference."""

    async def examine(script: Script) -> Difference | None:
        prefix = f"s{uuid4().hex[:8]}-"
        first, second = await asyncio.gather(answers(one, script, prefix), answers(other, script, prefix))
        return first_difference(script, first, second)

    found = []
    for rows in compared.first.values():
        script, difference = min(rows, key=lambda row: row[1].at)
        small, why = await shrink(script, difference, examine)
        found.append(Found(why, small, len(rows)))
        tell(found[-1])
    return found


def keep(path: Path, told: list[list[Any]]) -> None:
    """Write answers to a file."""
    path.write_bytes(gzip.compress(json.dumps(told, separators=(",", ":")).encode(), mtime=0))


def kept(path: Path) -> list[list[Any]]:
    """Read recorded answers."""
    read: list[list[Any]] = json.loads(gzip.decompress(path.read_bytes()))
    return read
