"""Check one configuration: explore it with the model or with TLC, and compare the result with the manifest."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fencepost.protocol.profile import Profile

from ..explore.graph import Step
from ..explore.liveness import check_liveness
from ..explore.search import Exploration, Limits, Watch, explore
from ..explore.walk import Walked
from ..tlc.compare import Comparison, compare
from ..tlc.dump import read_dump
from ..tlc.run import UNNAMED, TlcRun, run_tlc
from .cfg import BadConfiguration, UnknownName, read_cfg
from .changes import Shown
from .closed import ClosedSystem
from .consumer.closed import ConsumerSystem
from .families import family_of, system_of
from .gather import UnknownProperty
from .log.closed import LogSystem
from .manifest import Entry, read_problem
from .mixed.closed import MixedSystem
from .mutants import mutated
from .offsets.closed import OffsetsSystem
from .user_model import UserModel, is_of_user, missing, read_model
from .user_properties import UserProperty, added, read_properties
from .variables import graph_over, values_in

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(slots=True)
class Row:
    """The result for one configuration. ``wrong``: what differs from the manifest. ``stopped``: why the exploration
    ended early. ``broken``: why it could not run. All empty: everything is as expected."""

    name: str
    engine: str
    expected: str
    breaks: str | None
    states: int
    transitions: int
    depth: int
    seconds: float
    violated: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    trace: list[str] = field(default_factory=list)  #: of the first violation, one line per step
    steps: list[Shown] = field(default_factory=list)  #: the states of that trace, if the engine has them
    loop: int | None = None  #: the step at which the loop of a lasso begins
    compared: bool = False  #: the graph was compared with TLC's
    stopped: str = ""
    broken: str = ""
    walked: Walked | None = None  #: random behaviours, instead of an exploration
    never: list[str] = field(default_factory=list)  #: the actions that no random behaviour took

    @property
    def as_expected(self) -> bool:
        return not (self.wrong or self.stopped or self.broken)

    def as_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "engine": self.engine,
            "expected": self.expected,
            "property": self.breaks,
            "violated": self.violated,
            "states": self.states,
            "transitions": self.transitions,
            "depth": self.depth,
            "seconds": round(self.seconds, 3),
            "compared": self.compared,
            "wrong": self.wrong,
            "trace": self.trace,
            "loop": self.loop,
            **(self._simulation() if self.walked is not None else {}),
        }

    def _simulation(self) -> dict[str, Any]:
        walked = self.walked
        assert walked is not None
        return {
            "simulation": {
                "seed": walked.seed,
                "behaviours": walked.behaviours,
                "steps": walked.steps,
                "found_states": walked.found,
                "taken": dict(walked.taken.most_common()),
                "never_taken": self.never,
            }
        }


@dataclass(frozen=True, slots=True)
class Explored:
    """A system and its exploration. ``raised``: the error of each user property that raised."""

    system: Any
    found: Exploration
    raised: dict[str, str]


def explore_entry(
    entry: Entry,
    *,
    profile: Profile | None = None,
    limits: Limits | None = None,
    watch: Watch | None = None,
    transitions: bool = False,
    symmetry: bool = False,
) -> tuple[ClosedSystem | ConsumerSystem | MixedSystem | LogSystem | OffsetsSystem, Exploration]:
    """Explore a configuration with all its properties, liveness included. ``profile`` overrides its switches."""
    explored = explore_with(
        entry, profile=profile, limits=limits, watch=watch, transitions=transitions, symmetry=symmetry
    )
    return explored.system, explored.found


def explore_with(
    entry: Entry,
    properties: Sequence[Path] = (),
    *,
    profile: Profile | None = None,
    limits: Limits | None = None,
    watch: Watch | None = None,
    transitions: bool = False,
    symmetry: bool = False,
    stop_at_violation: bool = True,
) -> Explored:
    """Explore a configuration, a user's too. ``properties``: files with the user's properties. Raises
    BadConfiguration, BadManifest."""
    model = read_model(entry)
    problem = model.problem
    if profile is not None:
        problem = replace(problem, config=problem.config.with_profile(profile))
    with mutated(*problem.mutants):
        system, raised = ready(entry, replace(model, problem=problem), properties)
        live = bool(system.properties.leads_to or system.properties.settles)
        # Symmetry would be unsound for liveness, and a user's property may name a client.
        folded = symmetry and not live and not (model.own or properties)
        found = explore(
            system,
            limits=limits,
            transitions=transitions or live,
            watch=watch,
            symmetry=folded,
            stop_at_violation=stop_at_violation,
        )
        if live and found.complete:
            found.violations.extend(check_liveness(found))
        return Explored(system, found, raised)


def ready(entry: Entry, model: UserModel, properties: Sequence[Path] = ()) -> tuple[Any, dict[str, str]]:
    """Return the system of a model with all its properties, and where the errors of the user's properties will be kept.
    Raises BadConfiguration for an unknown property, or if there is none."""
    family = family_of(model.problem.config)
    own: list[UserProperty] = [*model.own, *(each for path in properties for each in read_properties(path))]
    if not (own or model.problem.properties):
        raise BadConfiguration(
            f"{entry.cfg}: nothing to check; add INVARIANTS or PROPERTIES, or give --property FILE.py"
        )
    try:
        system = system_of(model.problem)
    except UnknownProperty as wrong:
        where = _place_of(entry, wrong.name)
        raise UnknownName(where, f"property of the {family.name} family", wrong.name, wrong.known) from None
    more = added(system, family, own)
    system.properties = more.properties
    return system, more.raised


def _place_of(entry: Entry, name: str) -> str:
    if entry.cfg.suffix == ".py":
        return str(entry.cfg)
    return next((f"{entry.cfg}:{each.line}" for each in read_cfg(entry.cfg).properties if each.text == name), "")


def check_python(
    entry: Entry,
    *,
    properties: Sequence[Path] = (),
    profile: Profile | None = None,
    symmetry: bool = False,
    limits: Limits | None = None,
    watch: Watch | None = None,
) -> Row:
    """Explore with the model.

    With a profile other than the configuration's, no particular result is expected: broken properties are only
    reported. With symmetry, states are classes and their number is not pinned. ``properties``: files with properties
    that the user wrote. One that raises gives a broken row with the trace to the state.
    """
    began = time.monotonic()
    explored = explore_with(entry, properties, profile=profile, symmetry=symmetry, limits=limits, watch=watch)
    found, raised = explored.found, explored.raised
    row = Row(
        entry.name,
        "python",
        entry.expected if profile is None else "holds",
        entry.breaks if profile is None else None,
        found.states,
        found.generated,
        found.depth,
        time.monotonic() - began,
        [violation.property for violation in found.violations if violation.property not in raised],
    )
    if found.violations:
        first = next((each for each in found.violations if each.property not in raised), found.violations[0])
        row.trace, row.loop = describe(first.trace, first.loop), first.loop
        row.steps = shown_states(explored.system, first.trace)
    if raised and not row.violated:
        (row.broken,) = [*raised.values()][:1]
        return row
    if found.stopped is not None and not found.violations:
        row.stopped = found.stopped
    judge(
        row,
        entry,
        len(found.violations[0].trace) if found.violations else None,
        pinned=profile is None and not symmetry,
    )
    return row


def shown_states(system: Any, trace: Sequence[Step]) -> list[Shown]:
    """Return a trace of a system as values of the specification's variables."""
    makers = family_of(system.config).makers(system)
    return [Shown(step.label or (), values_in(makers, step.state)) for step in trace]


