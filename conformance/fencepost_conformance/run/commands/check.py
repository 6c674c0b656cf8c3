"""``fencepost check``: explore the closed system exhaustively; with TLC, also compare the two state graphs."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated, Any, NoReturn, TypeAlias

import typer
from rich.console import Console
from rich.markup import escape

from fencepost.protocol.profile import Profile
from fencepost.protocol.profiles import PROFILES
from fencepost_model.explore.search import Limits
from fencepost_model.system.cfg import BadConfiguration, UnknownName
from fencepost_model.system.checking import Row, check_python, check_spark, check_tlc, ready
from fencepost_model.system.manifest import BadManifest, Entry, read_manifest, read_problem
from fencepost_model.system.user_model import read_model, user_entry
from fencepost_model.tlc.run import TlcBroke, TlcMissing
from fencepost_server.look.made import made_now

from ...common import repository
from ...common.counting import counted
from ...common.errors import CannotRun
from ...common.interruption import interruptible
from ...common.nearest import unknown
from ...common.processes import worker_processes
from ...judge.verdict import Tally, Verdict
from ...show.console import Meter, Result, finish, progress
from ...show.report.checked import catalogue, entry_as_json, row_as_json, table, unsettled, verdict_of
from ...show.report.counter_example import as_html, as_itf, steps_as_text
from ..cluster import needs
from ..cluster.place import Place
from ..cluster.session import started
from .check_simulate import (
    Depth,
    Seconds,
    Seed,
    Simulate,
    Weight,
    explain_walks,
    own_configurations,
    simulate_all,
    simulation,
)
from .spark_options import USUAL_WAIT, Conf, Master, Wait, place_for

#: The reason that stands for an exploration ended by Ctrl-C.
INTERRUPTED = "interrupted"


#: so many names are listed in an error; of more, only the most similar
_FEW = 30


#: receives two figures of an exploration's progress
Watching: TypeAlias = Callable[[int, int], None]


class Engine(StrEnum):
    python = "python"
    tlc = "tlc"
    spark = "spark"


def check(  # noqa: PLR0917
    configs: Annotated[
        list[str] | None, typer.Argument(help="names from spec/manifest.json; default: all of --size")
    ] = None,
    own: Annotated[
        list[Path] | None, typer.Option("--config", help="your model: a TLC configuration, or a Python file")
    ] = None,
    properties: Annotated[
        list[Path] | None, typer.Option("--property", help="a Python file with your properties")
    ] = None,
    engine: Annotated[Engine, typer.Option(help="what explores the graphs")] = Engine.python,
    profile: Annotated[
        str | None, typer.Option(help="explore with this profile's switches instead of those of each configuration")
    ] = None,
    master: Master = None,
    conf: Conf = None,
    wait: Wait = USUAL_WAIT,
    workers: Annotated[int, typer.Option(min=0, help="cores to use; 0: all")] = 0,
    size: Annotated[str, typer.Option(help="largest size of configuration: small, medium or large")] = "small",
    limit: Annotated[int, typer.Option("--limit-states", min=1, help="stop a configuration above so many states")] = (
        Limits().states
    ),
    states: Annotated[bool, typer.Option("--states", help="show whole states of counter-examples")] = False,
    itf: Annotated[Path | None, typer.Option(help="write the counter-example in ITF, for one configuration")] = None,
    html: Annotated[Path | None, typer.Option(help="write a page with the counter-examples")] = None,
    simulate: Simulate = False,
    seconds: Seconds = None,
    seed: Seed = None,
    depth: Depth = None,
    weight: Weight = None,
    symmetry: Annotated[bool, typer.Option("--symmetry", help="merge states that differ only in names")] = False,
    each: Annotated[
        bool, typer.Option("--each", help="print a row for each configuration, however many there are")
    ] = False,
    list_only: Annotated[bool, typer.Option("--list", help="only list the engine's configurations")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="one JSON object on standard output")] = False,
) -> None:
    """Explore every reachable state of each configuration, and compare the result with the expected one."""
    if list_only:
        _list(select(configs or [], size, engine) if configs else able_to(engine), as_json=as_json)
    place = place_for(engine, master, conf, workers, wait)
    walks = simulation(engine.value if simulate else None, seconds, seed, depth, weight)
    if walks is not None:
        require_no_exploration(engine, profile=profile, symmetry=symmetry)
        own = own or ([] if configs else own_configurations())
    entries = [] if own and not configs else select(configs or [], size, engine)
    entries += user_entries(own or [], properties or [], entries, engine)
    chosen = named_profile(profile)
    if chosen is not None and engine is not Engine.python:
        raise CannotRun("--profile needs --engine python: the other engines cannot change a configuration's switches")
    cores = workers or os.cpu_count() or 1
    rows: list[Row] = []
    with progress("checking", len(entries)) as meter, interruptible() as cut:
        limits = Limits(states=limit)
        explorer = partial(explored, properties=properties or (), profile=chosen, symmetry=symmetry, limits=limits)
        work: Iterable[Row]
        if walks is not None:
            work = simulate_all(entries, walks, properties or (), cores, meter)
        elif engine is Engine.python:
            work = explore_all(entries, explorer, cores, meter)
        elif engine is Engine.tlc:
            work = tlc_all(entries, cores, meter)
        else:
            work = spread_all(entries, place, meter)
        rows.extend(run(work))
    rows.sort(key=lambda row: [entry.name for entry in entries].index(row.name))
    counts: dict[str, int | float] = {
        "configurations": len(rows),
        "states": sum(row.states for row in rows),
        "transitions": sum(row.transitions for row in rows),
        "graphs_compared": sum(row.compared for row in rows),
    }
    named = bool(configs or own)
    unwritten = write(rows, itf, html, engine=engine.value, profile=profile, seed=seed)
    result = Result(
        "check",
        Tally.of(verdict_of(row) for row in rows),
        counts,
        {"engine": engine.value, "configurations": [row_as_json(row, states=states) for row in rows]},
        things="configurations",
        unsettled=[unsettled(row) for row in rows if verdict_of(row) in (Verdict.UNDECIDED, Verdict.BROKEN)],
        stopped=cut.reason(f"{len(rows)} of {counted(len(entries), 'configurations')} checked") or unwritten,
    )
    if not as_json:
        explain_walks(rows)
        explain(rows, named=named, states=states)
    shown = table(rows, {entry.name: entry for entry in entries}, each=each or named)
    finish(result, as_json=as_json, table=shown)


def require_no_exploration(engine: Engine, *, profile: str | None, symmetry: bool) -> None:
    """Raises CannotRun for options that go with an exploration only."""
    if engine is Engine.spark:
        raise CannotRun("--simulate needs --engine python or --engine tlc")
    if profile is not None or symmetry:
        raise CannotRun(f"{'--symmetry' if symmetry else '--profile'} does not go with --simulate")


def _list(entries: list[Entry], *, as_json: bool) -> NoReturn:
    details = {"configurations": [entry_as_json(entry) for entry in entries]}
    finish(
        Result("check --list", None, counts={"configurations": len(entries)}, details=details),
        as_json=as_json,
        table=catalogue(entries),
    )


def able_to(engine: Engine) -> list[Entry]:
    """Return the configurations that the engine supports."""
    try:
        entries = read_manifest(repository.root() / "spec")
    except BadManifest as reason:
        raise CannotRun(str(reason)) from reason
    able = [entry for entry in entries if engine is Engine.tlc or entry.has_model]
    if engine is Engine.spark:
        able = [entry for entry in able if not read_problem(entry).fair]  # only the other engines check liveness
    return able


def select(names: list[str], size: str, engine: Engine) -> list[Entry]:
    """Return the named entries, or all up to the size that the engine supports."""
    able = able_to(engine)
    if not names and engine is Engine.spark:
        raise CannotRun("give the names of the configurations for Spark; see fencepost check --list --engine spark")
    if not names:
        sizes = ("small", "medium", "large")
        if size not in sizes:
            raise CannotRun(unknown("size", size, sizes, f"there are {', '.join(sizes)}"))
        return [entry for entry in able if sizes.index(entry.size) <= sizes.index(size)]
    known = {entry.name: entry for entry in able}
    if strange := [name for name in names if name not in known]:
        where = "fencepost check --list shows those of this engine"
        raise CannotRun(unknown("configuration", strange[0], known, f"{where} (--engine {engine.value})"))
    return [known[name] for name in dict.fromkeys(names)]


def user_entries(own: list[Path], properties: list[Path], others: list[Entry], engine: Engine) -> list[Entry]:
    """Return the entries of the user's files, and check these before anything is explored. Raises CannotRun."""
    if (own and engine is Engine.spark) or (properties and engine is not Engine.python):
        raise CannotRun(f"--engine {engine.value} explores no {'--property' if properties else '--config'} file")
    try:
        entries = [user_entry(path, repository.root() / "spec") for path in dict.fromkeys(own)]
        for entry in [*entries, *(others if properties else [])]:
            ready(entry, read_model(entry), properties)
    except UnknownName as wrong:
        few = len(wrong.known) <= _FEW
        known = f"there are {', '.join(wrong.known)}" if few else "docs/own-models.md says where all are"
        raise CannotRun(f"{wrong.where}: {unknown(wrong.kind, wrong.name, wrong.known, known)}") from None
    except (BadConfiguration, BadManifest) as reason:
        raise CannotRun(str(reason)) from None
    return entries


