"""Play random scripts on Kafka and on ``fencepost serve``: ``python -m tools.compare_server [BROKER]``.

Many requests are played in parts, and each part has scripts of another seed. The exit status is 1 if an answer differs.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any, Final

from fencepost_conformance.common.addresses import parse_address
from fencepost_conformance.common.errors import BrokerFault, CannotRun
from fencepost_conformance.common.interruption import listen_to_sigterm
from fencepost_conformance.judge.server import kept, live, pool, rights, run
from fencepost_conformance.judge.server.brokers import DEFAULT, Kafka, kafka
from fencepost_conformance.judge.server.draw import AREAS
from fencepost_conformance.judge.server.lines import Tcp
from fencepost_conformance.judge.server.parts import Kind, Part
from fencepost_conformance.judge.server.play import NO_LOGINS
from fencepost_conformance.run.seeds import seed_of_run

_BROKEN: Final = 2


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
    parser.add_argument("--out", type=Path, metavar="DIR", help="write each difference to a file in this folder")
    parser.add_argument("--script", type=Path, nargs="+", metavar="FILE", help="play the scripts of such files")
    parser.add_argument("--keep", type=Path, metavar="FILE", help="add Kafka's answers to this many --parts to a file")
    parser.add_argument("--against", type=Path, metavar="FILE", help="compare with answers in a file, without a Kafka")
    parser.add_argument("--parts", type=int, default=0, metavar="N", help="parts for --keep or --against; default: all")
    options = parser.parse_args(words)
    if ":" in options.broker and (options.kind is not Kind.PLAIN or options.keep):
        parser.error("--keep and the kinds rights and exhausted need a release of Kafka (got an address)")
    try:
        with live.quiet():
            if options.keep:
                return _record(options)
            if options.against:
                return _against(options)
            return _script(options) if options.script else _live(options)
    except (CannotRun, BrokerFault, OSError) as reason:
        print(f"broken: {reason}")
        return _BROKEN


def _live(options: argparse.Namespace) -> int:
    """Compare with a broker."""
    seed = seed_of_run() if options.seed is None else options.seed
    print(f"seed {seed}: {options.requests:,} requests", flush=True)
    plan = live.Plan(
        options.kind,
        options.requests,
        seed,
        options.length,
        options.part,
        tuple(options.area),
        alone=options.alone,
        port=options.port,
        again=":" not in options.broker,
        folder=options.out,
    )
    users = options.part // options.length + 1 if options.kind is Kind.RIGHTS else 0
    compared = live.play(plan, lambda: _broker(options.broker, users))
    status = _ended(compared)
    if status:
        areas = "".join(f" --area {each}" for each in options.area)
        print(
            f"repeat it with: python -m tools.compare_server {options.broker} --kind {options.kind}{areas} "
            f"--requests {options.requests} --length {options.length} --part {options.part} --seed {seed}"
        )
    return status


@contextmanager
def _broker(name: str, users: int) -> Iterator[Kafka]:
    """The broker of that release or address. ``users``: the number of scripts with users."""
    if ":" in name:
        there = Tcp(parse_address(name, "BROKER"))
        yield Kafka(there, there)
        return
    with kafka(name, rights.logins(users) if users else NO_LOGINS) as started:
        yield started


def _script(options: argparse.Namespace) -> int:
    """Play the scripts of files on both, and write Kafka's answers to the files."""
    cases = [(path, kept.read(path)) for path in options.script]
    compared = run.Compared()
    with _broker(options.broker, max(len(case.part().guarded) for _, case in cases)) as broker:
        for path, case in cases:
            theirs = asyncio.run(live.kafkas(case.part(), broker, alone=True))
            kept.write(path, replace(case, kafka=theirs[-1]))
            asyncio.run(compare_recorded(case.kind, case.part(), theirs, compared))
    return _ended(compared)


def _against(options: argparse.Namespace) -> int:
    """Compare with recorded answers."""
    seed = seed_of_run() if options.seed is None else options.seed
    there = [name for name in pool.recorded(options.against) if name.startswith(options.kind)]
    names = pool.some(there, Random(seed), options.parts) if options.parts else there
    print(f"seed {seed}: {', '.join(names)}", flush=True)
    compared = run.Compared()
    for name in names:
        theirs = pool.kept(options.against, name)
        asyncio.run(compare_recorded(options.kind, pool.part_of(name), theirs, compared))
    return _ended(compared)


async def compare_recorded(kind: Kind, drawn: Part, theirs: Sequence[Sequence[Any]], compared: run.Compared) -> None:
    """Compare serve with Kafka's answers to a part, and print the differences."""
    async with live.here(drawn) as here:
        ours = await run.all_answers(here, drawn.scripts, drawn.named, drawn.logins, alone=True)
    found = run.Compared()
    found.add_all(drawn.scripts, theirs, ours)
    for each in found.unshrunk():
        live.print_difference(each, kind, drawn)
    compared.take(found)


def _record(options: argparse.Namespace) -> int:
    """Add Kafka's answers to a file."""
    there = pool.recorded(options.keep) if options.keep.exists() else []
    wanted = [name for name in pool.names(options.kind, options.parts) if name not in there]
    users = pool.REQUESTS // pool.LENGTH + 1 if options.kind is Kind.RIGHTS else 0
    if wanted:
        with _broker(options.broker, users) as broker:
            for name in wanted:
                answers = asyncio.run(live.kafkas(pool.part_of(name), broker, alone=True))
                pool.keep(options.keep, name, answers)
                print(f"{name} is recorded", flush=True)
    return 0


def _ended(compared: run.Compared) -> int:
    print(
        f"{compared.requests:,} requests compared, {compared.differ} of {compared.scripts:,} scripts differ in "
        f"{len(compared.first)} ways, {compared.unsteady} only beside others"
    )
    return int(compared.differ > 0)


if __name__ == "__main__":
    listen_to_sigterm()
    sys.exit(main(sys.argv[1:]))
