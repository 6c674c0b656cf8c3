"""Play many parts on a broker and on ``fencepost serve``, one after the other."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ...common.errors import BrokerFault
from . import exhausted, kept, run
from .brokers import Kafka, served
from .compare import first_difference
from .kept import Case
from .lines import Place
from .parts import Kind, Part, part
from .play import OFFSETS_PARTITIONS
from .script import OWN
from .within import within

#: after this many requests a new broker is started, since the logs grow
_OF_A_BROKER: Final = 100_000
#: scripts with one kind of difference that are played again alone
_AGAIN: Final = 3
#: attempts to play a part, each on a new broker
_ATTEMPTS: Final = 3


@dataclass(frozen=True, slots=True)
class Plan:
    """What to play: ``requests`` in parts of ``size``, in scripts of ``length`` requests. ``alone``: Kafka plays one
    script at a time. ``port``: serve runs in another process. ``again``: the parts have the same names in each run.
    ``folder``: where differences are written; None for nowhere."""

    kind: Kind
    requests: int
    seed: int
    length: int
    size: int
    areas: tuple[str, ...] = ()
    alone: bool = False
    port: bool = False
    again: bool = True
    folder: Path | None = None

    def parts(self) -> Iterator[Part]:
        """Draw the parts; each has the next seed."""
        left, seed = self.requests, self.seed
        while left > 0:
            named = f"{seed % 0x10000:04x}" if self.again else run.token()
            yield (drawn := part(self.kind, named, seed, min(self.size, left), self.length, areas=self.areas))
            left, seed = left - drawn.requests, seed + 1


@dataclass(slots=True)
class Brokers:
    """The broker for the next part: a new one after many requests, and after a failure. ``start`` runs a broker."""

    start: Callable[[], AbstractContextManager[Kafka]]
    _context: AbstractContextManager[Kafka] | None = None
    _broker: Kafka | None = None
    _played: int = 0

    def next(self) -> Kafka:
        """The broker. Raises what ``start`` raises."""
        if self._broker is None or self._played >= _OF_A_BROKER:
            self.stop()
            self._context = self.start()
            self._broker, self._played = self._context.__enter__(), 0
        return self._broker

    def played(self, requests: int) -> None:
        """Count requests that the broker has answered."""
        self._played += requests

    def stop(self) -> None:
        """Stop the broker, if one runs."""
        context, self._context, self._broker = self._context, None, None
        if context is not None:
            context.__exit__(None, None, None)


@contextmanager
def brokers(start: Callable[[], AbstractContextManager[Kafka]]) -> Iterator[Brokers]:
    """Brokers; the last one stops with the block."""
    made = Brokers(start)
    try:
        yield made
    finally:
        made.stop()


def play(plan: Plan, start: Callable[[], AbstractContextManager[Kafka]]) -> run.Compared:
    """Play all parts, print a line for each, and print and write the differences. Raises what ``start`` raises, and
    ``BrokerFault`` or ``OSError`` if a part fails on several brokers."""
    compared, began = run.Compared(), time.monotonic()
    with brokers(start) as some, ProcessPoolExecutor(1) as other:
        for drawn in plan.parts():
            ours = other.submit(_serves, drawn, alone=plan.alone, port=plan.port)
            found = _played(plan, drawn, some, ours, set(compared.first))
            compared.take(found)
            seconds = time.monotonic() - began
            left = seconds / compared.requests * max(plan.requests - compared.requests, 0)
            print(
                f"{compared.requests:,} of {plan.requests:,} requests compared in {seconds:.0f} s, "
                f"{compared.differ} of {compared.scripts:,} scripts differ, {compared.unsteady} only beside others; "
                f"about {left:.0f} s left",
                flush=True,
            )
    return compared


def _serves(drawn: Part, *, alone: bool, port: bool) -> list[list[Any]]:
    """The answers of serve to a part; for another process, at the same time as Kafka's."""

    async def asked() -> list[list[Any]]:
        async with here(drawn, port=port) as place:
            return await run.all_answers(place, drawn.scripts, drawn.named, drawn.logins, alone=alone)

    with quiet():
        return asyncio.run(asked())


