"""``fencepost serve`` under load, beside Apache Kafka and franz-go's kfake on the same machine.

A generator in Go (``go/coordload``) sends heartbeats and commits without a pause, lets groups of 10 to 1,000 members
rebalance, and checks every answer. It shares the server's cores, so rates are a lower bound. Beside them is the rate of
one core, computed from the processor time of the server itself. Each run of the generator is a separate
part (``parts``): it ends within its limit, or is skipped.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, Final

from ...common.errors import CannotRun
from ...common.repository import root
from ...targets.jvm.releases import NEWEST
from ..compiled import is_of_these_sources
from .golang import program
from .measure import Measured, Row
from .parts import Parts
from .served import Server, fencepost, kafka, kfake
from .start import beside, starts

#: No part runs beyond so many seconds after the start of the benchmark.
TOTAL_S: Final = 540.0
#: Number of rounds for rates, one server after the other in each.
_ROUNDS: Final = 3
_SIZES: Final = (10, 100, 1000)
#: Limits of parts, in seconds. A build may fetch modules, and Kafka starts in 15 to 20 s on a busy machine.
_BUILD_S: Final = 120.0
_START_S: Final = 120.0


@dataclass(frozen=True, slots=True)
class Load:
    """One run of the generator: its options, and the limit of its time."""

    name: str
    words: str
    limit_s: float


#: Runs that measure rates; the last one waits for the log.
RATES: Final = (
    Load("heartbeats, 4 connections", "-tests hb-classic,hb-consumer -hb-sizes 10 -depths 1 -dur 1s", 30),
    Load("heartbeats, 64 connections", "-tests hb-classic,hb-consumer -hb-sizes 10 -depths 1 -conns 64 -dur 1s", 30),
    Load("commits", "-tests commit -depths 1,16 -dur 1s", 40),
)
#: Runs that measure latencies, which are medians of repetitions.
LATENCIES: Final = tuple(
    Load(name.format(size), f"-tests {test} -sizes {size} -modes prompt -reps 10 -reps-large 3 -budget 5s", limit_s)
    for name, test in (("classic join, {:,} members", "rebalance"), ("KIP-848 join, {:,} members", "reconcile"))
    for size, limit_s in zip(_SIZES, (30, 40, 90), strict=True)
)
#: Runs for a server that does not flush, and for the compiled one.
_WAITING: Final = (RATES[-1], *LATENCIES[:2], *LATENCIES[3:5])
_COMPILED: Final = (*RATES, *LATENCIES)
#: Warm-up runs: Java compiles hot code, and many connections use other code than few.
_WARMING: Final = (
    Load("warm-up of few connections", "-tests hb-classic,hb-consumer,commit -hb-sizes 10 -depths 1 -dur 3s", 60),
    Load("warm-up of many", "-tests hb-classic,hb-consumer -hb-sizes 10 -depths 1 -conns 64 -dur 3s", 40),
    Load("warm-up of joins", "-tests rebalance,reconcile -sizes 10,100 -modes prompt -reps 20 -budget 4s", 60),
)
#: 10,000 groups with 100 offsets each: a million.
_FILL: Final = Load("a million offsets", "-tests fill -fill-groups 10000 -fill-rounds 1 -fill-mod 4", 90)

THIRD = "1/3"
NO_LONGER = "≤ 1"
_OURS, _KFAKE, _KAFKA = "fencepost", "kfake", f"Kafka {NEWEST}"

#: by case
Figures = dict[str, dict[str, Any]]


def serve() -> Measured:
    """Measure the servers. Parts that cannot run are skipped: all loads without Go, Kafka without Java or its
    jars, the compiled server where it has not been compiled from these sources."""
    parts = Parts("serve", TOTAL_S)
    generator = parts.run("build of the load generator and of kfake", _BUILD_S, _built)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="fencepost-bench-")))
        theirs = _started(parts, stack, _KAFKA, kafka)
        rows = [*(parts.run("starts of the port", _START_S, lambda: _starts(theirs)) or ())]
        if generator is not None:
            rows += _under_load(parts, stack, generator, folder, theirs)
    return parts.measured(rows)


def _built() -> Path:
    program("kfake")
    return program("coordload")


def _starts(theirs: Server | None) -> list[Row]:
    return [*beside(starts(_ROUNDS), theirs)]


def _started(parts: Parts, stack: ExitStack, name: str, server: Callable[[], Any]) -> Server | None:
    return parts.run(f"{name}: start", _START_S, lambda: stack.enter_context(server()))


def _under_load(parts: Parts, stack: ExitStack, generator: Path, folder: Path, theirs: Server | None) -> Iterator[Row]:
    ours = _started(parts, stack, _OURS, lambda: fencepost(folder / "data"))
    servers = [each for each in (theirs, ours, _started(parts, stack, _KFAKE, kfake)) if each is not None]
    if theirs is not None:
        measured(parts, generator, theirs, _WARMING)
    rounds = [
        {server.name: measured(parts, generator, server, RATES, f", round {number}") for server in servers}
        for number in range(1, _ROUNDS + 1)
    ]
    found = {
        server.name: medians([each[server.name] for each in rounds]) | measured(parts, generator, server, LATENCIES)
        for server in servers
    }
    if ours is not None:
        yield from rows_of(found.pop(_OURS), found, _OURS)
        yield from _variants(parts, stack, generator, folder, found)
    yield from _filled(parts, stack, generator, folder)


def _variants(
    parts: Parts, stack: ExitStack, generator: Path, folder: Path, others: Mapping[str, Figures]
) -> Iterator[Row]:
    """Measure other configurations of the server, with the figures of Kafka from the same run."""
    beside_kafka = {name: figures for name, figures in others.items() if name == _KAFKA}
    core = root() / "out" / "compiled"

    def compiled() -> Any:
        if not is_of_these_sources(core):
            raise CannotRun("out/compiled is not of these sources; fencepost bench compiled compiles them")
        return fencepost(folder / "compiled", name="fencepost, compiled", core=core)

    for name, server, loads in (
        ("fencepost, not flushed", lambda: fencepost(folder / "kept", flush=False), _WAITING),
        ("fencepost, compiled", compiled, _COMPILED),
    ):
        if (started := _started(parts, stack, name, server)) is not None:
            yield from rows_of(measured(parts, generator, replace(started, name=name), loads), beside_kafka, name)


def measured(parts: Parts, generator: Path, server: Server, loads: Sequence[Load], when: str = "") -> Figures:
    """Return the figures of one server, by case. Each load is a part."""
    figures: Figures = {}
    for load in loads:
        part = f"{server.name}: {load.name}{when}"
        lines = parts.run(part, load.limit_s, partial(run, generator, server, load))
        figures |= {case(line): line for line in lines or ()}
    return figures


def medians(rounds: Sequence[Figures]) -> Figures:
    """Return the median of each figure of each case, over the rounds that have the case."""
    names = {name: None for each in rounds for name in each}
    return {name: _median([each[name] for each in rounds if name in each]) for name in names}


def _median(lines: Sequence[dict[str, Any]]) -> dict[str, Any]:
    numbers = [key for key, value in lines[0].items() if isinstance(value, int | float)]
    return lines[0] | {key: median([each[key] for each in lines]) for key in numbers}


def run(generator: Path, server: Server, load: Load) -> list[dict[str, Any]]:
    """Return the generator's report about a server, a mapping for each case. Raises ``CannotRun`` for a wrong
    answer."""
    command = [str(generator), "-target", server.bootstrap, "-label", server.name, "-pid", str(server.pid)]
    done = subprocess.run([*command, *load.words.split()], capture_output=True, text=True, check=False)
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    wrong = [line["error"] for line in lines if "error" in line]
    if done.returncode or wrong:
        raise CannotRun(f"{server.name} under load: {'; '.join(wrong) or done.stderr.strip()[-300:]}")
    return lines


def case(line: dict[str, Any]) -> str:
    """Return the name of a case, from the generator's report."""
    match line["test"]:
        case "hb-classic" | "hb-consumer" as test:
            return f"heartbeats, {test.removeprefix('hb-')}, {line['conns']} connections"
        case "commit":
            deep = f", {line['depth']} in flight on each" if line["depth"] > 1 else ""
            return f"commits of {line['partitions']}, {line['conns']} connections{deep}"
        case "rebalance":
            return f"classic join, {line['members']} members"
        case _:
            return f"KIP-848 join, {line['members']} members"


