"""The search accepts what the model can do, whatever the network does to it, and nothing that breaks the protocol."""

from __future__ import annotations

import pytest

from fencepost_conformance.checker.check import check_trace
from fencepost_conformance.checker.search import Limits
from fencepost_conformance.falsify.falsehoods import KINDS, falsehoods

from .simulated import Simulation


@pytest.mark.parametrize("seed", range(14))
def test_what_the_model_did_is_accepted(seed: int) -> None:
    trace = Simulation(seed, clients=2 + seed % 7, latency_ms=(0, 10, 60)[seed % 3]).run()
    verdict = check_trace(trace)
    assert verdict.outcome == "accepted", (verdict.reason, verdict.refusals)
    assert verdict.events > 20


def test_forty_members_are_checked_in_few_steps() -> None:
    trace = Simulation(3, clients=40, length_ms=8_000).run()
    verdict = check_trace(trace, limits=Limits(steps=3_000, second_look=0))
    assert verdict.outcome == "accepted"


@pytest.mark.parametrize("seed", range(3))
def test_falsehoods_are_refused_where_they_begin(seed: int) -> None:
    trace = Simulation(seed, clients=4, static=0.0, crashes=0.0, length_ms=12_000).run()
    assert check_trace(trace).outcome == "accepted"
    for wrong in falsehoods(trace, per_kind=1):
        verdict = check_trace(wrong.trace)
        assert verdict.outcome == "refused", (wrong.kind, wrong.first)
        assert wrong.first <= verdict.refusals[0].line <= wrong.last, wrong.kind


def test_every_kind_of_falsehood_has_a_reason() -> None:
    assert all(make.__doc__ for make in KINDS.values())


def test_a_refusal_tells_what_could_have_been_seen_and_why() -> None:
    trace = Simulation(1, clients=2, static=0.0, crashes=0.0).run()
    wrong = next(each for each in falsehoods(trace) if each.kind == "heartbeat-illegal-generation")
    (refusal,) = check_trace(wrong.trace).refusals
    assert refusal.line == wrong.first
    assert refusal.seen.startswith("Heartbeat v4 of member id ")
    assert refusal.seen.endswith("was answered ILLEGAL_GENERATION")
    assert refusal.allowed == ("NONE",)
    assert "C-HB-12" in refusal.rules
