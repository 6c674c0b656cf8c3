"""Whole groups keep the properties and settle; the simulation reaches its states; a fault prints a short
reproduction."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace

import pytest

from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.profiles import KAFKA_4_3
from fencepost.protocol.view import GroupState
from fencepost_conformance.generate.simulate import draw_plan, simulate
from fencepost_conformance.generate.simulate.plan import ANY
from fencepost_conformance.generate.simulate.run import Simulation
from fencepost_conformance.run.mutants.catalogue import MUTANTS
from fencepost_conformance.run.mutants.mutant import planted


@pytest.mark.parametrize("seeds", [range(start, start + 15) for start in range(1_000, 1_075, 15)], ids=str)
def test_groups_hold_their_properties_and_settle(seeds):
    for seed in seeds:
        report = simulate(draw_plan(seed))
        assert report.broken is None, str(report)


def test_a_seed_names_the_same_run():
    assert simulate(draw_plan(7)) == simulate(draw_plan(7))


def test_simulations_reach_every_state_and_the_errors_of_the_protocol(monkeypatch):
    states, errors, faults, listeners = Counter(), Counter(), Counter(), Counter()
    feed, note = Simulation.feed, Simulation.note

    def watched_feed(self, event):
        feed(self, event)
        states.update(group.state for group in self.core.groups.values())

    def watched_note(self, text):
        note(self, text)
        errors.update(re.findall(r"Response ([A-Z_]+)", text))
        listeners.update(re.findall(r"listener (returns|throws)$", text.split(" →")[0]))

    monkeypatch.setattr(Simulation, "feed", watched_feed)
    monkeypatch.setattr(Simulation, "note", watched_note)
    for seed in range(40):
        plan = draw_plan(seed)
        faults.update(each.fault for each in plan.disruptions)
        simulate(plan)
    assert set(states) == set(GroupState) - {GroupState.DEAD}  # Dead begins and ends within one step
    assert set(faults) == set(ANY)
    assert set(listeners) == {"returns", "throws"}
    expected = {
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.REBALANCE_IN_PROGRESS,
        ErrorCode.MEMBER_ID_REQUIRED,
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
    }
    assert {error.name for error in expected} <= set(errors)


def test_faults_of_kafka_are_found():
    """Under the profile of a release the simulation fails: the old id of a replaced member stays in pending-sync."""
    reports = (simulate(draw_plan(seed, KAFKA_4_3)) for seed in range(200))
    rules = (report.broken.rule for report in reports if report.broken is not None)
    assert "INV-MEM-07" in rules  # C-STATIC-16


@pytest.mark.parametrize(
    ("mutant", "rule"),
    [
        ("two-members-get-the-list", "INV-JOIN-01"),
        ("generation-stays", "INV-GEN-01"),
        ("eager-keeps-partitions", "INV-CL-06"),
    ],
)
def test_a_failure_prints_its_seed_and_its_schedule(mutant, rule):
    with planted(MUTANTS[mutant]):
        report = next(report for seed in range(20) if (report := simulate(draw_plan(seed))).broken)
        bare = simulate(replace(report.plan, disruptions=report.plan.disruptions[:1]))
    text = str(report)
    assert report.broken.rule == rule
    assert f"seed {report.plan.seed}:" in text
    assert f"broken: {rule}" in text
    assert "schedule:" in text
    assert len(text.splitlines()) < 60
    assert bare.broken is not None
