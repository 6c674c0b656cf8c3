"""``fencepost check --simulate``: random behaviours instead of all reachable states."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from concurrent.futures import as_completed
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, TypeAlias

import typer
from rich.console import Console
from rich.markup import escape

from fencepost_model.explore.walk import WalkLimits
from fencepost_model.system.checking import Row
from fencepost_model.system.manifest import Entry
from fencepost_model.system.simulating import action_names, simulate_python, simulate_tlc
from fencepost_model.system.user_model import read_model
from fencepost_model.tlc.run import TlcBroke

from ...common import repository
from ...common.counting import counted
from ...common.errors import CannotRun
from ...common.nearest import unknown
from ...common.processes import worker_processes
from ...show.console import Meter

Simulate: TypeAlias = Annotated[bool, typer.Option("--simulate", help="take random behaviours; explore nothing")]
Seconds: TypeAlias = Annotated[
    float | None, typer.Option(min=0.1, help="with --simulate: the time for each configuration (10)")
]
Seed: TypeAlias = Annotated[int | None, typer.Option(min=0, help="with --simulate: the seed; default: a new one")]
Depth: TypeAlias = Annotated[
    int | None, typer.Option(min=1, help="with --simulate: the most steps of a behaviour (100)")
]
Weight: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(help="with --simulate: ACTION=NUMBER, how likely an action is (1); may be repeated"),
]

#: every simulation has a seed below this
_SEEDS = 1 << 31


@dataclass(frozen=True, slots=True)
class Simulation:
    """The options of a simulation; ``engine``: python or tlc."""

    engine: str
    seed: int
    limits: WalkLimits


def simulation(
    engine: str | None, seconds: float | None, seed: int | None, depth: int | None, weight: Sequence[str] | None
) -> Simulation | None:
    """Return the options; None without an engine, if ``--simulate`` is not given. Raises CannotRun for options that
    need it."""
    given = {"--seconds": seconds, "--seed": seed, "--depth": depth, "--weight": weight or None}
    if engine is None:
        if lone := next((name for name, value in given.items() if value is not None), None):
            raise CannotRun(f"{lone} needs --simulate")
        return None
    limits = WalkLimits(seconds=seconds or 10.0, depth=depth or 100, weights=dict(map(_weight, weight or ())))
    return Simulation(engine, secrets.randbelow(_SEEDS) if seed is None else seed, limits)


def _weight(text: str) -> tuple[str, float]:
    name, _, number = text.partition("=")
    try:
        value = float(number)
    except ValueError:
        value = -1.0
    if not (name and 0 <= value < float("inf")):
        raise CannotRun(f"--weight {text!r} is not ACTION=NUMBER, such as ClientCrashes=0.2")
    return name, value


def own_configurations() -> list[Path]:
    """The configurations that are too large to explore."""
    here = Path.cwd()
    found = sorted((repository.root() / "spec" / "simulate").glob("*.cfg"))
    return [path.relative_to(here) if path.is_relative_to(here) else path for path in found]


def simulate_all(
    entries: Sequence[Entry], options: Simulation, properties: Sequence[Path], cores: int, meter: Meter
) -> Iterator[Row]:
    """Simulate each configuration, several at a time. Raises CannotRun."""
    for entry in entries:
        _refuse(entry, options)
    work = partial(_simulated, options=options, properties=tuple(properties))
    if cores == 1 or len(entries) == 1:
        for entry in entries:
            meter.update(description=entry.name)
            yield work(entry)
            meter.advance()
        return
    with worker_processes(cores) as pool:
        for done in as_completed([pool.submit(work, entry) for entry in entries]):
            meter.advance()
            yield done.result()


def _refuse(entry: Entry, options: Simulation) -> None:
    problem = read_model(entry).problem
    if problem.fair:
        raise CannotRun(f"{entry.name} is about liveness, which random behaviours do not show; leave out --simulate")
    if options.engine == "tlc" and options.limits.weights:
        raise CannotRun("--weight needs --engine python: TLC takes every step with the same probability")
    names = action_names(entry, problem.config)
    for name in options.limits.weights:
        if name not in names:
            raise CannotRun(unknown("action", name, names, f"{entry.name} has {', '.join(sorted(names))}"))


def _simulated(entry: Entry, options: Simulation, properties: Sequence[Path]) -> Row:
    try:
        if options.engine == "tlc":
            return simulate_tlc(entry, options.seed, options.limits)
        return simulate_python(entry, options.seed, options.limits, properties=properties)
    except TlcBroke as broke:
        return Row(entry.name, options.engine, entry.expected, entry.breaks, 0, 0, 0, 0.0, broken=str(broke))


def explain_walks(rows: Sequence[Row]) -> None:
    """Print what each simulation did: behaviours, the seed, and how often each action was taken."""
    console = Console()
    for row in rows:
        if row.walked is None:
            continue
        walked = row.walked
        said = f"{counted(walked.behaviours, 'behaviours')}, " if walked.taken else ""
        console.print(f"[bold]{escape(row.name)}[/]: {said}{counted(walked.steps, 'steps')}, seed {walked.seed}")
        if walked.found > len(row.trace):
            console.print(f"  counter-example of {walked.found} states, shortened to {len(row.trace)}")
        if walked.taken:
            taken = ", ".join(f"{name} {number:,}" for name, number in sorted(walked.taken.items()))
            console.print(f"  taken: {taken}", highlight=False, soft_wrap=True)
            console.print(f"  never taken: {', '.join(row.never) or 'none'}", highlight=False, soft_wrap=True)
