"""Play random scripts on Kafka and on ``fencepost serve``: ``python -m tools.compare_server [BROKER]``.

Many requests are played in parts, and each part has scripts of another seed. The exit status is 1 if an answer differs.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, ExitStack, asynccontextmanager
from pathlib import Path
from random import Random
from typing import Any, Final

from fencepost_conformance.common.addresses import parse_address
from fencepost_conformance.common.errors import BrokerFault, CannotRun
from fencepost_conformance.common.interruption import listen_to_sigterm
from fencepost_conformance.judge.server import exhausted, pool, rights, run
from fencepost_conformance.judge.server.brokers import DEFAULT, OFFSETS_PARTITIONS, Kafka, kafka, served
from fencepost_conformance.judge.server.draw import AREAS
from fencepost_conformance.judge.server.lines import Place, Tcp
from fencepost_conformance.judge.server.parts import Kind, Part, part
from fencepost_conformance.judge.server.play import NO_LOGINS
from fencepost_conformance.judge.server.rights import Right
from fencepost_conformance.judge.server.script import OWN
from fencepost_conformance.judge.server.within import Within, within
from fencepost_conformance.run.seeds import seed_of_run

_BROKEN: Final = 2
#: after this many requests a new broker is started, since the logs grow
_OF_A_BROKER: Final = 100_000


def main(words: Sequence[str]) -> int:
    """Play the scripts, print the differences, and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tools.compare_server", description=__doc__.splitlines()[0])
    parser.add_argument(
        "broker",
        nargs="?",
        default=DEFAULT,
        metavar="BROKER",
        help=f"a release of Kafka, or the HOST:PORT of a running broker; default: {DEFAULT}",
    )
    parser.add_argument("--requests", type=int, default=20_000, metavar="N")
    parser.add_argument("--seed", type=int, default=None, metavar="S", help="default: a new random one")
    parser.add_argument("--length", type=int, default=60, metavar="N", help="requests in each script")
    parser.add_argument("--part", type=int, default=pool.REQUESTS, metavar="N", help="requests in each part")
    parser.add_argument(
        "--area", action="append", choices=sorted(AREAS), default=[], help="area of the scripts; may be repeated"
    )
    parser.add_argument(
        "--kind",
        type=Kind,
        choices=list(Kind),
        default=Kind.PLAIN,
        help="kind of the scripts; rights: users with random access rules; exhausted: transactional producers that "
        "have almost used up their epochs",
    )
    parser.add_argument("--alone", action="store_true", help="play one script at a time: slower, and more exact")
    parser.add_argument("--port", action="store_true", help="run serve in another process, over TCP")
    parser.add_argument("--keep", type=Path, metavar="FILE", help="add Kafka's answers to this many --parts to a file")
    parser.add_argument("--against", type=Path, metavar="FILE", help="compare with answers in a file, without a Kafka")
    parser.add_argument("--parts", type=int, default=0, metavar="N", help="parts for --keep or --against; default: all")
    options = parser.parse_args(words)
    if ":" in options.broker and (options.kind is not Kind.PLAIN or options.keep):
        parser.error("--keep and the kinds rights and exhausted need a release of Kafka (got an address)")
    for logger in ("fencepost", "fencepost_server"):  # many requests are rejected
        logging.getLogger(logger).setLevel(logging.CRITICAL)
    try:
        if options.keep:
            return _record(options)
        if options.against:
            return _against(options)
        return _live(options)
    except (CannotRun, BrokerFault, OSError) as reason:
        print(f"broken: {reason}")
        return _BROKEN


def _live(options: argparse.Namespace) -> int:
    """Compare with a broker."""
    seed = seed_of_run() if options.seed is None else options.seed
    print(f"seed {seed}: {options.requests:,} requests", flush=True)
    compared = run.Compared()
    left, number, began = options.requests, 0, time.monotonic()
    while left > 0:
        with ExitStack() as stack:
            broker = _broker(stack, options)
            played = 0
            while left > 0 and played < _OF_A_BROKER:
                size = min(options.part, left)
                named, areas = run.token(), tuple(options.area)
                drawn = part(options.kind, named, seed + number, size, options.length, areas=areas)
                asyncio.run(_compare(drawn, broker, options, compared))
                left, played, number = left - drawn.requests, played + drawn.requests, number + 1
                print(f"{compared.requests:,} requests compared, {time.monotonic() - began:.0f} s", flush=True)
    return _ended(compared)


