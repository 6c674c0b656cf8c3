"""A step is a function: the same arguments give the same result, and the given state is unchanged."""

from __future__ import annotations

import copy
import pickle
from collections import Counter

import pytest

from fencepost import coordinator
from fencepost.coordinator.consumer.group import ConsumerGroup
from fencepost.functions import KafkaFunctions
from fencepost.protocol.consumer_view import ConsumerGroupState, MemberState
from fencepost.protocol.profile import Profile
from fencepost.protocol.profiles import INTENDED, KAFKA_4_3
from fencepost_conformance.generate.generator import generate
from fencepost_conformance.generate.plan import GroupProtocol
from fencepost_conformance.targets.ids import MemberIds
from fencepost_conformance.targets.java_order import JavaOrder


@pytest.mark.parametrize("profile", [KAFKA_4_3, INTENDED], ids=lambda profile: profile.name)
def test_a_step_changes_only_the_state_that_it_returns(profile: Profile) -> None:
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
    """Check a state in which everything is replicated and no request is parked: no operation and no change is
    pending."""
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


@pytest.mark.parametrize("protocol", [GroupProtocol.CONSUMER, GroupProtocol.MIXED])
def test_the_state_of_a_consumer_group_follows_from_its_members(protocol: GroupProtocol) -> None:
    """The group counts its stable members by epoch, so that its state needs no look at each member (M-ST-01)."""
    seen = set()
    for seed in range(20):
        trace = generate(seed, INTENDED, protocol=protocol)
        choices = JavaOrder(MemberIds())
        state = coordinator.initial_state(trace.settings, INTENDED, functions=KafkaFunctions())
        for event in trace.events:
            state, _ = coordinator.step(state, event, choices)
            for group in state.groups.values():
                if isinstance(group, ConsumerGroup):
                    members = group.members.values()
                    assert group.stable == Counter(each.epoch for each in members if each.state is MemberState.STABLE)
                    settled = all(member.reconciled_to(group.assignment_epoch) for member in members)
                    if members and group.epoch <= group.assignment_epoch:
                        assert (group.state is ConsumerGroupState.STABLE) is settled
                    seen.add(group.state)
    assert seen == {*ConsumerGroupState} - {ConsumerGroupState.DEAD}


def test_a_state_can_be_sent_elsewhere() -> None:
    trace = generate(3, INTENDED)
    choices = JavaOrder(MemberIds())
    state = coordinator.initial_state(trace.settings, INTENDED)
    for event in trace.events:
        state, _ = coordinator.step(state, event, choices)
        assert pickle.loads(pickle.dumps(state)) == state
