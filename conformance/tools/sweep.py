"""Run the sweep: ``python -m tools.sweep [BROKER …] [--short]``.

A full sweep that passes writes its column of ``docs/sweep.md``. The sweep of each broker is one result; the exit status
follows from ``verdict.outcome_of``.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from fencepost_conformance.common import repository
from fencepost_conformance.common.counting import counted
from fencepost_conformance.common.errors import BrokerFault, CannotRun
from fencepost_conformance.common.interruption import listen_to_sigterm
from fencepost_conformance.judge.sweep import matrix
from fencepost_conformance.judge.sweep.brokers import ALL, profile_of, running
from fencepost_conformance.judge.sweep.run import Outcome, sweep
from fencepost_conformance.judge.verdict import Tally, Verdict, outcome_of


def main(words: Sequence[str]) -> int:
    """Sweep each broker, print the results, and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tools.sweep", description=__doc__.splitlines()[0])
    parser.add_argument("brokers", nargs="*", metavar="BROKER", help=f"{', '.join(ALL)}; default: all")
    parser.add_argument("--short", action="store_true", help="one form of each version")
    parser.add_argument("-o", metavar="FOLDER", type=Path, help="keep the traces, as BROKER/sweep.jsonl.gz")
    options = parser.parse_args(words)
    if unknown := [name for name in options.brokers if name not in ALL]:
        parser.error(f"no broker is called {unknown[0]!r}; there are {', '.join(ALL)}")
    found: list[Verdict] = []
    for name in options.brokers or ALL:
        began = time.monotonic()
        try:
            with tempfile.TemporaryDirectory() as thrown_away, running(name) as address:
                folder = options.o / name if options.o else Path(thrown_away)
                folder.mkdir(parents=True, exist_ok=True)
                outcome = asyncio.run(sweep(address, folder, profile_of(name), full=not options.short))
        except (CannotRun, BrokerFault, OSError) as reason:
            print(f"{name}: {Verdict.BROKEN}: {reason}", flush=True)
            found.append(Verdict.BROKEN)
            continue
        found.append(outcome.passed)
        exchanges = counted(sum(outcome.books.counts.values()), "exchanges")
        print(f"{name}: {outcome.passed}, {exchanges}, {time.monotonic() - began:.0f} s")
        print("".join(f"  {each}\n" for each in outcome.wrong), end="", flush=True)
        if outcome.passed is Verdict.PASSED and not options.short:
            _keep(name, outcome)
    total = outcome_of(Tally.of(found))
    print(f"sweep: {total}")
    return total.status


def _keep(name: str, outcome: Outcome) -> None:
    root = repository.root()
    matrix.write(root, {**matrix.read(root), name: matrix.column(outcome)})


if __name__ == "__main__":
    listen_to_sigterm()
    sys.exit(main(sys.argv[1:]))
