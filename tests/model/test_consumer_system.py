"""The closed consumer group: same graph as in the specification (E1), every action reached, Kafka's faults found."""

from __future__ import annotations

import re
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

from fencepost.protocol.profile import Profile
from fencepost.protocol.profiles import INTENDED, KAFKA_4_3, KAFKA_4_4
from fencepost_model.consumer import ConsumerGroupModel, Environment
from fencepost_model.explore.search import explore
from fencepost_model.system.checking import check_python, check_tlc, explore_entry
from fencepost_model.system.consumer.closed import COUNTERS, GROUP, ConsumerSystem
from fencepost_model.system.consumer.config import ConsumerConfig
from fencepost_model.system.consumer.coordinator import TargetOracle
from fencepost_model.system.consumer.translate import NOW, Translation
from fencepost_model.system.families import CONSUMER
from fencepost_model.system.manifest import read_manifest, read_problem

ENTRIES = {entry.name: entry for entry in read_manifest(SPEC) if entry.module.stem in CONSUMER.modules}


# ---- E1 --------------------------------------------------------------------------------------------------------------


@pytest.mark.tlc
@pytest.mark.parametrize("name", ["ConsumerQuiet", "ConsumerAlone", "ConsumerSharedInstance"])
def test_the_two_graphs_are_the_same(name: str, tlc: None) -> None:
    row = check_tlc(ENTRIES[name], workers=2)
    assert row.compared
    assert row.as_expected, row


@pytest.mark.tlc
@pytest.mark.slow
@pytest.mark.all
@pytest.mark.parametrize("name", ["ConsumerTimers", "ConsumerGrowth", "ConsumerTimersCommits"])
def test_more_graphs_are_the_same(name: str, tlc: None) -> None:
    row = check_tlc(ENTRIES[name], workers=2)
    assert (row.compared, row.wrong) == (True, [])


@pytest.mark.tlc
def test_a_change_of_the_model_alone_is_seen(tmp_path: Path, tlc: None) -> None:
    mutants = ("Confirms <- AlwaysConfirms", "StillRevoking <- RevokesForever", "SentAtOnce <- AllSentAtOnce")
    check_changes_of_the_model(tmp_path, ENTRIES["ConsumerQuiet"], *mutants)


@pytest.mark.tlc
@pytest.mark.parametrize(
    "override",
    [
        "Interval = TRUE",
        pytest.param("SlowAppends = FALSE", marks=pytest.mark.all),
        pytest.param("FirstParts = 1", marks=pytest.mark.all),
    ],
)
def test_a_change_of_the_specification_alone_is_seen(override: str, tmp_path: Path, tlc: None) -> None:
    assert "the specification" in sides_of_a_changed_specification(tmp_path, ENTRIES["ConsumerQuiet"], override)


@pytest.mark.tlc
@pytest.mark.parametrize(
    "mutant",
    [
        "Confirms <- AlwaysConfirms",
        pytest.param("MustRevoke <- NeverMustRevoke", marks=pytest.mark.all),
        pytest.param("IncludesAssignment <- IncludesAssignmentIfFull", marks=pytest.mark.all),
        pytest.param("SentAtOnce <- AllSentAtOnce", marks=pytest.mark.all),
    ],
)
def test_the_same_change_of_both_gives_the_same_graph_again(mutant: str, tmp_path: Path, tlc: None) -> None:
    check_the_same_change_of_both(tmp_path, ENTRIES["ConsumerQuiet"], mutant)


# ---- what happens ----------------------------------------------------------------------------------------------------


def actions() -> set[str]:
    """Return the disjuncts of System and Environment."""
    text = (SPEC / "ConsumerGroup.tla").read_text(encoding="utf-8")
    parts = re.findall(r"^(?:System|Environment) ==\n((?:  \\/ .*\n)+)", text, re.MULTILINE)
    assert len(parts) == 2
    return set(re.findall(r"(?:\\/|:) (\w+)(?:\(\w\))?$", "".join(parts), re.MULTILINE))


def test_every_action_is_reached_in_a_configuration_that_is_compared() -> None:
    reached = set()
    for name in ("ConsumerAlone", "ConsumerLostLeaves", "ConsumerTimers", "ConsumerTimersCommits"):
        assert ENTRIES[name].e1
        graph = explore_entry(ENTRIES[name], transitions=True)[1].graph
        reached |= {label[0] for _, label, _, _ in graph.transitions()}
    assert reached == actions()


def test_every_transition_carries_the_stimuli_of_the_machine() -> None:
    """Product exploration needs this: the step, replayed on the group machine, gives the group of the next state."""
    config = read_problem(ENTRIES["ConsumerAlone"]).config
    assert isinstance(config, ConsumerConfig)
    system = ConsumerSystem(config)
    graph = explore(system, transitions=True).graph
    translation = Translation(config.partitions)
    machine = ConsumerGroupModel(system.coordinator.settings, config.profile)
    seen = set()
    for source, label, step, target in graph.transitions():
        before: tuple[Any, ...] = graph.state(source)
        after: tuple[Any, ...] = graph.state(target)
        group, existing = before[GROUP], before[COUNTERS].existing
        if step is None:
            assert group.hard == after[GROUP].hard or label[0] == "CoordinatorFailsOver"
            continue
        seen.add(label[0])
        environment = Environment(NOW, translation.image(existing), oracle=TargetOracle())
        (found,) = machine.successors(translation.group(group.hard, group.blocked), step, environment)
        assert found.group is not None
        refused = label[0] in {"AppendFails", "LeaveAppendFails"}
        assert after[GROUP].hard == (group.hard if refused else translation.hard(found.group))
    assert {"CoordinatorHandlesHeartbeat", "CoordinatorHandlesLeave", "SessionTimerFires", "AppendFails"} <= seen


# ---- faults ----------------------------------------------------------------------------------------------------------

FAULTS = {
    "KafkaBlocksItself": "fault_static_rejoin_unreleased",
    "KafkaNewInstanceStarves": "fault_new_instance_has_no_target",
    "KafkaDanglingInstance": "fault_relabelled_instance_stays",
    "KafkaUnknownInstance": "fault_relabelled_instance_stays",
    "LostLeave": "fault_failed_append_loses_timers",
    "LostTimer": "fault_failed_append_loses_timers",
    "LateJoin": "fault_rejoin_confirms_revocation",
    "OldJoinIsFenced": "old_known_member_at_zero_fenced",
    "OldRevocationCounts": "old_revocation_advances_epoch",
    "OldEmptiedWaits": "old_emptied_group_keeps_target_epoch",
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_of_kafka_is_found_with_its_switch_and_gone_without(name: str) -> None:
    """``test_explore_configurations`` explores the small configurations with their switch."""
    entry = ENTRIES[name]
    switched = replace(INTENDED, **{FAULTS[name]: True})  # type: ignore[arg-type]  # a switch, so a bool
    assert read_problem(entry).config.profile == switched
    if entry.size != "small":
        assert check_python(entry).wrong == []
    assert check_python(entry, profile=INTENDED).violated == []


@pytest.mark.parametrize("profile", [KAFKA_4_3, KAFKA_4_4], ids=lambda profile: profile.name)
@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_of_kafka_is_found_under_the_profile_of_the_release(name: str, profile: Profile) -> None:
    breaks = [ENTRIES[name].breaks] if getattr(profile, FAULTS[name]) else []
    assert check_python(ENTRIES[name], profile=profile).violated == breaks