@contextmanager
def quiet() -> Iterator[None]:
    """Log nothing of serve within the block: it rejects many requests."""
    loggers = [logging.getLogger(name) for name in ("fencepost", "fencepost_server")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


def _played(
    plan: Plan, drawn: Part, some: Brokers, ours: Future[list[list[Any]]], known: set[tuple[str, str, str]]
) -> run.Compared:
    """Play one part on Kafka, and compare; again on a new broker, if the broker fails. ``ours``: serve's answers."""
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            broker = some.next()
            found = asyncio.run(_compare(plan, drawn, broker, ours, known))
        except (BrokerFault, OSError) as reason:
            some.stop()
            if attempt == _ATTEMPTS:
                raise
            print(f"a broker failed, so the part is played on a new one: {reason}", flush=True)
        else:
            some.played(drawn.requests)
            return found
    raise AssertionError("unreachable")


async def _compare(
    plan: Plan, drawn: Part, broker: Kafka, ours: Future[list[list[Any]]], known: set[tuple[str, str, str]]
) -> run.Compared:
    """Compare one part. Only differences that are not ``known`` are shortened."""
    theirs = await kafkas(drawn, broker, alone=plan.alone)
    found = run.Compared()
    answers: list[list[Any]] = await asyncio.wrap_future(ours)
    found.add_all(drawn.scripts, theirs, answers)
    steady = await _steady(plan, drawn, broker, found)
    new = run.Compared(first={key: rows for key, rows in steady.first.items() if key not in known})
    if plan.kind is Kind.PLAIN and new.first:
        async with here(drawn, port=plan.port) as place:
            await run.shrunk(
                new, broker.place, place, lambda each: print_difference(each, plan.kind, drawn, plan.folder)
            )
    else:  # rules and transactions have names of the script as it was played
        for each in new.unshrunk():
            print_difference(each, plan.kind, drawn, plan.folder)
    return steady


async def _steady(plan: Plan, drawn: Part, broker: Kafka, found: run.Compared) -> run.Compared:
    """The differences that scripts show when they are played again, alone, under other names. Kafka's answers to a
    script may depend on others that it answers at the same time: a write that fails takes back what others did before
    it in the same partition of the offsets topic (F-RT-08)."""
    steady = run.Compared(found.requests, found.scripts)
    for key, rows in found.first.items():
        for row in rows[:_AGAIN]:
            script = row.script[: row.difference.at + 1]
            again = Case.of(plan.kind, drawn, row.number, script, (), note="").renamed(run.token()).part()
            async with here(again, port=plan.port) as place:
                ours = await run.all_answers(place, again.scripts, again.named, again.logins, alone=True)
            theirs = await kafkas(again, broker, alone=True)
            if first_difference(script, theirs[-1], ours[-1]) is not None:
                steady.first[key] = rows
                break
        else:
            steady.unsteady += len(rows)
            for each in run.Compared(first={key: rows}).unshrunk():
                print_difference(each, plan.kind, drawn, plan.folder, steady=False)
    return steady


@asynccontextmanager
async def here(drawn: Part, *, port: bool = False) -> AsyncIterator[Place]:
    """Run serve for a part: in this process, or with ``port`` in another one."""
    if port:
        with served(logins=drawn.logins, rules=drawn.lines) as place:
            yield place
        return
    rows = exhausted.stored(drawn.transactions)
    async with within(OFFSETS_PARTITIONS, drawn.logins, drawn.lines, rows) as inside:
        yield inside


async def kafkas(drawn: Part, broker: Kafka, *, alone: bool) -> list[list[Any]]:
    """Kafka's answers to a part."""
    await broker.prepare(drawn)
    return await run.all_answers(broker.place, drawn.scripts, drawn.named, drawn.logins, alone=alone)


def print_difference(
    found: run.Found, kind: Kind, drawn: Part, folder: Path | None = None, *, steady: bool = True
) -> None:
    """Print a difference, and write its script to the folder. ``steady``: it shows when the script is played alone."""
    why = found.difference
    words = f"{why.api}{why.path}: Kafka {why.one!r}, serve {why.other!r}"
    case = Case.of(kind, drawn, found.number, found.script, found.one, note=words)
    print(f"\n{words} (in {found.times} scripts)")
    if not steady:
        print("    (not when the script is played alone)")
    print("".join(f"    {each.line(OWN)}\n" for each in case.rights), end="")
    print("".join(f"    {move}\n" for move in found.script), end="", flush=True)
    if folder is not None:
        path = folder / f"{'' if steady else 'unsteady-'}{kind}-{drawn.named}-{found.number}-{why.api}-{why.at}.json"
        kept.write(path, case)
        print(f"    written to {path}", flush=True)