def rows_of(ours: Figures, others: Mapping[str, Figures], name: str) -> Iterator[Row]:
    """Yield the rows of one server: each figure beside the same of the others, or alone if none of them has it. Only
    the comparison with Kafka has goals, and the processor time."""
    for what, line in ours.items():
        beside_it = {other: figures[what] for other, figures in others.items() if what in figures}
        for other, theirs in beside_it.items() or [("", {})]:
            yield from _rows(what, name, line, other, theirs)


def _rows(what: str, name: str, line: dict[str, Any], other: str, theirs: dict[str, Any]) -> Iterator[Row]:
    with_goal = other != _KFAKE
    if "ops_per_s" in line:
        yield _row(f"serve: {what}", "answers/s", name, line["ops_per_s"], other, theirs.get("ops_per_s"))
        spent = "target_cpu_us_per_op"
        if with_goal and line.get(spent):
            beside_it = 1e6 / theirs[spent] if theirs.get(spent) else None
            yield _row(f"serve: {what}, a core", "answers/s", name, 1e6 / line[spent], other, beside_it, THIRD)
        return
    key, spent = (
        ("all_synced_p50_ms", "") if "all_synced_p50_ms" in line else ("converged_p50_ms", "converged_cpu_p50_ms")
    )
    yield _row(f"serve: {what}", "ms", name, line[key], other, theirs.get(key), NO_LONGER if with_goal else "")
    if with_goal and line.get(spent):
        yield _row(f"serve: {what}, processor time", "ms", name, line[spent], other, theirs.get(spent))


def _row(  # noqa: PLR0917
    name: str, unit: str, what: str, value: float, versus: str, other: float | None, goal: str = ""
) -> Row:
    return Row(name, what, value, unit, versus, other, value / other if other else None, goal)


def _filled(parts: Parts, stack: ExitStack, generator: Path, folder: Path) -> Iterator[Row]:
    """Measure a million offsets in the store: the memory of 10,000 groups, and the time of a start."""
    data = folder / "filled"

    def fill() -> float:
        with fencepost(data) as server:
            before = server.resident_mib()
            run(generator, server, _FILL)
            return server.resident_mib() - before

    memory = parts.run(_FILL.name, _FILL.limit_s, fill)
    if memory is not None:
        yield Row("serve: 10,000 groups, a million offsets", "memory", memory, "MiB")
        if (server := _started(parts, stack, "fencepost with a million offsets", lambda: fencepost(data))) is not None:
            yield Row("serve: start with a million offsets", "until it listens", server.ready_s, "s")
