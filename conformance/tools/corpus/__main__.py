"""``python -m tools.corpus``: record the corpus again. See ``docs/recording.md``."""

from __future__ import annotations

import asyncio
import sys
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import Annotated

import typer

from fencepost_conformance.common.errors import CannotRun
from fencepost_conformance.common.interruption import listen_to_sigterm
from fencepost_conformance.targets.broker import DEFAULT_VERSION

from .java import java_member
from .produce import Made, produce, takes


def corpus(
    names: Annotated[list[str] | None, typer.Argument(help="only traces whose names begin with one of these")] = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="folder for the traces")] = Path("tests/corpus"),
    jobs: Annotated[int, typer.Option(min=1, help="scenarios played at the same time")] = 4,
) -> None:
    """Play every scenario with real clients on a real broker and record it."""

    def report(made: Made) -> None:
        state = made.problem or ("accepted" if made.accepted else "REJECTED by the checker")
        print(f"{made.name}: {state}, {made.lines} events", flush=True)

    try:
        wanted = takes(names or ())
        java = java_member(DEFAULT_VERSION)
        made = asyncio.run(produce(wanted, output, java=java, jobs=jobs, report=report))
    except CannotRun as reason:
        print(f"corpus: {reason}", file=sys.stderr)
        raise SystemExit(2) from None
    except PackageNotFoundError as missing:
        print(f"corpus: {missing.name} is not installed; pip install -e '.[clients]' in the checkout", file=sys.stderr)
        raise SystemExit(2) from None
    wanting = [each for each in made if each.problem is not None or not each.accepted]
    print(f"{len(made) - len(wanting)} of {len(made)} recorded and accepted")
    raise SystemExit(1 if wanting else 0)


if __name__ == "__main__":
    listen_to_sigterm()
    typer.run(corpus)
