"""Steps per second and core: core and model together, and Hypothesis' stateful runner on the core."""

from __future__ import annotations

from collections.abc import Iterator

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

from fencepost.coordinator import initial_state, step
from fencepost.protocol.profiles import KAFKA_4_3

from ...generate.generator import Generated, generate
from ...judge.compare.model import follow
from ...targets.ids import MemberIds
from ...targets.java_order import JavaOrder
from .measure import Row, pair, processor_seconds, single

_TRACES = 60
_STEPS = 150
_HYPOTHESIS_STEPS = 100


def traces(count: int = _TRACES) -> list[Generated]:
    """Return the random traces that all figures here use."""
    return [generate(seed, KAFKA_4_3, _STEPS) for seed in range(count)]


def run_core(given: list[Generated]) -> int:
    """Run the core alone over all traces; returns the number of steps."""
    for trace in given:
        state, choices = initial_state(trace.settings, trace.profile), JavaOrder(MemberIds())
        for event in trace.events:
            state, _ = step(state, event, choices)
    return sum(len(trace.events) for trace in given)


def run_core_and_model(given: list[Generated]) -> int:
    """Run the core, and the model following it; returns the number of steps."""
    run_core(given)
    return sum(follow(trace.settings, trace.profile, trace.events, trace.observations).steps for trace in given)


def run_hypothesis(given: list[Generated]) -> int:
    """Let Hypothesis' runner drive the core: each rule is one event of a trace. Returns the number of steps."""
    taken = 0

    class Machine(RuleBasedStateMachine):
        def __init__(self) -> None:
            super().__init__()
            self.trace = given[0]
            self.state, self.choices = initial_state(self.trace.settings, self.trace.profile), JavaOrder(MemberIds())
            self.events: Iterator[object] = iter(self.trace.events)

        @rule(number=st.integers(0, 2))
        def feed(self, number: int) -> None:
            nonlocal taken
            event = next(self.events, None)
            if event is not None:
                self.state, _ = step(self.state, event, self.choices)  # type: ignore[arg-type]
                taken += 1

    run_state_machine_as_test(
        Machine,
        settings=settings(
            max_examples=20,
            stateful_step_count=_HYPOTHESIS_STEPS,
            deadline=None,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        ),
    )
    return taken


def steps() -> list[Row]:
    given = traces()
    return [
        pair(
            "steps",
            "core and model",
            "Hypothesis on the core",
            "steps a second",
            work=lambda: run_core_and_model(given),
            other=lambda: run_hypothesis(given),
            goal="20,000 a second",
            clock=processor_seconds,
        ),
        single(
            "steps",
            "making random traces",
            "steps a second",
            lambda: sum(len(t.events) for t in traces(20)),
            clock=processor_seconds,
        ),
    ]