def named_profile(name: str | None) -> Profile | None:
    if name is not None and name not in PROFILES:
        raise CannotRun(unknown("profile", name, PROFILES, f"there are {', '.join(PROFILES)}"))
    return PROFILES[name] if name is not None else None


def run(work: Iterable[Row]) -> Iterator[Row]:
    """Yield the rows of an engine as they come. Raises CannotRun for a missing component."""
    try:
        yield from work
    except (TlcMissing, BadManifest, BadConfiguration) as reason:
        raise CannotRun(str(reason)) from reason


def attempt(explore: Callable[..., Row], entry: Entry, engine: Engine, **options: Any) -> Row:
    """Return the row of one configuration; a broken one if the engine or the model raises. Raises errors that affect
    every configuration: ``TlcMissing``, ``BadManifest``, ``CannotRun``."""
    try:
        return explore(entry, **options)
    except (TlcMissing, BadManifest, BadConfiguration, CannotRun):
        raise
    except Exception as raised:
        why = str(raised) if isinstance(raised, TlcBroke) else f"{type(raised).__name__}: {raised}"
        return Row(entry.name, engine.value, entry.expected, entry.breaks, 0, 0, 0, 0.0, broken=why)


def explored(entry: Entry, **options: Any) -> Row:
    """Call ``attempt`` with Python; a module function, so that worker processes can run it."""
    return attempt(check_python, entry, Engine.python, **options)


