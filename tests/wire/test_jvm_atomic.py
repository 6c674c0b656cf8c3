"""Appends of a transaction are part of their step, and fail in it; the core does the same in two steps (F-RT-05)."""

from __future__ import annotations

from contextlib import closing
from random import SystemRandom

import pytest
from jvm_traces import KafkaOf

from fencepost.coordinator.kernel.stored_offsets import StepOffsets
from fencepost.protocol.profiles import PROFILES
from fencepost_conformance.generate.generator import Generated, generate
from fencepost_conformance.judge.compare import lockstep
from fencepost_conformance.judge.compare.atomic import fails_within
from fencepost_conformance.targets.core import Core
from fencepost_conformance.targets.jvm.releases import NEWEST
from fencepost_conformance.traces.observation import Observation

pytestmark = pytest.mark.jvm

STEPS = 80
#: the number of traces in which such an append fails
ENOUGH = 40


def failures(trace: Generated) -> int:
    return sum(fails_within(trace.events, index) for index in range(len(trace.events)))


@pytest.fixture(scope="module")
def traces() -> list[Generated]:
    first, found = SystemRandom().randrange(10**12), []
    for seed in range(first, first + 100 * ENOUGH):
        protocol = ("classic", "consumer", "mixed")[seed % 3]
        trace = generate(seed, PROFILES["kafka-4.4"], STEPS, protocol, offsets=None)
        found += [trace] if failures(trace) else []
        if len(found) == ENOUGH:
            break
    return found


@pytest.fixture(scope="module")
def seen(traces: list[Generated], kafka_of: KafkaOf) -> list[list[Observation]]:
    return kafka_of(NEWEST).run_many([(trace.settings, trace.events) for trace in traces])


def differing(traces: list[Generated], seen: list[list[Observation]]) -> int:
    """Return the number of traces on which the core, run again, differs from the observations."""
    with closing(Core()) as core:
        ours = [core.run_until_raised(trace.settings, trace.profile, trace.events)[0] for trace in traces]
    return sum(
        lockstep.compare(trace.settings, trace.profile, trace.events, one, other).difference is not None
        for trace, one, other in zip(traces, ours, seen, strict=True)
    )


def test_a_failed_append_of_a_transaction_has_the_same_result(
    traces: list[Generated], seen: list[list[Observation]]
) -> None:
    assert len(traces) == ENOUGH
    assert differing(traces, seen) == 0


def test_an_incomplete_revert_would_be_seen(
    traces: list[Generated], seen: list[list[Observation]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(StepOffsets, "revert", lambda *_: None)
    assert differing(traces, seen) > ENOUGH // 2


def test_step_by_step_it_would_not_be_the_same(
    traces: list[Generated], seen: list[list[Observation]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lockstep, "joined", lambda _, each: each)
    monkeypatch.setattr(lockstep, "fails_within", lambda *_: False)
    assert differing(traces, seen) > ENOUGH // 2
