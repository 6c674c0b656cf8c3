"""Hypothesis against the core: what no bound reaches, with the properties of section 12 after every step.

A failure shrinks to a program of a few steps; that the program is short, and says which property broke, is tested too.
"""

from __future__ import annotations

import re

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)

from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import Appended, AppendFailed, Load, Request, TimerFired, Unload
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
from fencepost.protocol.settings import INTENDED, Settings
from fencepost_conformance.mutants.catalogue import MUTANTS
from fencepost_conformance.mutants.mutant import planted
from fencepost_conformance.simulate import Broken
from fencepost_conformance.simulate.session import WatchedSession

GROUPS = st.sampled_from(["g", "g", "g", "h"])
WHO = st.integers(0, 3)  # a member or pending id of the group, by its place
LISTS = st.sampled_from(
    [
        (Protocol("range", b"1"),),
        (Protocol("range", b"2"),),
        (Protocol("range", b"1"), Protocol("roundrobin", b"1")),
        (Protocol("roundrobin", b"1"), Protocol("range", b"1")),
    ]
)
SETTINGS = Settings(group_min_session_timeout_ms=1, group_initial_rebalance_delay_ms=50, group_max_size=3)


class Smallest:
    """Numbered ids; every other choice is the smallest."""

    def __init__(self):
        self.made = 0

    def member_id(self, prefix):
        self.made += 1
        return f"{prefix}{self.made}"

    def leader(self, group_id, candidates):
        return min(candidates)

    def protocol(self, group_id, tied):
        return min(tied)

    def uuid(self):
        return self.member_id("")

    def assignor(self, group_id, tied):
        return min(tied)

    def order(self, group_id, keys):
        return keys

    def topics(self, group_id, topic_ids):
        return topic_ids


class Coordinator(RuleBasedStateMachine):
    """The watched core raises ``Broken`` with the rule's id; the rules here only make things happen."""

    @initialize(prompt=st.booleans())
    def load(self, prompt):
        self.core = WatchedSession(SETTINGS, INTENDED, Smallest())
        self.prompt = prompt  # the log is replicated at once
        self.now = self.requests = self.replicated = self.epoch = 0
        self.written = False
        self._load()

    def _load(self):
        self.epoch += 1
        self.replicated = len(self.core.log)
        self.feed(Load(self.now, self.epoch, tuple(self.core.log)))

    def feed(self, event):
        seen = self.core.feed(event)
        self.written = bool(seen.records)
        if self.written and self.prompt:
            self.replicated = len(self.core.log)
            self.feed(Appended(self.now, self.replicated))

    def ask(self, body, version):
        self.requests += 1
        self.feed(Request(self.now, self.requests, version, "c", "/h", body))

    def somebody(self, name, who):
        """A member id and its group's generation; an id that nobody has if there is none."""
        group = self.core.groups.get(name)
        if group is None:
            return "nobody", 0, ()
        members = [member.member_id for member in group.members]
        ids = [*members, *sorted(group.pending_join)] or ["nobody"]
        return ids[who % len(ids)], group.generation_id, members

    @rule(group=GROUPS, protocols=LISTS, version=st.sampled_from([3, 5, 9]))
    def joins(self, group, protocols, version):
        self.ask(JoinGroupRequest(group, 500, 1_000, "", None, "consumer", protocols), version)

    @rule(group=GROUPS, instance=st.sampled_from(["i", "j"]), protocols=LISTS)
    def static_joins(self, group, instance, protocols):
        self.ask(JoinGroupRequest(group, 500, 1_000, "", instance, "consumer", protocols), 9)

    @rule(group=GROUPS, who=WHO, instance=st.sampled_from([None, None, "i"]), protocols=LISTS)
    def rejoins(self, group, who, instance, protocols):
        member_id, _, _ = self.somebody(group, who)
        self.ask(JoinGroupRequest(group, 500, 1_000, member_id, instance, "consumer", protocols), 9)

    @rule(group=GROUPS, who=WHO, late=st.booleans(), data=st.binary(max_size=1))
    def syncs(self, group, who, late, data):
        member_id, generation, members = self.somebody(group, who)
        shares = tuple(SyncGroupAssignment(each, data) for each in members)
        self.ask(SyncGroupRequest(group, generation - late, member_id, None, None, None, shares), 3)

    @rule(group=GROUPS, who=WHO, late=st.booleans(), instance=st.sampled_from([None, "i"]))
    def heartbeats(self, group, who, late, instance):
        member_id, generation, _ = self.somebody(group, who)
        self.ask(HeartbeatRequest(group, generation - late, member_id, instance), 4)

    @rule(group=GROUPS, who=WHO)
    def leaves(self, group, who):
        self.ask(LeaveGroupRequest(group, (LeaveGroupMember(self.somebody(group, who)[0]),)), 5)

    @rule(group=GROUPS)
    def is_deleted(self, group):
        self.ask(DeleteGroupsRequest((group,)), 2)

    @precondition(lambda self: self.core.armed)
    @rule(which=st.sampled_from([0, 0, 1, 2]))
    def time_passes(self, which):
        timers = sorted(self.core.armed.items(), key=lambda row: (row[1], str(row[0])))
        key, at = timers[which % len(timers)]
        self.now = max(self.now, at)
        self.feed(TimerFired(self.now, key))

    @precondition(lambda self: self.replicated < len(self.core.log))
    @rule()
    def is_replicated(self):
        self.replicated = len(self.core.log)
        self.feed(Appended(self.now, self.replicated))

    @precondition(lambda self: self.written)
    @rule(error=st.sampled_from([ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.NOT_LEADER_OR_FOLLOWER]))
    def append_fails(self, error):
        self.feed(AppendFailed(self.now, error))

    @rule()
    def moves(self):
        del self.core.log[self.replicated :]
        self.feed(Unload(self.now, None))
        self._load()


Coordinator.TestCase.settings = settings(
    max_examples=80, stateful_step_count=30, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
)
TestCoordinator = Coordinator.TestCase


@pytest.mark.parametrize(
    ("mutant", "rule_id"),
    [
        ("answered-before-the-log", "INV-SYNC-02"),
        ("replacement-only-in-stable", "INV-MEM-02"),
    ],
)
def test_a_planted_fault_shrinks_to_a_few_steps(mutant, rule_id):
    with planted(MUTANTS[mutant]), pytest.raises(Broken) as caught:
        run_state_machine_as_test(
            Coordinator,
            settings=settings(
                max_examples=300,
                stateful_step_count=15,
                deadline=None,
                derandomize=True,
                database=None,
                phases=[Phase.generate, Phase.shrink],
                suppress_health_check=list(HealthCheck),
            ),
        )
    program = "\n".join(getattr(caught.value, "__notes__", []))
    steps = re.findall(r"^(?:\w+(?:, \w+)* = )?state\.(\w+)\(", program, re.MULTILINE)
    assert steps[-1] == "teardown"
    done = [name for name in steps if name not in ("teardown", "load")]
    assert 0 < len(done) <= 8, program
    assert caught.value.rule == rule_id, program
