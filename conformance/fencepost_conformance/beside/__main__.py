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
from . import rights, run
from .brokers import DEFAULT, guarded_kafka, guarded_server, kafka, served
from .draw import AREAS, scripts
from .play import NO_LOGINS
from .rights import Guarded, Right, guarded_scripts
from .script import OWN, Script

_BROKEN = 2
#: the names in runs with recorded answers
_KEPT = "kept"


def main(words: Sequence[str]) -> int:
    """Play the scripts, print the differences, and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m fencepost_conformance.beside", description=__doc__.splitlines()[0])
    parser.add_argument(
        "broker",
        nargs="?",
        default=DEFAULT,
        metavar="BROKER",
        help=f"a release of Kafka, or the HOST:PORT of a running broker; default: {DEFAULT}",
    )
    parser.add_argument("--here", metavar="HOST:PORT", help="the address of a running server; default: start one")
    parser.add_argument("--requests", type=int, default=20_000, metavar="N")
    parser.add_argument("--seed", type=int, default=None, metavar="S", help="default: a new random one")
    parser.add_argument("--length", type=int, default=60, metavar="N", help="requests in each script")
    parser.add_argument(
        "--area", action="append", choices=sorted(AREAS), default=[], help="area of the scripts; may be repeated"
    )
    parser.add_argument(
        "--rights", action="store_true", help="the brokers have users, and rules about what they may do"
    )
    parser.add_argument("--keep", type=Path, metavar="FILE", help="write Kafka's answers")
    parser.add_argument(
        "--against", type=Path, metavar="FILE", help="compare with Kafka's answers in this file, without a Kafka"
    )
    options = parser.parse_args(words)
    if options.keep and ":" in options.broker:
        parser.error("--keep needs a release of Kafka (got an address): every run uses the same names")
    seed = time.time_ns() % 1_000_000 if options.seed is None else options.seed
    if options.rights and (options.here or ":" in options.broker):
        parser.error("--rights starts both brokers; give no address")
    named = _KEPT if options.keep or options.against else run.token()
    guarded = guarded_scripts(seed, options.requests, options.length) if options.rights else []
    drawn = (
        [each.script for each in guarded]
        if options.rights
        else scripts(seed, options.requests, options.length, tuple(options.area))
    )
    print(f"seed {seed}: {sum(map(len, drawn))} requests in {len(drawn)} scripts", flush=True)
    try:
        with ExitStack() as stack:
            brokers = _guarded(stack, options, guarded, named) if guarded else _brokers(stack, options)
            return asyncio.run(_compared(drawn, guarded, brokers, named, options))
    except (CannotRun, BrokerFault, OSError) as reason:
        print(f"broken: {reason}")
        return _BROKEN


def _brokers(stack: ExitStack, options: argparse.Namespace) -> tuple[Address, Address | None]:
    """Start both brokers; yields their addresses. Kafka's is None if its answers were recorded."""
    here = parse_address(options.here, "--here") if options.here else stack.enter_context(served())
    if options.against:
        return here, None
    if ":" in options.broker:
        return here, parse_address(options.broker, "BROKER")
    return here, stack.enter_context(kafka(options.broker))


def _guarded(
    stack: ExitStack, options: argparse.Namespace, guarded: Sequence[Guarded], named: str
) -> tuple[Address, Address | None]:
    """As ``_brokers``, but with the users and the ACL rules of these scripts."""
    logins = rights.logins(len(guarded))
    rules = [(each, run.prefix_of(named, at)) for at, script in enumerate(guarded) for each in script.rights]
    here = stack.enter_context(guarded_server(logins, [each.line(prefix) for each, prefix in rules]))
    if options.against:
        return here, None
    rows = [each.row(prefix) for each, prefix in rules]
    return here, stack.enter_context(guarded_kafka(options.broker, logins, rows))


async def _compared(
    drawn: list[Script],
    guarded: Sequence[Guarded],
    brokers: tuple[Address, Address | None],
    named: str,
    options: argparse.Namespace,
) -> int:
    here, there = brokers
    began = time.monotonic()
    logins = rights.logins(len(guarded)) if guarded else NO_LOGINS
    ours = await run.all_answers(here, drawn, named, logins=logins)
    between = time.monotonic()
    if there is None:
        theirs = run.kept(options.against)
    else:
        theirs = await run.all_answers(there, drawn, named, logins=logins)
    print(f"serve {between - began:.1f} s, Kafka {time.monotonic() - between:.1f} s", flush=True)
    if options.keep is not None:
        run.keep(options.keep, theirs)
    compared = run.Compared()
    for script, one, other in zip(drawn, theirs, ours, strict=True):
        compared.add(script, one, other)
    if there is not None and not guarded:
        await run.shrunk(compared, there, here, _tell)
    else:  # rules name the resources with the prefix of the run
        for rows in compared.first.values():
            script, found = min(rows, key=lambda row: row[1].at)
            rules = next((each.rights for each in guarded if each.script is script), ())
            _tell(run.Found(found, script[: found.at + 1], len(rows)), rules)
    differ = sum(map(len, compared.first.values()))
    print(
        f"{compared.requests} requests compared, {differ} of {len(drawn)} scripts differ in {len(compared.first)} ways"
    )
    return int(differ > 0)


def _tell(found: run.Found, rules: Sequence[Right] = ()) -> None:
    why = found.difference
    print(f"\n{why.api}{why.path}: Kafka {why.one!r}, serve {why.other!r} (in {found.times} scripts)")
    print("".join(f"    {each.line(OWN)}\n" for each in rules), end="")
    print("".join(f"    {move}\n" for move in found.script), end="", flush=True)


if __name__ == "__main__":
    listen_to_sigterm()
    sys.exit(main(sys.argv[1:]))
