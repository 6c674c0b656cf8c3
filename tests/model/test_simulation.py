"""Random behaviours: what they find, how it is shortened, and how often each action was taken."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from fencepost_conformance.common.errors import CannotRun
from fencepost_conformance.run.commands.check_simulate import own_configurations, simulation
from fencepost_model.explore.graph import Step
from fencepost_model.explore.interface import Invariant, Label, PlainSystem, Properties, StepInvariant
from fencepost_model.explore.search import Violation
from fencepost_model.explore.walk import Stepper, WalkLimits, replay, shortened, walk
from fencepost_model.system.checking import explore_entry, ready
from fencepost_model.system.manifest import read_manifest
from fencepost_model.system.mutants import mutated
from fencepost_model.system.simulating import action_names, simulate_python, simulate_tlc
from fencepost_model.system.user_model import read_model, user_entry

SPEC: Final = Path(__file__).resolve().parents[2] / "spec"
ENTRIES: Final = {entry.name: entry for entry in read_manifest(SPEC)}
#: a planted fault: a cooperative leader withholds nothing
PLANTED: Final = "GivenBeforeReleased"
BROKEN: Final = "NoPartitionIsReassignedBeforeItIsReleased"
#: pinned, so that a test finds what it found before
SEED: Final = 1


@dataclass(frozen=True)
class Counter:
    """Counts up and down; three ups more than downs are too many, and so is a step that adds two."""

    most: int = 3

    def initial(self) -> list[int]:
        return [0]

    def actions(self, state: int) -> list[Label]:
        return [("Up",), ("Rest",), *([("Down",)] if state else [])]

    def step(self, state: int, action: Label) -> int:
        return state + {"Up": 1, "Down": -1, "Rest": 0}[action[0]]

    def properties(self) -> Properties:
        few = Invariant("Few", (0,), lambda state: state < self.most)
        slow = StepInvariant("Slow", (0,), lambda label, before, after: after[0] - before[0] < 2)
        return Properties((few,), (slow,))


def test_a_behaviour_that_breaks_a_property_is_found_and_shortened() -> None:
    system = PlainSystem(Counter())
    found = walk(system, SEED, WalkLimits(behaviours=50))
    assert found.violation is not None
    assert found.violation.property == "Few"
    assert found.found == len(found.violation.trace) > 4
    short = shortened(system, found.violation)
    assert [step.label for step in short.trace] == [None, ("Up",), ("Up",), ("Up",)]


def test_the_same_seed_gives_the_same_behaviours() -> None:
    limits = WalkLimits(behaviours=20, depth=30)
    one, two, other = (walk(PlainSystem(Counter(99)), seed, limits) for seed in (SEED, SEED, 2))
    assert one.taken == two.taken != other.taken
    assert (one.behaviours, one.violation) == (20, None)


def test_weights_choose_actions() -> None:
    limits = WalkLimits(behaviours=5, depth=50, weights={"Up": 0.0})
    found = walk(PlainSystem(Counter()), SEED, limits)
    assert found.taken["Up"] == 0
    assert found.violation is None


def test_a_step_that_changes_nothing_is_checked() -> None:
    @dataclass(frozen=True)
    class Lazy(Counter):
        def properties(self) -> Properties:
            return Properties(steps=(StepInvariant("NoRest", (0,), lambda label, *_: label != ("Rest",)),))

    found = walk(PlainSystem(Lazy()), SEED, WalkLimits(behaviours=1))
    assert found.violation is not None
    assert found.violation.property == "NoRest"


def test_a_replay_by_names_follows_every_step_of_an_action() -> None:
    stepper = Stepper(PlainSystem(Counter()))
    assert replay(stepper, "Few", [("Up",), ("Down",), ("Up",), ("Up",)]) is None
    assert replay(stepper, "Few", [("Down",)]) is None
    found = replay(stepper, "Few", [("Up",)] * 5)
    assert found is not None
    assert len(found) == 4  # the steps after the broken one are left out


def system_of_planted() -> Any:
    return ready(ENTRIES[PLANTED], read_model(ENTRIES[PLANTED]))[0]


def test_a_planted_fault_is_found_by_random_behaviours() -> None:
    row = simulate_python(ENTRIES[PLANTED], SEED, WalkLimits(seconds=300, behaviours=300))
    assert row.violated == [BROKEN]
    assert row.as_expected, row
    walked = row.walked
    assert walked is not None
    assert walked.violation is not None
    assert len(row.steps) == len(row.trace) == len(walked.violation.trace) <= walked.found
    labels = [step.label for step in walked.violation.trace if step.label is not None]
    with mutated(*read_model(ENTRIES[PLANTED]).problem.mutants):
        stepper = Stepper(system_of_planted())
        assert replay(stepper, BROKEN, labels) is not None
        for at in range(len(labels)):
            assert replay(stepper, BROKEN, [*labels[:at], *labels[at + 1 :]]) is None, f"step {at + 1} is not needed"


def test_a_fault_that_is_not_found_leaves_the_configuration_undecided() -> None:
    row = simulate_python(ENTRIES["KafkaTwoOwners"], SEED, WalkLimits(behaviours=1, depth=5))
    assert row.stopped.startswith("no behaviour broke NoPartitionHasTwoOwnersInAGeneration")
    assert not row.wrong


def test_actions_that_were_never_taken_are_named() -> None:
    row = simulate_python(ENTRIES["EagerQuiet"], SEED, WalkLimits(seconds=300, behaviours=1, depth=2))
    assert row.walked is not None
    assert {"CoordinatorHandlesSync", "AppendSucceeds"} < {*row.never}
    assert {*row.walked.taken} <= action_names(ENTRIES["EagerQuiet"], read_model(ENTRIES["EagerQuiet"]).problem.config)
    assert not {*row.walked.taken} & {*row.never}


@pytest.mark.all
@pytest.mark.parametrize("name", ["EagerQuiet", "SameInstance"])
def test_a_walk_takes_only_actions_of_the_specification(name: str) -> None:
    """Every action that an exploration takes is one of the specification's, so coverage misses none."""
    taken = explore_entry(ENTRIES[name])[1].taken
    assert {*taken} <= action_names(ENTRIES[name], read_model(ENTRIES[name]).problem.config)


