"""A step is a function: the same arguments give the same result, and the state it was given stays as it was."""

from __future__ import annotations

import copy
import pickle

import pytest

from fencepost import coordinator
from fencepost.protocol.profile import Profile
from fencepost.protocol.profiles import INTENDED, KAFKA_4_3
from fencepost_conformance.generate.generator import generate
from fencepost_conformance.generate.java_order import JavaOrder
from fencepost_conformance.targets.ids import MemberIds


@pytest.mark.parametrize("profile", [KAFKA_4_3, INTENDED], ids=lambda profile: profile.name)
def test_a_step_changes_nothing_but_what_it_returns(profile: Profile) -> None:
    for seed in range(12):
        trace = generate(seed, profile)
        assert trace.failure is None
        ids = MemberIds()
        state = coordinator.initial_state(trace.settings, profile)
        for event in trace.events:
            before = repr(state)
            twin = copy.deepcopy(ids)
            after, outcome = coordinator.step(state, event, JavaOrder(ids))
            assert repr(state) == before
            assert coordinator.step(state, event, JavaOrder(twin)) == (after, outcome)
            state = after


def test_no_soft_state_is_left_when_all_is_quiet() -> None:
    """Everything replicated and nobody parked: no operation is open, no change is pending."""
    for seed in range(40, 60):
        trace = generate(seed, INTENDED)
        choices = JavaOrder(MemberIds())
        state = coordinator.initial_state(trace.settings, INTENDED)
        for event in trace.events:
            state, _ = coordinator.step(state, event, choices)
            if state.committed == state.end:
                assert not state.operations
                assert not state.changes
            for group in state.groups.values():
                assert group.awaiting == sum(member.join is not None for member in group.members.values())
                counts: dict[str, int] = {}
                for member in group.members.values():
                    for protocol in member.protocols:
                        counts[protocol.name] = counts.get(protocol.name, 0) + 1
                assert {name: count for name, count in group.support.items() if count} == counts


def test_a_state_can_be_sent_elsewhere() -> None:
    trace = generate(3, INTENDED)
    choices = JavaOrder(MemberIds())
    state = coordinator.initial_state(trace.settings, INTENDED)
    for event in trace.events:
        state, _ = coordinator.step(state, event, choices)
        assert pickle.loads(pickle.dumps(state)) == state
