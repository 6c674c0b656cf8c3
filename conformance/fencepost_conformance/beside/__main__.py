"""Play random scripts on Kafka and on ``fencepost serve``: ``python -m fencepost_conformance.beside [BROKER]``.

The exit status is 1 if an answer differs.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from ..addresses import Address, parse_address
from ..console import CannotRun
from ..interruption import listen_to_sigterm
from ..targets.broker import BrokerFault
from . import run
from .brokers import DEFAULT, kafka, served
from .draw import AREAS, scripts
from .script import Script

_BROKEN = 2
#: names of runs whose answers are kept
_KEPT = "kept"


def main(words: Sequence[str]) -> int:
    """The exit status."""
    parser = argparse.ArgumentParser(prog="python -m fencepost_conformance.beside", description=__doc__.splitlines()[0])
    parser.add_argument(
        "broker",
        nargs="?",
        default=DEFAULT,
        metavar="BROKER",
        help=f"a release of Kafka, or the HOST:PORT of a broker that runs; {DEFAULT} by default",
    )
    parser.add_argument("--here", metavar="HOST:PORT", help="a server that runs; else one is started")
    parser.add_argument("--requests", type=int, default=20_000, metavar="N")
    parser.add_argument("--seed", type=int, default=None, metavar="S", help="a new one by default")
    parser.add_argument("--length", type=int, default=60, metavar="N", help="requests of a script")
    parser.add_argument(
        "--area", action="append", choices=sorted(AREAS), default=[], help="of the scripts; may be repeated"
    )
    parser.add_argument("--keep", type=Path, metavar="FILE", help="write Kafka's answers")
    parser.add_argument(
        "--against", type=Path, metavar="FILE", help="compare with answers that were kept: no Kafka runs"
    )
    options = parser.parse_args(words)
    if options.keep and ":" in options.broker:
        parser.error("--keep needs a broker that is started for it (got an address): names are used again")
    seed = time.time_ns() % 1_000_000 if options.seed is None else options.seed
    drawn = scripts(seed, options.requests, options.length, tuple(options.area))
    print(f"seed {seed}: {sum(map(len, drawn))} requests in {len(drawn)} scripts", flush=True)
    try:
        with ExitStack() as stack:
            here = parse_address(options.here, "--here") if options.here else stack.enter_context(served())
            there = None
            if not options.against:
                there = (
                    parse_address(options.broker, "BROKER")
                    if ":" in options.broker
                    else stack.enter_context(kafka(options.broker))
                )
            return asyncio.run(_compared(drawn, there, here, options.keep, options.against))
    except (CannotRun, BrokerFault, OSError) as reason:
        print(f"broken: {reason}")
        return _BROKEN


async def _compared(
    drawn: list[Script], there: Address | None, here: Address, keep: Path | None, against: Path | None
) -> int:
    began = time.monotonic()
    named = _KEPT if keep or against else run.token()
    ours = await run.all_answers(here, drawn, named)
    between = time.monotonic()
    if there is None:
        assert against is not None
        theirs = run.kept(against)
    else:
        theirs = await run.all_answers(there, drawn, named)
    print(f"serve {between - began:.1f} s, Kafka {time.monotonic() - between:.1f} s", flush=True)
    if keep is not None:
        run.keep(keep, theirs)
    compared = run.Compared()
    for script, one, other in zip(drawn, theirs, ours, strict=True):
        compared.add(script, one, other)
    if there is not None:
        await run.shrunk(compared, there, here, _tell)
    else:
        for rows in compared.first.values():
            script, found = min(rows, key=lambda row: row[1].at)
            _tell(run.Found(found, script[: found.at + 1], len(rows)))
    differ = sum(map(len, compared.first.values()))
    print(
        f"{compared.requests} requests compared, {differ} of {len(drawn)} scripts differ in {len(compared.first)} ways"
    )
    return int(differ > 0)


def _tell(found: run.Found) -> None:
    why = found.difference
    print(f"\n{why.api}{why.path}: Kafka {why.one!r}, serve {why.other!r} (in {found.times} scripts)")
    print("".join(f"    {move}\n" for move in found.script), end="", flush=True)


if __name__ == "__main__":
    listen_to_sigterm()
    sys.exit(main(sys.argv[1:]))
