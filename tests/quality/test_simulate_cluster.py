"""Coordinators move between brokers while members, commits and transactions run: the properties hold, and faults are
found."""

from __future__ import annotations

from collections import Counter

import pytest

from fencepost_conformance.generate.simulate.cluster import draw_cluster_plan, simulate_cluster
from fencepost_conformance.run.mutants.replacement import Replacement, in_place
from fencepost_conformance.run.seeds import seed_of_run

SEEDS = range(12)


def test_every_property_holds_and_many_events_occur() -> None:
    """F-SURV-01, F-CONS-07, F-LOAD-01, INV-FENCE-02, INV-COMMIT-02, INV-TXN-01, LIV-05."""
    counts: Counter[str] = Counter()
    for seed in SEEDS:
        report = simulate_cluster(draw_cluster_plan(seed))
        assert report.broken is None, str(report)
        counts.update(report.counts)
    least = {"elections": 60, "stale_appends": 3, "truncations": 3, "compactions": 15, "loads_with_a_tail": 3}
    least |= {"commits": 3_000, "reads": 300, "transactions": 30, "rows": 800, "unstable": 5}
    assert {name: counts[name] for name, number in least.items() if counts[name] < number} == {}


def test_a_seed_names_the_same_run() -> None:
    assert simulate_cluster(draw_cluster_plan(3)) == simulate_cluster(draw_cluster_plan(3))


def test_a_seed_of_this_run() -> None:
    seed = seed_of_run()
    for each in range(seed, seed + 3):
        report = simulate_cluster(draw_cluster_plan(each))
        assert report.broken is None, str(report)


@pytest.mark.all
@pytest.mark.parametrize("first", range(1_000, 1_400, 20))
def test_many_clusters(first: int) -> None:
    for seed in range(first, first + 20):
        report = simulate_cluster(draw_cluster_plan(seed))
        assert report.broken is None, str(report)


#: A fault, and the property that it breaks.
FAULTS = {
    "a commit of a fenced client is accepted": (
        Replacement(
            "coordinator/offsets/validation.py", "_require_generation", "who.epoch != group.generation", "False"
        ),
        "INV-FENCE-02",
    ),
    "an offset that is pending is shown": (
        Replacement("coordinator/offsets/offset_appliers.py", "change", "elif producer is None:", "elif True:"),
        "INV-TXN-01",
    ),
    "a fetch of several groups asks for no stable offsets": (
        Replacement("host/parts.py", "split", "require_stable=body.require_stable", "require_stable=False"),
        "O-FETCH-08",
    ),
    "every fetch asks for stable offsets": (
        Replacement("host/parts.py", "split", "require_stable=body.require_stable", "require_stable=True"),
        "O-FETCH-08",
    ),
    "unreplicated records of the leader count as replicated": (
        Replacement("log/partition.py", "high_watermark", "min((log.end, *in_sync))", "log.end"),
        "F-SURV-01",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_found(name: str) -> None:
    fault, rule = FAULTS[name]
    found = []
    with in_place([fault]):
        for seed in range(40):
            report = simulate_cluster(draw_cluster_plan(seed))
            if report.broken is not None:
                found.append(report.broken.rule)
                break
    assert found == [rule]