def tlc_all(entries: list[Entry], cores: int, meter: Meter) -> Iterator[Row]:
    """Run configurations that hold one after the other on all cores; those that must fail on one core each, in
    parallel."""
    for entry in entries:
        if entry.expected == "holds":
            watch = two_figures(meter, entry, "generated", "states")
            yield attempt(check_tlc, entry, Engine.tlc, workers=cores, watch=watch)
            meter.advance()
    with ThreadPoolExecutor(cores) as pool:
        pending = [pool.submit(attempt, check_tlc, entry, Engine.tlc) for entry in entries if entry.expected != "holds"]
        try:
            for done in as_completed(pending):
                yield done.result()
                meter.advance()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def two_figures(meter: Meter, entry: Entry, first: str, second: str) -> Watching:
    """Return a function that shows the two figures of a configuration's progress."""

    def watch(one: int, two: int) -> None:
        meter.update(description=f"{entry.name}: {counted(one, first)}, {counted(two, second)}")

    meter.update(description=entry.name)
    return watch


def spread_all(entries: list[Entry], place: Place, meter: Meter) -> Iterator[Row]:
    """Run one configuration after the other, each on all of Spark's cores."""
    with started(place, needs.GRAPHS) as running:
        copies = 2 if running.cluster else 1  # so that a lost executor loses no data
        for entry in entries:
            watch = two_figures(meter, entry, "states", "levels")
            options = {"session": running.session, "workers": running.cores, "copies": copies, "watch": watch}
            yield attempt(check_spark, entry, Engine.spark, **options)
            meter.advance()


def explore_all(entries: list[Entry], explorer: Callable[..., Row], cores: int, meter: Meter) -> Iterable[Row]:
    """Run configurations in parallel, one process each; with one core one at a time, each with its own progress."""
    if cores == 1 or len(entries) == 1:
        for entry in entries:
            meter.update(description=entry.name)

            def watch(found: int, expanded: int, generated: int, name: str = entry.name) -> None:
                meter.update(description=f"{name}: {counted(found, 'states')}, {found - expanded:,} to expand")

            row = explorer(entry, watch=watch)
            if row.stopped == INTERRUPTED:  # the explorer returns its partial result; no other one begins
                raise KeyboardInterrupt
            yield row
            meter.advance()
        return
    with worker_processes(cores) as pool:
        pending = {pool.submit(explorer, entry): entry for entry in entries}
        for done in as_completed(pending):
            meter.update(description=f"{pending[done].name} done")
            meter.advance()
            yield done.result()


def write(rows: list[Row], itf: Path | None, html: Path | None, **facts: str | int | None) -> str | None:
    """Write the counter-examples to these files. Returns why a file could not be written, so that the command still
    prints its result. ``facts``: for the foot of the page."""
    traced = [row for row in rows if row.steps]
    try:
        if html is not None:
            html.write_text(as_html(traced, made_now(None, **facts)), encoding="utf-8")
        if itf is not None:
            if len(traced) != 1:
                return f"{itf}: an ITF file has one counter-example, but there are {len(traced)}"
            itf.write_text(json.dumps(as_itf(traced[0]), ensure_ascii=False, indent=1), encoding="utf-8")
    except OSError as reason:
        return f"{reason.filename}: {reason.strerror}"
    return None


def explain(rows: list[Row], *, named: bool, states: bool) -> None:
    """Print the counter-examples of unexpected results, and of configurations requested by name."""
    console = Console()
    for row in rows:
        if row.trace and (named or not row.as_expected):
            why = ", ".join(row.violated) or "; ".join(row.wrong) or row.broken
            console.print(f"[bold]{escape(row.name)}[/]: {escape(why)}", highlight=False)
            for line in steps_as_text(row, states=states):
                console.print(f"  {line}", highlight=False, markup=False, soft_wrap=True)
