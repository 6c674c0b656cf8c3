"""Every small configuration of the manifest, explored by the model: verdicts, counts, lengths of counter-examples."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest

from fencepost.protocol.profiles import INTENDED
from fencepost_model.explore.interface import successors, visible
from fencepost_model.system.checking import check_python, explore_entry
from fencepost_model.system.config import profile_of
from fencepost_model.system.constants import evaluate, read_definitions
from fencepost_model.system.manifest import BadManifest, Entry, read_manifest, read_problem

SPEC = Path(__file__).parents[2] / "spec"
ENTRIES = [entry for entry in read_manifest(SPEC) if entry.has_model]
SMALL = [entry for entry in ENTRIES if entry.size == "small"]
KAFKA = [entry for entry in SMALL if entry.name.startswith("Kafka")]


@pytest.mark.parametrize("entry", SMALL, ids=lambda entry: entry.name)
def test_the_configuration_gives_the_result_in_the_manifest(entry: Entry) -> None:
    assert check_python(entry).wrong == []


@pytest.mark.parametrize(
    "entry",
    [
        pytest.param(entry, id=entry.name, marks=[] if entry.name == "MixedTakenWhileHeld" else pytest.mark.all)
        for entry in ENTRIES
        if entry.size == "medium" and entry.expected == "violates"
    ],
)
def test_a_larger_configuration_has_the_counter_example_in_the_manifest(entry: Entry) -> None:
    """The counter-example is shown with its states. Its last state may be one that no coordinator can load."""
    row = check_python(entry)
    assert row.wrong == []
    assert len(row.steps) == entry.trace


@pytest.mark.parametrize("entry", KAFKA, ids=lambda entry: entry.name)
def test_the_intended_profile_has_none_of_kafkas_faults(entry: Entry) -> None:
    row = check_python(entry, profile=INTENDED)
    assert (row.as_expected, row.violated) == (True, [])


@pytest.mark.parametrize("name", ["EagerQuiet", "ConsumerQuiet", "ConsumerReturns"])
def test_a_step_property_holds_where_it_is_not_asked(name: str) -> None:
    """A step property holds between two states whose relevant parts are equal, whatever the label."""
    system, found = explore_entry(next(each for each in SMALL if each.name == name), transitions=True)
    rng = Random(name)
    states = [visible(system, found.graph.state(rng.randrange(found.states))) for _ in range(3_000)]
    labels = list({label for _, label, _, _ in found.graph.transitions()})
    asked = 0
    for step in system.properties.steps:
        alike: dict[tuple[Any, ...], list[tuple[Any, ...]]] = {}
        asked_of = [each for each in labels if not step.actions or each[0] in step.actions]
        for state in states if step.changed and asked_of else ():  # an action may not occur here
            alike.setdefault(tuple(state[each] for each in step.changed), []).append(state)
        for group in alike.values():
            for before, after in zip(group, rng.sample(group, len(group)), strict=True):
                label = rng.choice(asked_of)
                assert step.holds(label, *(tuple(each[at] for at in step.reads) for each in (before, after))), step.name
                asked += before != after
    assert asked > 1_000


def test_symmetry_of_the_closed_system_counts_classes_and_keeps_verdicts() -> None:
    broken_by = {
        "EagerQuiet": None,
        "WitnessStable": "TheGroupIsNeverStable",
        "SameGeneration": "EveryJoinPhaseEndsInANewGeneration",
    }
    for name, broken in broken_by.items():
        entry = next(each for each in SMALL if each.name == name)
        system, whole = explore_entry(entry)
        _, folded = explore_entry(entry, symmetry=True)
        assert [(each.property, len(each.trace)) for each in folded.violations] == [
            (each.property, len(each.trace)) for each in whole.violations
        ]
        assert [each.property for each in folded.violations] == ([broken] if broken else [])
        if broken is None:
            states = {whole.graph.state(number) for number in range(whole.states)}
            classes = {
                frozenset(
                    [state] + [tuple(each.rename(at, state[at]) for at in each.source) for each in system.symmetry]
                )
                for state in states
            }
            assert folded.states == len(classes) < len(states)
            assert frozenset().union(*classes) == states


def test_a_counter_example_is_a_run_of_the_model() -> None:
    entry = next(each for each in SMALL if each.name == "KafkaReplacedPending")
    system, found = explore_entry(entry)
    (violation,) = found.violations
    for before, after in pairwise(violation.trace):
        assert (after.label, after.state) in {(o.label, state) for o, state in successors(system, before.state)}


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_every_configuration_can_be_read(entry: Entry) -> None:
    problem = read_problem(entry)
    assert problem.config.allowed
    assert bool(problem.mutants) == entry.module.stem.endswith("Mutants")


def test_bounds_are_read_from_the_module() -> None:
    definitions = read_definitions(SPEC / "MCClassicGroup.tla")
    assert evaluate("FirstStatic", definitions, ["c1", "c2"]) == {"c1": "i1", "c2": ""}
    assert evaluate("TwoIds", definitions) == ("m1", "m2")
    assert {"ReplyLost", "ClientStarts", "AppendFails"} <= evaluate("AllFaults", definitions)


def test_a_broken_manifest_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadManifest, match=r"manifest\.json"):
        read_manifest(tmp_path)
    (tmp_path / "manifest.json").write_text('{"configurations": [{"name": "X"}]}')
    with pytest.raises(BadManifest, match="module"):
        read_manifest(tmp_path)


def test_a_line_outside_of_every_section_is_named(tmp_path: Path) -> None:
    entry = read_manifest(SPEC)[0]
    broken = tmp_path / "Broken.cfg"
    broken.write_text("Clients <- Two\nCONSTANTS\n")
    with pytest.raises(BadManifest, match=r"Broken\.cfg:1: 'Clients <- Two' comes before"):
        read_problem(replace(entry, cfg=broken))


def test_a_switch_that_no_profile_has_is_named() -> None:
    with pytest.raises(ValueError, match="not a switch of the profiles: fault_of_nobody"):
        profile_of({"fault_of_nobody": True, "Faults": 1})