def check_spark(
    entry: Entry,
    session: SparkSession,
    *,
    workers: int,
    copies: int = 1,
    watch: Callable[[int, int], None] | None = None,
) -> Row:
    """Explore on Spark. ``watch`` gets (states, depth); ``copies``: how many executors hold each part of the visited
    states. Raises ValueError for liveness, which this engine does not check."""
    from .spread import spread  # noqa: PLC0415 — needs nothing of Spark, but only this engine needs it

    problem = read_problem(entry)
    if problem.fair:
        raise ValueError(f"{entry.name} is about liveness, which the Spark engine does not check")
    began = time.monotonic()
    found = spread(session, problem, partitions=2 * workers, copies=copies, watch=watch)
    seconds = time.monotonic() - began
    row = Row(
        *(entry.name, "spark", entry.expected, entry.breaks),
        *(found.states, found.generated, found.depth, seconds),
        violated=[*found.broken],
    )
    judge(row, entry, None)
    return row


def judge(row: Row, entry: Entry, trace: int | None, *, pinned: bool = True) -> None:
    """Note what differs from the expected result. ``trace``: the states of the counter-example, if it is a shortest
    one. ``pinned``: compare the numbers too."""
    if row.expected == "holds":
        if row.violated:
            row.wrong.append(f"{row.violated[0]} does not hold")
        elif pinned and not row.stopped and entry.distinct is not None and entry.distinct != row.states:
            row.wrong.append(f"expected {entry.distinct:,} states, found {row.states:,}")
    elif not row.violated:
        if not row.stopped:
            row.wrong.append(f"{entry.breaks} holds, but should fail")
    elif entry.breaks not in row.violated and row.violated != [UNNAMED]:
        row.wrong.append(f"{row.violated[0]} failed, but {entry.breaks} should fail")
    elif pinned and entry.trace is not None and trace is not None and trace != entry.trace:
        row.wrong.append(f"expected a shortest counter-example of {entry.trace} states, found {trace}")