def _broker(stack: ExitStack, options: argparse.Namespace) -> Kafka:
    if ":" in options.broker:
        there = Tcp(parse_address(options.broker, "BROKER"))
        return Kafka(there, there)
    users = options.part // options.length + 1 if options.kind is Kind.RIGHTS else 0
    return stack.enter_context(kafka(options.broker, rights.logins(users) if users else NO_LOGINS))


@asynccontextmanager
async def _here(drawn: Part, *, port: bool) -> AsyncIterator[Place]:
    """The server for a part."""
    if not port:
        async with _within(drawn) as place:
            yield place
        return
    with served(logins=drawn.logins, rules=drawn.lines) as place:
        yield place


def _within(drawn: Part) -> AbstractAsyncContextManager[Within]:
    return within(OFFSETS_PARTITIONS, drawn.logins, drawn.lines, exhausted.stored(drawn.transactions))


async def _compare(drawn: Part, broker: Kafka, options: argparse.Namespace, compared: run.Compared) -> None:
    async with _here(drawn, port=options.port) as here:
        began = time.process_time()
        ours = await run.all_answers(here, drawn.scripts, drawn.named, drawn.logins, alone=options.alone)
        between = time.process_time()
        theirs = await _kafkas(drawn, broker, alone=options.alone)
        print(f"  {between - began:.1f} s of processor time for serve, {time.process_time() - between:.1f} s for Kafka")
        found = run.Compared()
        found.add_all(drawn.scripts, theirs, ours)
        if not drawn.guarded and not drawn.transactions:
            await run.shrunk(found, broker.place, here, _tell)
        else:  # rules and transactions have names of the script as it was played
            _tell_all(found, drawn)
        compared.take(found)


async def _kafkas(drawn: Part, broker: Kafka, *, alone: bool) -> list[list[Any]]:
    """Kafka's answers."""
    await broker.prepare(drawn)
    return await run.all_answers(broker.place, drawn.scripts, drawn.named, drawn.logins, alone=alone)


def _against(options: argparse.Namespace) -> int:
    """Compare with recorded answers."""
    seed = seed_of_run() if options.seed is None else options.seed
    there = [name for name in pool.recorded(options.against) if name.startswith(options.kind)]
    names = pool.some(there, Random(seed), options.parts) if options.parts else there
    print(f"seed {seed}: {', '.join(names)}", flush=True)
    compared = run.Compared()
    for name in names:
        drawn = pool.part_of(name)
        asyncio.run(_compare_recorded(drawn, pool.kept(options.against, name), compared))
    return _ended(compared)


async def _compare_recorded(drawn: Part, theirs: list[list[Any]], compared: run.Compared) -> None:
    async with _within(drawn) as here:
        ours = await run.all_answers(here, drawn.scripts, drawn.named, drawn.logins, alone=True)
    found = run.Compared()
    found.add_all(drawn.scripts, theirs, ours)
    _tell_all(found, drawn)
    compared.take(found)


def _record(options: argparse.Namespace) -> int:
    """Add Kafka's answers to a file."""
    there = pool.recorded(options.keep) if options.keep.exists() else []
    wanted = [name for name in pool.names(options.kind, options.parts) if name not in there]
    options.part, options.length = pool.REQUESTS, pool.LENGTH
    with ExitStack() as stack:
        broker = _broker(stack, options) if wanted else None
        for name in wanted:
            assert broker is not None
            answers = asyncio.run(_kafkas(pool.part_of(name), broker, alone=True))
            pool.keep(options.keep, name, answers)
            print(f"{name} is recorded", flush=True)
    return 0


def _ended(compared: run.Compared) -> int:
    print(
        f"{compared.requests:,} requests compared, {compared.differ} of {compared.scripts:,} scripts differ in "
        f"{len(compared.first)} ways"
    )
    return int(compared.differ > 0)


def _tell_all(compared: run.Compared, drawn: Part) -> None:
    """Print the differences without shrinking them."""
    for rows in compared.first.values():
        script, found = min(rows, key=lambda row: row[1].at)
        _tell(run.Found(found, script[: found.at + 1], len(rows)), drawn.rights_of(script))


def _tell(found: run.Found, rules: Sequence[Right] = ()) -> None:
    why = found.difference
    print(f"\n{why.api}{why.path}: Kafka {why.one!r}, serve {why.other!r} (in {found.times} scripts)")
    print("".join(f"    {each.line(OWN)}\n" for each in rules), end="")
    print("".join(f"    {move}\n" for move in found.script), end="", flush=True)


if __name__ == "__main__":
    listen_to_sigterm()
    sys.exit(main(sys.argv[1:]))
