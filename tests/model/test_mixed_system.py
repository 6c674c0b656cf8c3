"""The closed mixed group: same graph as in the specification (E1), every action reached, Kafka's faults found."""

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

from fencepost.protocol.events import Appended, TimerFired
from fencepost.protocol.profiles import INTENDED, KAFKA_4_3, KAFKA_4_4
from fencepost_model.explore.search import Limits, explore
from fencepost_model.system.checking import check_python, check_tlc, explore_entry
from fencepost_model.system.families import MIXED
from fencepost_model.system.manifest import read_manifest, read_problem
from fencepost_model.system.mixed.closed import GROUP, LOG, MixedSystem
from fencepost_model.system.mixed.config import SWITCHES, MixedConfig
from fencepost_model.system.mixed.machine import FIRST_LOG, compacted
from fencepost_model.system.values import Client as ClassicClient

ENTRIES = {entry.name: entry for entry in read_manifest(SPEC) if entry.module.stem in MIXED.modules}


# ---- E1 --------------------------------------------------------------------------------------------------------------


@pytest.mark.tlc
@pytest.mark.parametrize("name", ["MixedQuiet", "MixedCooperative"])
def test_the_two_graphs_are_the_same(name: str, tlc: None) -> None:
    row = check_tlc(ENTRIES[name], workers=2)
    assert (row.compared, row.wrong) == (True, [])


@pytest.mark.tlc
def test_a_change_of_the_model_alone_is_seen(tmp_path: Path, tlc: None) -> None:
    mutants = (
        "SyncAssignment <- SyncReturnsTarget",
        "ConvertedPartitions <- ConvertedWithoutPartitions",
        "StartedSessionTimers <- NoTimers",
    )
    check_changes_of_the_model(tmp_path, ENTRIES["MixedQuiet"], *mutants)


@pytest.mark.tlc
@pytest.mark.parametrize(
    "override",
    [
        'Policy = "disabled"',
        pytest.param("Interval = TRUE", marks=pytest.mark.all),
        pytest.param("Cooperative = TRUE", marks=pytest.mark.all),
    ],
)
def test_a_change_of_the_specification_alone_is_seen(override: str, tmp_path: Path, tlc: None) -> None:
    assert "the specification" in sides_of_a_changed_specification(tmp_path, ENTRIES["MixedQuiet"], override)


@pytest.mark.tlc
@pytest.mark.parametrize(
    "mutant",
    [
        "SyncAssignment <- SyncReturnsTarget",
        pytest.param("ConvertedPartitions <- ConvertedWithoutPartitions", marks=pytest.mark.all),
        pytest.param("StartedSessionTimers <- NoTimers", marks=pytest.mark.all),
    ],
)
def test_the_same_change_of_both_gives_the_same_graph_again(mutant: str, tmp_path: Path, tlc: None) -> None:
    check_the_same_change_of_both(tmp_path, ENTRIES["MixedQuiet"], mutant)


def test_an_empty_classic_group_does_not_show_its_former_members() -> None:
    """An empty classic group is the same whether its members left or it continues a consumer group (C-JOIN-60)."""
    config = read_problem(ENTRIES["MixedEpochsContinue"]).config
    assert isinstance(config, MixedConfig)
    coordinator = MixedSystem(config).coordinator
    fresh = coordinator.machine.load(FIRST_LOG)
    left = fresh._replace(group=fresh.group._replace(protocol_type="consumer"))
    (of_fresh, _), (of_left, _) = (coordinator.heartbeat(each, 0, ClassicClient()) for each in (fresh, left))
    assert of_left.memory == of_fresh.memory == fresh


# ---- what happens ----------------------------------------------------------------------------------------------------


def actions() -> set[str]:
    """Return the disjuncts of System and Environment."""
    text = (SPEC / "MixedGroup.tla").read_text(encoding="utf-8")
    parts = re.findall(r"^(?:System|Environment) ==\n((?:  \\/ .*\n)+)", text, re.MULTILINE)
    assert len(parts) == 2
    return set(re.findall(r"(?:\\/|:) (\w+)(?:\([\w, ]+\))?$", "".join(parts), re.MULTILINE))


EITHER, CLASSIC, CONSUMER = frozenset({"classic", "consumer"}), frozenset({"classic"}), frozenset({"consumer"})
ROLLS = MixedConfig(
    member_ids=("m1", "m2", "m3"), partitions=("p1",), instance_of=("i1",), starts_as=(EITHER, CONSUMER)
)
SHORT = replace(ROLLS, member_ids=("m1", "m2"))
RUNS: tuple[tuple[MixedConfig, set[str]], ...] = (
    (ROLLS, {"ClientGivesUp", "RequestLost", "RequestDuplicated", "ReplyLost", "CoordinatorFailsOver"}),
    (ROLLS, {"SessionTimerFiresEarly", "RebalanceTimerFiresEarly", "MemberJoinTimerFiresEarly"}),
    (ROLLS, {"MemberSyncTimerFiresEarly"}),
    (replace(SHORT, interval=True), {"ClientCrashes", "SyncTimerFiresEarly"}),
    (replace(SHORT, instance_of=(), starts_as=(CLASSIC, CLASSIC)), {"ClientLeaves", "JoinTimerFiresEarly"}),
    (replace(SHORT, starts_as=(CLASSIC, CONSUMER)), {"ClientLeaves", "ClientCommits"}),
)


