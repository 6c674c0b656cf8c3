"""A seed determines one trace on every machine, and the traces reach many states."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter

import pytest

from fencepost.protocol import events as ev
from fencepost.protocol.messages import LeaveGroupRequest
from fencepost.protocol.profiles import INTENDED, KAFKA_4_3
from fencepost.protocol.view import GroupState
from fencepost_conformance.generate.generator import Generated, generate

SEEDS = range(0, 60)
PROGRAM = """
import hashlib
from fencepost.protocol.profiles import KAFKA_4_3
from fencepost_conformance.generate.generator import generate
from fencepost_conformance.traces import convert
from fencepost_conformance.traces.files import EventTrace, lines_of
for seed in range(12):
    made = generate(seed, KAFKA_4_3)
    trace = EventTrace(made.settings, made.profile, made.events, made.observations)
    print(hashlib.sha256("".join(map(convert.text_of, lines_of(trace))).encode()).hexdigest())
"""


@pytest.fixture(scope="module")
def traces() -> list[Generated]:
    return [generate(seed, KAFKA_4_3) for seed in SEEDS]


@pytest.mark.parametrize("hash_seed", ["0", "4711"])
def test_a_seed_is_the_same_trace_in_any_process(hash_seed: str) -> None:
    def run(value: str) -> str:
        environment = {**os.environ, "PYTHONHASHSEED": value}
        return subprocess.run(
            [sys.executable, "-c", PROGRAM], env=environment, check=True, capture_output=True, text=True
        ).stdout

    assert run(hash_seed) == run("1")


def test_the_core_never_raises(traces: list[Generated]) -> None:
    assert [trace.failure for trace in traces if trace.failure] == []
    assert all(len(trace.events) == len(trace.observations) >= 150 for trace in traces)


def test_leave_requests_may_name_no_member(traces: list[Generated]) -> None:
    """LeaveGroup without members occurs in groups of every kind from version 3, the first that allows it
    (C-LEAVE-27)."""
    empty = [
        event
        for trace in traces
        for event in trace.events
        if isinstance(event, ev.Request) and isinstance(event.body, LeaveGroupRequest) and not event.body.members
    ]
    assert {event.version for event in empty} == {3, 4, 5}


def test_other_profiles_have_their_own_traces() -> None:
    assert all(generate(seed, INTENDED, 80).failure is None for seed in range(20))


def test_a_driver_keeps_its_promises(traces: list[Generated]) -> None:
    """Time does not go back, request ids are unique, failed appends follow their step, timers are due (F-RT-17)."""
    for trace in traces:
        armed: dict[ev.TimerKey, int] = {}
        times = [event.at_ms for event in trace.events]
        assert times == sorted(times)
        ids = [event.id for event in trace.events if isinstance(event, ev.Request)]
        assert len(set(ids)) == len(ids)
        for n, (event, seen) in enumerate(zip(trace.events, trace.observations, strict=True)):
            if isinstance(event, ev.AppendFailed):
                assert trace.observations[n - 1].records
            if isinstance(event, ev.TimerFired):
                assert armed[event.key] <= event.at_ms
            for key, deadline in seen.timers.items():
                if deadline is None:
                    armed.pop(key, None)
                else:
                    armed[key] = deadline


def test_deep_states_are_common(traces: list[Generated]) -> None:
    reached: Counter[GroupState] = Counter()
    for trace in traces:
        states = {view.state for seen in trace.observations for view in seen.groups.values() if view is not None}
        reached.update(states)
    assert reached[GroupState.STABLE] > len(traces) // 3
    generations = [
        view.generation_id for trace in traces for seen in trace.observations for view in seen.groups.values() if view
    ]
    assert max(generations) > 5
