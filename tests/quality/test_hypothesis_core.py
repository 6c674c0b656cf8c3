"""Hypothesis against the core, in states that bounded searches do not reach, with the properties of section 12 after
every step.

A failure shrinks to a program of a few steps. A test checks that this program is short and names the broken property.
"""

from __future__ import annotations

import pytest
from coordinator_machine import CoordinatorMachine, chosen, shrunk
from hypothesis import strategies as st
from hypothesis.stateful import rule

from fencepost.protocol.messages import (
    DeleteGroupsRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupMember,
    LeaveGroupRequest,
    Protocol,
    SyncGroupAssignment,
    SyncGroupRequest,
)
from fencepost.protocol.settings import Settings
from fencepost_conformance.run.mutants.catalogue import MUTANTS
from fencepost_conformance.run.mutants.mutant import planted

GROUPS = st.sampled_from(["g", "g", "g", "h"])
WHO = st.integers(0, 3)  # the index of a member or pending id of the group
LISTS = st.sampled_from(
    [
        (Protocol("range", b"1"),),
        (Protocol("range", b"2"),),
        (Protocol("range", b"1"), Protocol("roundrobin", b"1")),
        (Protocol("roundrobin", b"1"), Protocol("range", b"1")),
    ]
)


class Coordinator(CoordinatorMachine):
    """Classic groups."""

    SETTINGS = Settings(group_min_session_timeout_ms=1, group_initial_rebalance_delay_ms=50, group_max_size=3)

    def somebody(self, name, who):
        """Return a member id and the generation of its group; an unknown id if the group has none."""
        group = self.core.groups.get(name)
        if group is None:
            return "nobody", 0, ()
        members = [member.member_id for member in group.members]
        ids = [*members, *sorted(group.pending_join)] or ["nobody"]
        return ids[who % len(ids)], group.generation_id, members

    @rule(group=GROUPS, protocols=LISTS, version=st.sampled_from([3, 5, 9]))
    def joins(self, group, protocols, version):
        self.ask(
            JoinGroupRequest(
                group,
                session_timeout_ms=500,
                rebalance_timeout_ms=1_000,
                member_id="",
                protocol_type="consumer",
                protocols=protocols,
            ),
            version,
        )

    @rule(group=GROUPS, instance=st.sampled_from(["i", "j"]), protocols=LISTS)
    def static_joins(self, group, instance, protocols):
        self.ask(
            JoinGroupRequest(
                group,
                session_timeout_ms=500,
                rebalance_timeout_ms=1_000,
                member_id="",
                group_instance_id=instance,
                protocol_type="consumer",
                protocols=protocols,
            ),
            9,
        )

    @rule(group=GROUPS, who=WHO, instance=st.sampled_from([None, None, "i"]), protocols=LISTS)
    def rejoins(self, group, who, instance, protocols):
        member_id, _, _ = self.somebody(group, who)
        self.ask(
            JoinGroupRequest(
                group,
                session_timeout_ms=500,
                rebalance_timeout_ms=1_000,
                member_id=member_id,
                group_instance_id=instance,
                protocol_type="consumer",
                protocols=protocols,
            ),
            9,
        )

    @rule(group=GROUPS, who=WHO, late=st.booleans(), data=st.binary(max_size=1))
    def syncs(self, group, who, late, data):
        member_id, generation, members = self.somebody(group, who)
        shares = tuple(SyncGroupAssignment(each, data) for each in members)
        self.ask(SyncGroupRequest(group, generation_id=generation - late, member_id=member_id, assignments=shares), 3)

    @rule(group=GROUPS, who=WHO, late=st.booleans(), instance=st.sampled_from([None, "i"]))
    def heartbeats(self, group, who, late, instance):
        member_id, generation, _ = self.somebody(group, who)
        self.ask(
            HeartbeatRequest(group, generation_id=generation - late, member_id=member_id, group_instance_id=instance), 4
        )

    @rule(group=GROUPS, who=WHO)
    def leaves(self, group, who):
        self.ask(LeaveGroupRequest(group, (LeaveGroupMember(self.somebody(group, who)[0]),)), 5)

    @rule(group=GROUPS)
    def is_deleted(self, group):
        self.ask(DeleteGroupsRequest((group,)), 2)


Coordinator.TestCase.settings = chosen(80, 30)
TestCoordinator = Coordinator.TestCase


@pytest.mark.parametrize(
    ("mutant", "rule_id"),
    [
        ("answered-before-the-log", "INV-SYNC-02"),
        ("replacement-only-in-stable", "INV-MEM-02"),
    ],
)
def test_a_planted_fault_shrinks_to_a_few_steps(mutant, rule_id):
    with planted(MUTANTS[mutant]):
        broken, steps, program = shrunk(Coordinator)
    assert 0 < len(steps) <= 8, program
    assert broken == rule_id, program
