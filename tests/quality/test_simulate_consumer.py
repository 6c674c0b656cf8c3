"""KIP-848 members agree with their model; whole groups of them keep the properties and settle; a fault is found."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random

import pytest

from fencepost.member.consumer import ConsumerSettings, ConsumerState
from fencepost.protocol.events import Request
from fencepost.protocol.profiles import INTENDED, KAFKA_4_3, KAFKA_4_4, PROFILES
from fencepost_conformance.generate.simulate import simulate
from fencepost_conformance.generate.simulate.consumer_pair import ConsumerPair
from fencepost_conformance.generate.simulate.consumer_plan import draw_consumer_plan
from fencepost_conformance.generate.simulate.pairs import explore_pairs
from fencepost_conformance.generate.simulate.plan import ANY
from fencepost_conformance.generate.simulate.run import Simulation
from fencepost_conformance.run.mutants.catalogue import MUTANTS
from fencepost_conformance.run.mutants.consumer_member_checks import choose
from fencepost_conformance.run.mutants.mutant import planted
from fencepost_conformance.targets.core import CoreSession


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"auto_commit": True, "server_assignor": "range"},
        {"listener": False, "group_instance_id": "i"},
        {"version": 0, "rack": "r"},
    ],
    ids=str,
)
def test_member_and_its_model_agree(settings):
    explored = explore_pairs(ConsumerPair(ConsumerSettings("g", **settings)), 6_000)
    assert explored.problem is None, (explored.trail, explored.problem)
    assert explored.states > 1_000


@pytest.mark.parametrize("profile", PROFILES.values(), ids=list(PROFILES))
def test_member_and_its_model_agree_far_from_the_start_and_reach_every_state(profile):
    states = Counter()
    for seed in range(60):
        rng = Random(f"{profile.name} {seed}")
        settings = ConsumerSettings(
            "g",
            group_instance_id=rng.choice([None, "i"]),
            auto_commit=rng.random() < 0.4,
            listener=rng.random() < 0.8,
            profile=profile,
        )
        pair = ConsumerPair(settings)
        for _ in range(60):
            inputs = pair.inputs()
            if not inputs:
                break
            pair = pair.after(choose(rng, inputs))
            states[pair.member.state] += 1
    assert set(states) >= set(ConsumerState) - {ConsumerState.LEAVING}
    # Passed within one step, except by a member that must stay in the group and leaves nevertheless (N-HB-09).
    assert ConsumerState.LEAVING not in states or profile.fault_remaining_member_leaves


#: In the last ones, a copy of a heartbeat gets the only answer with an assignment (docs/divergences.md).
COPIES = (2_056, 100_513, 100_811)
SEEDS = [*(range(start, start + 12) for start in range(2_000, 2_048, 12)), range(2_060, 2_072), (5_221,), COPIES]


@pytest.mark.parametrize("seeds", SEEDS, ids=str)
def test_groups_hold_their_properties_and_settle(seeds):
    for seed in seeds:
        report = simulate(draw_consumer_plan(seed))
        assert report.broken is None, str(report)


def test_a_seed_names_the_same_run():
    assert simulate(draw_consumer_plan(7)) == simulate(draw_consumer_plan(7))


#: A seed in which a member that owns partitions is fenced.
FENCED = 78


def test_simulations_reach_states_errors_and_disruptions(monkeypatch):
    seen, faults = Counter(), Counter()
    note = Simulation.note

    def watched(self, text):
        note(self, text)
        seen.update(word for word in text.replace("→", " ").split() if word.isupper() or word.istitle())

    monkeypatch.setattr(Simulation, "note", watched)
    for seed in (*range(30), FENCED):
        plan = draw_consumer_plan(seed)
        faults.update(each.fault for each in plan.disruptions)
        simulate(plan)
    assert set(faults) == set(ANY)
    for name in ("NONE", "FENCED_MEMBER_EPOCH", "UNRELEASED_INSTANCE_ID", "NOT_COORDINATOR"):
        assert seen[name], name
    for state in ("Joining", "Reconciling", "Stable", "Fenced", "Stale", "Fatal"):
        assert seen[state], state


@pytest.mark.parametrize(
    ("mutant", "rule"),
    [
        ("acknowledged-before-revoked", "INV-KIP-09"),
        ("consumer-poll-interval-not-watched", "N-TR-09"),
        ("joins-while-fenced", "N-TR-06"),
    ],
)
def test_a_fault_breaks_a_property_of_the_group(mutant, rule):
    with planted(MUTANTS[mutant]):
        reports = (simulate(draw_consumer_plan(seed)) for seed in (*range(30), FENCED))
        rules = {report.broken.rule for report in reports if report.broken}
    assert rule in rules


def test_a_new_member_must_learn_its_assignment(monkeypatch):
    """An answer without it hides a change from nothing to all partitions (INV-KIP-15)."""
    feed, joins = CoreSession.feed, set()

    def without_assignment(self, event):
        if isinstance(event, Request) and getattr(event.body, "member_epoch", None) == 0:
            joins.add(event.id)
        seen = feed(self, event)
        replies = [
            replace(each, body=replace(each.body, assignment=None)) if each.request_id in joins else each
            for each in seen.replies
        ]
        return replace(seen, replies=tuple(replies))

    monkeypatch.setattr(CoreSession, "feed", without_assignment)
    broken = simulate(draw_consumer_plan(0)).broken
    assert broken is not None
    assert broken.rule == "INV-KIP-15"
    assert "had set(), has {" in str(broken)


def test_partitions_that_kafkas_client_does_not_report_go_to_a_second_member():
    """Kafka's client sends a full heartbeat while the assigned callback runs (N-HB-05)."""
    report = simulate(draw_consumer_plan(52, replace(INTENDED, fault_pending_partitions_unreported=True)))
    assert report.broken is not None
    assert report.broken.rule == "INV-KIP-09"
    assert simulate(draw_consumer_plan(52)).broken is None


def _voting(seed, profile):
    """Return a plan in which members vote for one assignor or the other."""
    plan, rng = draw_consumer_plan(seed, profile), Random(f"votes {seed}")
    votes = [rng.choice(["range", "uniform", None]) for _ in plan.hosts]
    hosts = [
        replace(host, settings=replace(host.settings, server_assignor=vote))
        for host, vote in zip(plan.hosts, votes, strict=True)
    ]
    return replace(plan, hosts=tuple(hosts))


@pytest.mark.parametrize("seed", [3, 17, 37])
def test_a_group_with_tied_votes_settles_except_in_kafka_4_4(seed):
    """Whole groups find the fault too (M-HB-15, LIV-17); 4.3 counts votes without a bump (V-121)."""
    tied = replace(INTENDED, fault_tied_vote_bumps=True)
    broken = {profile: simulate(_voting(seed, profile)).broken for profile in (INTENDED, KAFKA_4_3, KAFKA_4_4, tied)}
    assert {profile: found and found.rule for profile, found in broken.items()} == {
        INTENDED: None,
        KAFKA_4_3: None,
        KAFKA_4_4: "LIV-05",
        tied: "LIV-05",
    }
