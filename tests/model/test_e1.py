"""Link E1: specification and model have the same reachable states and the same labelled transitions.

A comparison that cannot fail proves nothing, so each side is also changed alone, and the comparison must notice it.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from graphs import (
    SPEC,
    check_changes_of_the_model,
    check_the_same_change_of_both,
    sides_of_a_changed_specification,
)

from fencepost.protocol.profiles import INTENDED
from fencepost_model.explore.search import explore
from fencepost_model.system.checking import check_tlc, explore_entry
from fencepost_model.system.closed import ClosedSystem
from fencepost_model.system.config import Config
from fencepost_model.system.families import family_of
from fencepost_model.system.manifest import read_manifest, read_problem
from fencepost_model.system.variables import graph_over, values_in
from fencepost_model.tlc.dump import ValueNumbers

ENTRIES = {entry.name: entry for entry in read_manifest(SPEC)}


@pytest.mark.tlc
@pytest.mark.parametrize(
    "name", ["EagerQuiet", "StaticCommits", pytest.param("StaticCrowded", marks=pytest.mark.all)]
)  # the last one is the second without its commits
def test_the_two_graphs_are_the_same(name: str, tlc: None) -> None:
    row = check_tlc(ENTRIES[name], workers=2)
    assert row.compared
    assert row.as_expected, row


@pytest.mark.tlc
def test_a_change_of_the_model_alone_is_seen(tmp_path: Path, tlc: None) -> None:
    mutants = ("RemovePendingSync <- CancelSyncTimerForAll", "NextGeneration <- SameGeneration")
    check_changes_of_the_model(tmp_path, ENTRIES["EagerQuiet"], *mutants)


@pytest.mark.tlc
def test_a_change_of_the_specification_alone_is_seen(tmp_path: Path, tlc: None) -> None:
    sides = sides_of_a_changed_specification(
        tmp_path, ENTRIES["EagerQuiet"], "NewMemberAddedAfterJoinPhase <- NewMemberAddedSurvives", "DelayWindows = 1"
    )
    assert sides == {"the specification", "the model"}


@pytest.mark.tlc
@pytest.mark.parametrize(
    "mutant",
    [
        "RemovePendingSync <- CancelSyncTimerForAll",
        pytest.param("HandleSync <- HandleSyncAnsweredEarly", marks=pytest.mark.all),
        pytest.param("FailParkedSyncs <- ForgetParkedSyncs", marks=pytest.mark.all),
    ],
)
def test_the_same_change_of_both_gives_the_same_graph_again(mutant: str, tmp_path: Path, tlc: None) -> None:
    check_the_same_change_of_both(tmp_path, ENTRIES["EagerQuiet"], mutant)


@pytest.mark.parametrize("name", ["StaticCrowded", "ConsumerAlone", "KafkaStarves", "LogThreeBrokers", "OffsetsQuiet"])
def test_the_abstraction_tells_all_states_apart_and_agrees_with_itself(name: str) -> None:
    system, found = explore_entry(ENTRIES[name], profile=INTENDED, transitions=True)
    family = family_of(system.config)
    makers = family.makers(system)
    graph = graph_over(makers, found.graph, ValueNumbers(family.variables))
    assert len({*graph.states}) == found.states
    for number in range(0, found.states, max(97, found.states // 50)):
        assert graph.numbers.state(graph.states[number]) == values_in(makers, found.graph.state(number))


def test_every_transition_carries_the_stimuli_of_the_coordinator() -> None:
    """Product exploration with the core needs this: stimuli, replayed on the group machine, give the next group."""
    config = read_problem(ENTRIES["EagerQuiet"]).config
    assert isinstance(config, Config)
    system = ClosedSystem(replace(config, faults=1, allowed=config.allowed | {"CoordinatorFailsOver"}))
    graph = explore(system, transitions=True).graph
    seen = set()
    for source, label, stimuli, target in graph.transitions():
        before: tuple[Any, ...] = graph.state(source)
        after: tuple[Any, ...] = graph.state(target)
        if stimuli is None:
            assert label[0].startswith("Client")
            continue
        seen |= {kind for kind, _ in stimuli}
        inputs = [each for kind, each in stimuli if kind != "Loaded"]
        if stimuli[-1][0] == "Loaded":
            assert system.coordinator.load(stimuli[-1][1].record) == after[0]
        else:
            assert system.coordinator.step(before[0], *inputs).group == after[0]
    assert seen == {"Arrive", "Fire", "Durable", "Lose", "Loaded"}
