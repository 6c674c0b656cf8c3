"""Rebalance storms (SCN-STORM-01, LIV-12): the safety properties hold during the storm, it has the expected shape, and
it ends."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fencepost.protocol.profiles import INTENDED
from fencepost_conformance.generate.simulate.plan import Disruption, Fault
from fencepost_conformance.generate.simulate.storm import draw_burst_storm, draw_slow_storm, most_rounds, simulate_storm
from fencepost_conformance.run.mutants.catalogue import MUTANTS
from fencepost_conformance.run.mutants.mutant import planted


@pytest.mark.parametrize("seeds", [range(4), range(4, 8)], ids=str)
def test_programs_that_are_too_slow_never_keep_a_stable_group(seeds):
    """During the storm the group is never Stable for longer than a poll interval, generations grow, and the storm ends
    (SCN-STORM-01)."""
    for seed in seeds:
        stormed = simulate_storm(draw_slow_storm(seed))
        assert stormed.report.broken is None, str(stormed.report)
        assert len(stormed.stable_ms) >= 3, seed
        assert stormed.storm_rounds >= 6, seed


@pytest.mark.parametrize("seeds", [range(start, start + 10) for start in (0, 10)], ids=str)
def test_bursts_of_crashes_and_restarts_break_nothing_and_settle(seeds):
    for seed in seeds:
        stormed = simulate_storm(draw_burst_storm(seed))
        assert stormed.report.broken is None, str(stormed.report)
        assert 0 < stormed.quiet_rounds <= most_rounds(stormed.report.plan)


def test_programs_that_are_quick_enough_make_no_storm():
    plan = draw_slow_storm(0)
    brief = replace(plan, disruptions=tuple(replace(each, amount=1_000) for each in plan.disruptions))
    assert simulate_storm(brief).report.broken.rule == "SCN-STORM-01"


def test_an_endless_storm_is_reported_by_its_rounds():
    plan = draw_burst_storm(1)
    more = tuple(Disruption(plan.chaos_ms + 1_000 * number, Fault.ENFORCE, number % 8, 0) for number in range(200))
    report = simulate_storm(replace(plan, disruptions=plan.disruptions + more)).report
    assert report.broken.rule == "LIV-05"
    assert "rounds since the storm ended" in report.broken.text


@pytest.mark.parametrize(
    ("draw", "mutant", "rules"),
    [
        (draw_slow_storm, "stall-only-resets", {"SCN-STORM-01", "K-HB-03"}),
        (draw_burst_storm, "generation-stays", {"INV-GEN-01"}),
        (draw_burst_storm, "eager-keeps-partitions", {"INV-CL-06"}),
    ],
    ids=["stall", "generation", "eager"],
)
def test_a_fault_shows_in_a_storm(draw, mutant, rules):
    with planted(MUTANTS[mutant]):
        reports = (simulate_storm(draw(seed, INTENDED)).report for seed in range(10))
        broken = next((report.broken for report in reports if report.broken is not None), None)
    assert broken is not None
    assert broken.rule in rules