@pytest.mark.all
@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("path", own_configurations(), ids=lambda path: path.stem)
def test_three_clients_and_four_faults_break_nothing(path: Path, seed: int) -> None:
    row = simulate_python(user_entry(path, SPEC), seed, WalkLimits(seconds=3600, behaviours=60))
    assert row.violated == [], row.trace
    assert row.walked is not None
    assert row.walked.behaviours == 60


@pytest.mark.tlc
@pytest.mark.all
def test_tlc_finds_a_planted_fault_by_random_behaviours(tlc: None) -> None:
    row = simulate_tlc(ENTRIES[PLANTED], SEED, WalkLimits(seconds=240, depth=60))
    assert row.violated == [BROKEN], row
    assert row.as_expected
    assert row.walked is not None
    assert 1 < len(row.trace) <= row.walked.found
    assert row.trace[1].split()[0] == "ClientStarts"


def test_a_violation_without_a_replay_stays_as_it_is() -> None:
    whole = Violation("deadlock", "deadlock", [Step(None, (0,))])
    assert shortened(PlainSystem(Counter()), whole) is whole


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"seed": 3}, "--seed needs --simulate"),
        ({"weight": ["Up=1"]}, "--weight needs --simulate"),
        ({"engine": "python", "weight": ["Up"]}, "--weight 'Up' is not ACTION=NUMBER, such as ClientCrashes=0.2"),
        ({"engine": "python", "weight": ["Up=-1"]}, "--weight 'Up=-1' is not ACTION=NUMBER"),
    ],
)
def test_options_that_do_not_fit_get_one_line(given: dict[str, Any], why: str) -> None:
    options: dict[str, Any] = {"engine": None, "seconds": None, "seed": None, "depth": None, "weight": None}
    with pytest.raises(CannotRun, match=why.replace("(", r"\(")):
        simulation(**options | given)