def test_every_action_is_reached() -> None:
    reached = set()
    for config, faults in RUNS:
        system = MixedSystem(replace(config, faults=1, allowed=frozenset({"ClientStarts", *faults})))
        reached |= {label[0] for _, label, _, _ in explore(system, transitions=True).graph.transitions()}
    assert reached == actions()


def test_every_transition_carries_the_stimuli_of_the_coordinator() -> None:
    """Product exploration needs this: the events, replayed on the coordinator, give the group of the next state."""
    config = read_problem(ENTRIES["KafkaStarves"]).config
    assert isinstance(config, MixedConfig)
    system = MixedSystem(replace(config, profile=INTENDED))
    machine = system.coordinator.machine
    graph = explore(system, transitions=True).graph
    seen = set()
    for source, label, events, target in graph.transitions():
        before: tuple[Any, ...] = graph.state(source)
        after: tuple[Any, ...] = graph.state(target)
        if events is None:
            assert label[0] in ("IntervalPasses", "ClientStarts") or label[0].startswith("Client")
            assert before[LOG] == after[LOG]
            continue
        seen |= {type(event) for event in events}
        memory = before[GROUP]
        if isinstance(events[0], TimerFired):
            kind, member_id = events[0].key.kind, events[0].key.member_id
            memory = memory._replace(timers=memory.timers - {(kind, member_id)})
        ids = (*config.member_ids, "")
        found = [
            result
            for new_id in ("", ids[before[2].ids_used])
            for result in machine.step(memory, events[0], new_id)
            if result.memory == after[GROUP] and compacted(before[LOG], result.records) == after[LOG]
        ]
        assert found
        assert found[0].events == events
    assert {Appended, TimerFired} <= seen


# ---- faults ----------------------------------------------------------------------------------------------------------

FAULTS = {
    "KafkaUpgradeFails": {"fault_upgrade_without_protocol"},
    "KafkaUpgradeDisturbs": {"fault_upgrade_answers_before_checks"},
    "KafkaUpgradeWithoutBump": {"fault_upgrade_without_bump"},
    "KafkaUpgradeLeavesPartitions": {"fault_upgrade_without_bump"},
    "KafkaStarves": {"fault_classic_members_starve"},
    "KafkaDowngradeOwes": {"fault_downgrade_owes"},
    "KafkaDowngradeStarves": {"fault_downgrade_owes"},
    "KafkaDowngradeLosesBump": {"fault_downgrade_loses_bump"},
    "KafkaLeavesJoinTimers": {"fault_downgrade_leaves_timers"},
    "KafkaLeavesSyncTimers": {"fault_downgrade_leaves_timers"},
    "KafkaFencedRejoins": {"fault_join_generation_ignored"},
    "KafkaDuplicateJoin": {"fault_join_generation_ignored"},
    "KafkaDowngradeForgets": {"fault_downgrade_assigns_target"},
    "KafkaDowngradeAndUpgrade": {"fault_downgrade_assigns_target", "fault_join_generation_ignored"},
    "KafkaUpgradeOverlooks": {"fault_upgrade_overlooks_owned"},
    "KafkaEpochsRepeat": {"fault_empty_group_counts_anew"},
}


def test_every_fault_of_mixed_groups_has_its_configuration() -> None:
    assert set[str]().union(*FAULTS.values()) == {*SWITCHES}
    assert {name for name in ENTRIES if name.startswith("Kafka")} == {*FAULTS}


@pytest.mark.parametrize(
    "name",  # KafkaDowngradeOwes has the same switch as the one that takes longest
    [pytest.param(name, marks=[pytest.mark.all] if name == "KafkaDowngradeStarves" else []) for name in FAULTS],
)
def test_a_fault_of_kafka_is_found_with_its_switch_and_gone_without(name: str) -> None:
    """``test_explore_configurations`` explores the small configurations, with their switch and without."""
    entry = ENTRIES[name]
    switches = dict.fromkeys(FAULTS[name], True)
    assert read_problem(entry).config.profile == replace(INTENDED, **switches)  # type: ignore[arg-type]
    if entry.size == "small":
        return
    assert check_python(entry).wrong == []
    _, found = explore_entry(entry, profile=INTENDED, limits=Limits(states=70_000))
    assert found.violations == []
    assert found.complete or found.depth > (entry.trace or found.depth)  # breadth first: no trace is as short


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_of_kafka_is_found_under_the_profile_of_the_release(name: str) -> None:
    """Both releases have the same switches for mixed groups, so each profile finds the fault."""
    assert check_python(ENTRIES[name], profile=KAFKA_4_4).violated == [ENTRIES[name].breaks]


def test_the_newest_releases_have_the_same_faults_of_mixed_groups() -> None:
    assert all(getattr(KAFKA_4_3, switch) and getattr(KAFKA_4_4, switch) for switch in SWITCHES)
