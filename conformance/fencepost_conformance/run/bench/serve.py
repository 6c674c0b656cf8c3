"""``fencepost serve`` under load, beside Apache Kafka and franz-go's kfake on the same machine.

A generator in Go (``go/coordload``) sends heartbeats and commits without a pause, lets groups of 10 to 1,000 members
rebalance, and checks every answer. It shares the server's cores, so rates are a lower bound. Beside them is the rate of
one core, computed from the processor time of the server itself.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, suppress
from pathlib import Path
from statistics import median
from typing import Any

from ...common.errors import CannotRun
from ...common.repository import root
from ..compiled import build, is_of_these_sources, unavailable
from .golang import program
from .measure import Row
from .served import Server, fencepost, kafka, kfake

_PATIENCE_S = 900
_SECONDS = "2s"
#: Number of rounds for rates, one server after the other in each.
_ROUNDS = 3
_SIZES = "10,100,1000"
#: The generator's options, one run each.
TESTS = (
    f"-tests hb-classic,hb-consumer -hb-sizes 10 -depths 1 -dur {_SECONDS}",
    f"-tests hb-classic,hb-consumer -hb-sizes 10 -depths 1 -conns 64 -dur {_SECONDS}",
    f"-tests commit -depths 1 -dur {_SECONDS}",
    f"-tests rebalance -sizes {_SIZES} -modes prompt -reps 10 -reps-large 3 -budget 25s",
    f"-tests reconcile -sizes {_SIZES} -reps 10 -reps-large 3 -budget 25s",
)
#: Runs that measure rates, and runs that measure latencies, which are medians of repetitions.
_RATES, _LATENCIES = TESTS[:3], TESTS[3:]
#: Runs that wait for the log; a server that does not flush only gets these.
_WAITING = TESTS[2:]
#: Warm-up runs: Java compiles hot code, and many connections use other code than few.
_WARMING = (
    "-tests hb-classic,hb-consumer,commit -hb-sizes 10 -depths 1 -dur 5s",
    "-tests hb-classic,hb-consumer -hb-sizes 10 -depths 1 -conns 64 -dur 5s",
    "-tests rebalance,reconcile -sizes 10,100 -modes prompt -reps 20 -budget 8s",
)
#: 10,000 groups with 100 offsets each: a million.
_FILL = "-tests fill -fill-groups 10000 -fill-rounds 1 -fill-mod 4"

THIRD = "1/3"
NO_LONGER = "≤ 1"

Figures = dict[str, dict[str, Any]]


def serve() -> list[Row]:
    """Measure the servers. Raises ``CannotRun`` without Go, or without Kafka."""
    generator = program("coordload")
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="fencepost-bench-")))
        theirs, ours = stack.enter_context(kafka()), stack.enter_context(fencepost(folder / "data"))
        servers = [theirs, ours]
        with suppress(CannotRun):  # then one figure is missing
            servers.append(stack.enter_context(kfake()))
        for words in _WARMING:
            run(generator, theirs, words)
        rounds = [[measured(generator, server, _RATES) for server in servers] for _ in range(_ROUNDS)]
        found = {
            server.name: medians([each[place] for each in rounds]) | measured(generator, server, _LATENCIES)
            for place, server in enumerate(servers)
        }
        rows = [*_rows(found)]
        for variant, tests in _variants(folder):
            with variant as server:
                beside = {theirs.name: found[theirs.name], server.name: measured(generator, server, tests)}
            rows += _rows(beside)
    return [*rows, *_filled(generator)]


def _variants(folder: Path) -> Iterator[tuple[AbstractContextManager[Server], Sequence[str]]]:
    """Yield other configurations of the server, and the runs for each; without a C compiler there is one less."""
    yield fencepost(folder / "kept", name="fencepost, not flushed", flush=False), _WAITING
    if not unavailable():
        core = root() / "out" / "compiled"
        if not is_of_these_sources(core):
            build(core)
        yield fencepost(folder / "compiled", name="fencepost, compiled", core=core), TESTS


def measured(generator: Path, server: Server, tests: Sequence[str] = ()) -> Figures:
    """Return the figures of one server, by case; all of them, or those of some ``tests``."""
    figures: Figures = {}
    for words in tests or TESTS:
        for line in run(generator, server, words):
            figures[case(line)] = line
    return figures


def medians(rounds: Sequence[Figures]) -> Figures:
    """Return the median of each figure of each case, over rounds."""
    return {
        name: line
        | {key: median([each[name][key] for each in rounds]) for key in line if isinstance(line[key], int | float)}
        for name, line in rounds[0].items()
    }


def run(generator: Path, server: Server, words: str) -> list[dict[str, Any]]:
    """Return the generator's report about a server, a mapping for each case. Raises ``CannotRun`` for a wrong
    answer."""
    command = [str(generator), "-target", server.bootstrap, "-label", server.name, "-pid", str(server.pid)]
    done = subprocess.run([*command, *words.split()], capture_output=True, text=True, check=False, timeout=_PATIENCE_S)
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
            return f"commits of {line['partitions']}, {line['conns']} connections"
        case "rebalance":
            return f"classic join, {line['members']} members"
        case _:
            return f"KIP-848 join, {line['members']} members"


def _rows(found: dict[str, Figures]) -> Iterator[Row]:
    theirs, *others = found.values()
    their_name, our_name, *more = found
    ours = others[0]
    for name, line in ours.items():
        beside = theirs.get(name)
        if beside is None:
            continue
        if "ops_per_s" in line:
            yield _row(f"serve: {name}", "answers/s", our_name, line["ops_per_s"], their_name, beside["ops_per_s"])
            cores = [1e6 / each["target_cpu_us_per_op"] for each in (line, beside)]
            yield _row(f"serve: {name}, a core", "answers/s", our_name, cores[0], their_name, cores[1], THIRD)
        else:
            key = "all_synced_p50_ms" if "all_synced_p50_ms" in line else "converged_p50_ms"
            yield _row(f"serve: {name}", "ms", our_name, line[key], their_name, beside[key], NO_LONGER)
            spent = "converged_cpu_p50_ms"
            if line.get(spent) and beside.get(spent):
                of_server = f"serve: {name}, processor time"
                yield _row(of_server, "ms", our_name, line[spent], their_name, beside[spent])
        for other, figures in zip(more, others[1:], strict=True):
            if name in figures:
                key = "ops_per_s" if "ops_per_s" in line else key
                unit = "answers/s" if key == "ops_per_s" else "ms"
                yield _row(f"serve: {name}", unit, our_name, line[key], other, figures[name][key])


def _row(name: str, unit: str, what: str, value: float, versus: str, other: float, aim: str = "") -> Row:  # noqa: PLR0917
    return Row(name, what, value, unit, versus, other, value / other if other else None, aim)


def _filled(generator: Path) -> Iterator[Row]:
    """Measure a million offsets in the store: the memory of 10,000 groups, and the time of a start."""
    with tempfile.TemporaryDirectory(prefix="fencepost-bench-") as folder:
        data = Path(folder, "data")
        with fencepost(data) as server:
            before = server.resident_mib()
            run(generator, server, _FILL)
            yield Row("serve: 10,000 groups, a million offsets", "memory", server.resident_mib() - before, "MiB")
        with fencepost(data) as server:
            yield Row("serve: start with a million offsets", "until it listens", server.ready_s, "s")