def check_tlc(entry: Entry, *, workers: int = 1, watch: Callable[[int, int], None] | None = None) -> Row:
    """Run TLC, and if the manifest asks for it (E1), compare its graph with the model's.

    Raises TlcMissing, TlcBroke.
    """
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="fencepost-dump-") as scratch:
        dump = Path(scratch) / "graph.dot" if entry.e1 and entry.has_model else None
        # A shortest counter-example needs breadth-first order, which several workers do not keep exactly.
        threads = workers if entry.expected == "holds" else 1
        module, cfg = files_for_tlc(entry, Path(scratch))
        run = run_tlc(
            module, cfg, workers=threads, deadlock=entry.deadlock, dump=dump, watch=watch,
            short=entry.short, include=(entry.module.parent,),
        )  # fmt: skip
        row = Row(
            entry.name,
            "tlc",
            entry.expected,
            entry.breaks,
            run.distinct,
            run.generated,
            run.depth,
            0.0,
            [run.violated] if run.violated else [],
        )
        judge(row, entry, len(run.trace) if run.kind == "invariant" else None)
        if dump is not None and run.violated is None:
            row.compared = True
            comparison = compare_with_model(entry, dump)
            if not comparison.equal:
                row.wrong.append("the graphs of specification and model differ")
                row.trace = [difference.text() for difference in comparison.differences[:2]]
        elif run.trace:
            row.trace, row.loop = _describe_tlc(run), run.loop
            row.steps = [Shown((step.action,) if step.action else (), step.state) for step in run.trace]
    row.seconds = time.monotonic() - began
    return row


def files_for_tlc(entry: Entry, scratch: Path) -> tuple[Path, Path]:
    """Return the module and the configuration for TLC; for a user's file, a complete one in the folder ``scratch``.
    Raises BadConfiguration for a Python file."""
    if not is_of_user(entry):
        return entry.module, entry.cfg
    if entry.cfg.suffix == ".py":
        raise BadConfiguration(f"{entry.cfg}: TLC reads .cfg files; explore a Python file with --engine python")
    cfg = scratch / "Own.cfg"
    rest = missing(read_cfg(entry.cfg), entry.module.parent)
    cfg.write_text("\n".join([entry.cfg.read_text(encoding="utf-8"), *rest, ""]), encoding="utf-8")
    beside = entry.cfg.resolve().with_suffix(".tla")
    return (beside if beside.is_file() else entry.module), cfg


def compare_with_model(entry: Entry, dump: Path) -> Comparison:
    """Compare TLC's graph in ``dump`` with the graph of the model: link E1."""
    problem = read_problem(entry)
    family = family_of(problem.config)
    left = read_dump(dump, family.variables)
    system = family.build(problem.config)
    found = explore(system, transitions=True)
    right = graph_over(family.makers(system), found.graph, left.numbers)
    return compare(left, right, ("the specification", "the model"))


def describe(trace: list[Step], loop: int | None = None) -> list[str]:
    """Return a trace with one line per step: the label, and where a lasso's loop begins."""
    lines = ["initial state"]
    lines += [" ".join(step.label or ()) for step in trace[1:]]
    if loop is not None:
        stays = loop == len(trace) - 1
        lines.append("nothing more happens, for ever" if stays else f"back to step {loop}, for ever")
    return lines


def _describe_tlc(run: TlcRun) -> list[str]:
    return ["initial state", *(step.action or "" for step in run.trace[1:])]
