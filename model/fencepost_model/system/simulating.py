"""Random behaviours of one configuration: with the model, or with TLC."""

from __future__ import annotations

import re
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from ..explore.graph import Step
from ..explore.search import Violation
from ..explore.walk import Stepper, Walked, WalkLimits, replay, shortened, walk
from ..tlc.run import TlcRun, TlcSlow, run_tlc, simulation
from .changes import Shown
from .checking import Row, describe, files_for_tlc, judge, ready, shown_states
from .manifest import Entry
from .mutants import mutated
from .user_model import read_model

#: The most time for shortening a counter-example.
_SHORTENING_S: Final = 60.0
#: the modules that define System and Environment
_SYSTEMS: Final = {
    "classic": "ClassicGroup",
    "consumer": "ConsumerGroup",
    "mixed": "MixedGroup",
    "log": "GroupLog",
    "offsets": "Offsets",
}
_BLOCK: Final = re.compile(r"^(System|Environment) ==\n((?:  .*\n)+)", re.MULTILINE)
_ACTION: Final = re.compile(r"(?:\\/|:) (\w+)(?:\([^()]*\))?$", re.MULTILINE)
_PROGRESS: Final = re.compile(r"Progress\([-\d]*\).*?: ([\d,]+) states generated")


def simulate_python(
    entry: Entry,
    seed: int,
    limits: WalkLimits,
    *,
    properties: Sequence[Path] = (),
    watch: Callable[[int, int], None] | None = None,
) -> Row:
    """Simulate with the model, and shorten what breaks a property. Raises BadConfiguration, BadManifest."""
    model = read_model(entry)
    with mutated(*model.problem.mutants):
        system, raised = ready(entry, model, properties)
        walked = walk(system, seed, limits, watch)
        if walked.violation is not None and walked.violation.property not in raised:
            walked.violation = shortened(system, walked.violation, _SHORTENING_S)
        return _row(entry, "python", walked, system, raised)


def _row(entry: Entry, engine: str, walked: Walked, system: Any, raised: dict[str, str]) -> Row:
    violation = walked.violation
    row = Row(
        *(entry.name, engine, entry.expected, entry.breaks),
        *(walked.steps, walked.steps, len(violation.trace) if violation else 0, walked.seconds),
        walked=walked,
    )
    row.never = sorted(action_names(entry, system.config) - {*walked.taken})
    if violation is not None:
        row.trace, row.steps = describe(violation.trace), shown_states(system, violation.trace)
        if violation.property in raised:
            row.broken = raised[violation.property]
            return row
        row.violated = [violation.property]
    _settle(row, entry)
    return row


def _settle(row: Row, entry: Entry) -> None:
    """Judge the row as an exploration. That nothing was found shows no fault of a configuration that must fail."""
    walked = row.walked
    assert walked is not None
    if walked.stopped and not row.violated:
        row.stopped = walked.stopped
    elif entry.expected != "holds" and not row.violated:
        row.stopped = f"no behaviour broke {entry.breaks} in {walked.seconds:.0f} s"
    judge(row, entry, None, pinned=False)


def action_names(entry: Entry, config: Any) -> set[str]:
    """The names of the actions of System and Environment in the specification, without those of the environment that
    the configuration does not allow."""
    text = (entry.module.parent / f"{_SYSTEMS[entry.protocol]}.tla").read_text(encoding="utf-8")
    names: dict[str, set[str]] = {"System": set(), "Environment": set()}
    for block, body in _BLOCK.findall(text):
        names[block] |= set(_ACTION.findall(body))
    allowed = {*config.allowed}
    if "ClientCommits" in allowed:
        allowed.add("ClientCommitIsRejected")
    return names["System"] | (names["Environment"] & allowed)


def simulate_tlc(entry: Entry, seed: int, limits: WalkLimits) -> Row:
    """Simulate with TLC. The model shortens what breaks a property, by the names of TLC's actions; if it cannot replay
    them, the row has the behaviour as TLC found it. Raises TlcMissing, TlcBroke."""
    began = time.monotonic()
    walked = Walked(seed)
    run: TlcRun | None = None
    with tempfile.TemporaryDirectory(prefix="fencepost-simulation-") as scratch:
        module, cfg = files_for_tlc(entry, Path(scratch))
        options = simulation(seed, limits.depth, limits.behaviours)
        try:
            run = run_tlc(
                module, cfg, deadlock=entry.deadlock, short=entry.short, include=(entry.module.parent,),
                seconds=limits.seconds, more=options,
            )  # fmt: skip
            output = run.output
        except TlcSlow as slow:  # the usual end
            output = slow.output
    walked.steps = max((int(each.replace(",", "")) for each in _PROGRESS.findall(output)), default=0)
    walked.seconds = time.monotonic() - began
    row = Row(*(entry.name, "tlc", entry.expected, entry.breaks, walked.steps, walked.steps, 0, walked.seconds))
    row.walked = walked
    if run is not None and run.violated is not None:
        row.violated, walked.found = [run.violated], len(run.trace)
        row.depth = len(run.trace)
        row.trace = ["initial state", *(step.action or "" for step in run.trace[1:])]
        row.steps = [Shown((step.action,) if step.action else (), step.state) for step in run.trace]
        _shorten(row, entry, run)
    _settle(row, entry)
    return row


def _shorten(row: Row, entry: Entry, run: TlcRun) -> None:
    model = read_model(entry)
    with mutated(*model.problem.mutants):
        system, _ = ready(entry, model)
        names = [(step.action,) for step in run.trace if step.action]
        found = replay(Stepper(system), row.violated[0], names)
        if found is None:
            return
        violation = Violation(row.violated[0], "invariant", found)
        trace: list[Step] = shortened(system, violation, _SHORTENING_S).trace
        row.trace, row.steps, row.depth = describe(trace), shown_states(system, trace), len(trace)
