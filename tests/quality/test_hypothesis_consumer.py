"""Hypothesis against the core, for consumer groups and groups of both protocols (12.2).

Members act in any order, at any epoch, and claim any partitions. A failure shrinks to a program of a few steps.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from coordinator_machine import CoordinatorMachine, broken_by, chosen, shrunk
from hypothesis import Phase
from hypothesis import strategies as st
from hypothesis.stateful import rule
from mixed_faults import FORGETS_WHAT_WAS_ASSIGNED, TAKES_WHAT_CLASSIC_MEMBERS_HOLD

from fencepost.member.consumer_protocol import (
    Assignment,
    Subscription,
    decode_assignment,
    encode_assignment,
    encode_subscription,
)
from fencepost.protocol.consumer_messages import ConsumerGroupHeartbeatRequest, TopicPartitions
from fencepost.protocol.events import (
    GroupConfig,
    GroupConfigChanged,
    TimerFired,
    TimerKey,
    TimerKind,
    Topic,
    TopicsChanged,
)
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
from fencepost.protocol.partitions import TopicPartition
from fencepost.protocol.settings import Settings
from fencepost_conformance.run.mutants.catalogue import MUTANTS
from fencepost_conformance.run.mutants.replacement import in_place

IDS = st.sampled_from(["k1", "k2", "k1", "k2", "k3"])
INSTANCES = st.sampled_from([None, None, None, "i", "j"])
TOPICS = (Topic("t", b"T" * 16, 3), Topic("u", b"U" * 16, 1))
NAMES = st.sampled_from([("t",), ("t",), ("t",), ("t", "u"), ()])
REGEXES = st.sampled_from([None, None, None, "", "t.*", ".*"])
ASSIGNORS = st.sampled_from([None, None, "range", "uniform"])
WHO = st.integers(0, 3)


class ConsumerCoordinator(CoordinatorMachine):
    """Consumer groups."""

    SETTINGS = Settings(
        group_min_session_timeout_ms=1,
        group_initial_rebalance_delay_ms=50,
        group_consumer_max_size=3,
        group_consumer_assignment_interval_ms=1_000,
    )

    def before_load(self):
        self.topics, self.image = list(TOPICS), 0
        self.publish_topics()

    def publish_topics(self):
        self.image += 1
        self.feed(TopicsChanged(self.now, tuple(self.topics), version=self.image))

    def member(self, member_id):
        view = self.core.consumer_groups.get("g")
        rows = () if view is None else view.members
        return next((row for row in rows if row.member_id == member_id), None)

    def beat(self, member_id, epoch, **fields):
        self.ask(ConsumerGroupHeartbeatRequest("g", member_id=member_id, member_epoch=epoch, **fields), 1)

    @rule(member_id=IDS, instance_id=INSTANCES, names=NAMES, regex=REGEXES, assignor=ASSIGNORS)
    def joins(self, member_id, instance_id, names, regex, assignor):
        self.beat(
            member_id, 0, instance_id=instance_id, rebalance_timeout_ms=10_000, subscribed_topic_names=names,
            subscribed_topic_regex=regex, server_assignor=assignor, topic_partitions=(),
        )  # fmt: skip

    @rule(member_id=IDS, owns=st.sampled_from(["unreported", "unreported", "keeps", "holds", "nothing", "some"]))
    def heartbeats(self, member_id, owns):
        """Send the heartbeat of a correct client, if ``owns`` is right."""
        member = self.member(member_id)
        if member is None:
            self.beat(member_id, 1)
        else:
            self.beat(
                member_id, max(member.member_epoch, 0), instance_id=member.instance_id,
                topic_partitions=owned(member, owns), rebalance_timeout_ms=10_000,
            )  # fmt: skip

    @rule(member_id=IDS, off=st.integers(-2, 2), owns=st.sampled_from(["unreported", "keeps", "nothing"]))
    def heartbeats_at_another_epoch(self, member_id, off, owns):
        member = self.member(member_id)
        epoch = 1 if member is None else max(member.member_epoch + off, 0)
        if epoch:
            self.beat(member_id, epoch, topic_partitions=None if member is None else owned(member, owns))

    @rule(member_id=IDS, names=NAMES, regex=REGEXES)
    def subscribes(self, member_id, names, regex):
        member = self.member(member_id)
        if member is not None and member.member_epoch > 0:
            self.beat(member_id, member.member_epoch, subscribed_topic_names=names, subscribed_topic_regex=regex)

    @rule(member_id=IDS, away=st.booleans())
    def leaves(self, member_id, away):
        member = self.member(member_id)
        if member is not None:
            away = away and member.instance_id is not None
            self.beat(member_id, -2 if away else -1, instance_id=member.instance_id)

    @rule(place=st.integers(0, 1), count=st.integers(1, 4))
    def topics_change(self, place, count):
        self.topics[place] = replace(self.topics[place], partitions=count)
        self.publish_topics()

    @rule(interval=st.sampled_from([None, 0, 5_000]))
    def is_configured(self, interval):
        self.feed(GroupConfigChanged(self.now, "g", GroupConfig(consumer_assignment_interval_ms=interval)))

    @rule(by=st.sampled_from([1, 1_000, 10_000]))
    def waits(self, by):
        """Let time pass before the next event; timers that are due by then fire first."""
        self.now = max(self.now, min([self.now + by, *self.core.armed.values()]))

    @rule()
    def is_deleted(self):
        self.ask(DeleteGroupsRequest(("g",)), 2)


def owned(member, owns):
    match owns:
        case "unreported":
            return None
        case "nothing":
            return ()
        case "keeps":
            rows = member.assigned
        case "holds":
            rows = (*member.assigned, *member.pending_revocation)
        case _:
            rows = tuple(replace(row, partitions=row.partitions[:1]) for row in member.assigned)
    return tuple(TopicPartitions(row.topic_id, row.partitions) for row in rows)


class MixedCoordinator(ConsumerCoordinator):
    """Groups of both protocols that convert in both directions."""

    def before_load(self):
        super().before_load()
        self.handed = ["nobody"]

    def somebody(self, who):
        """Return a present or former member: id, instance id, generation, and the ids of all members of the group."""
        classic, consumer = self.core.groups.get("g"), self.core.consumer_groups.get("g")
        rows = (classic or consumer).members if classic or consumer else ()
        if not rows:
            return self.handed[who % len(self.handed)], None, 0, []
        member = rows[who % len(rows)]
        if consumer is not None:
            return member.member_id, member.instance_id, member.member_epoch, []
        return (
            member.member_id, member.group_instance_id, classic.generation_id, [each.member_id for each in rows],
        )  # fmt: skip

    def join(self, member_id, instance_id, names, owned_by, version, *, generation=-1):
        names = names or ("t",)
        partitions = tuple(
            TopicPartition(topic.name, number)
            for topic in self.topics
            for row in owned_by
            if row.topic_id == topic.topic_id
            for number in row.partitions
        )
        metadata = encode_subscription(Subscription(names, None, partitions, generation))
        body = JoinGroupRequest(
            "g",
            session_timeout_ms=500,
            rebalance_timeout_ms=1_000,
            member_id=member_id,
            group_instance_id=instance_id,
            protocol_type="consumer",
            protocols=(Protocol("range", metadata), Protocol("roundrobin", metadata)),
        )
        made = self.core._choices.made
        self.ask(body, version)
        if self.core._choices.made > made:
            self.handed.append(f"m{self.core._choices.made}")

    @rule(names=NAMES)
    def a_classic_group_settles(self, names):
        """Add a member, end the join phase, and send the leader's assignment. The group can then be converted."""
        self.join("", None, names, (), 3)
        key = TimerKey(TimerKind.JOIN, "g")
        if key in self.core.armed:
            self.now = max(self.now, self.core.armed[key])
            self.feed(TimerFired(self.now, key))
        group = self.core.groups.get("g")
        for who in range(len(group.members) if group is not None else 0):
            self.syncs(who=who, late=False)

    @rule(instance_id=INSTANCES, names=NAMES, version=st.sampled_from([3, 9]))
    def joins_as_classic(self, instance_id, names, version):
        self.join("", instance_id, names, (), version)

    @rule(who=WHO, names=NAMES)
    def joins_with_the_id_that_it_was_given(self, who, names):
        self.join(self.handed[-1 - who % len(self.handed)], None, names, (), 9)

    @rule(
        who=WHO,
        names=NAMES,
        owns=st.sampled_from(["nothing", "keeps", "holds", "another's"]),
        reports=st.sampled_from(["present", "present", "previous", "older", "nothing"]),
    )
    def rejoins_as_classic(self, who, names, owns, reports):
        """Join at the current epoch or at another one (X-JOIN-12); in a classic group the claims count at the next
        upgrade (X-UP-05)."""
        member_id, instance_id, generation, _ = self.somebody(who)
        member, other = self.member(member_id), self.member(self.somebody(who + 1)[0])
        previous = generation - 1 if member is None else member.previous_member_epoch
        reported = {"present": generation, "previous": previous, "older": generation - 2, "nothing": -1}[reports]
        rows = () if member is None else owned(other, "holds") if owns == "another's" else owned(member, owns)
        self.join(
            member_id, instance_id, names, self.assigned(member_id) if member is None else rows, 9, generation=reported
        )

    def assigned(self, member_id):
        """Return the assignment of the member in the classic group, as rows."""
        group = self.core.groups.get("g")
        data = b"".join(each.assignment for each in group.members if each.member_id == member_id) if group else b""
        ids = {topic.name: topic.topic_id for topic in self.topics}
        partitions = decode_assignment(data).partitions if data else ()
        return tuple(TopicPartitions(ids[each.topic], (each.partition,)) for each in partitions)

    @rule(who=WHO, late=st.booleans())
    def syncs(self, who, late):
        member_id, instance_id, generation, ids = self.somebody(who)
        every = [TopicPartition(topic.name, number) for topic in self.topics for number in range(topic.partitions)]
        shares = tuple(
            SyncGroupAssignment(name, encode_assignment(Assignment(tuple(every[place :: len(ids)]))))
            for place, name in enumerate(ids)
        )
        self.ask(
            SyncGroupRequest(
                "g",
                generation_id=generation - late,
                member_id=member_id,
                group_instance_id=instance_id,
                protocol_type="consumer",
                protocol_name="range",
                assignments=shares,
            ),
            5,
        )

    @rule(who=WHO, late=st.booleans())
    def heartbeats_as_classic(self, who, late):
        member_id, instance_id, generation, _ = self.somebody(who)
        self.ask(
            HeartbeatRequest("g", generation_id=generation - late, member_id=member_id, group_instance_id=instance_id),
            4,
        )

    @rule(who=WHO)
    def leaves_as_classic(self, who):
        member_id, instance_id, _, _ = self.somebody(who)
        self.ask(LeaveGroupRequest("g", (LeaveGroupMember(member_id, group_instance_id=instance_id),)), 5)


def test_a_member_that_converts_its_group_may_name_another_instance():
    """A random run found this: the check of conversions counted the calling member among those that must stay
    unchanged."""
    machine = MixedCoordinator()
    machine.load(prompt=False)
    machine.joins(assignor=None, instance_id="i", member_id="k1", names=("t",), regex=None)
    machine.rejoins_as_classic(names=("t",), owns="nothing", reports="present", who=0)
    machine.joins(assignor=None, instance_id="j", member_id="k1", names=("t",), regex=None)
    (member,) = machine.core.consumer_groups["g"].members
    assert (member.member_id, member.instance_id) == ("k1", "j")
    machine.teardown()


ConsumerCoordinator.TestCase.settings = chosen(250, 40)
TestConsumerCoordinator = ConsumerCoordinator.TestCase
MixedCoordinator.TestCase.settings = chosen(300, 40)
TestMixedCoordinator = MixedCoordinator.TestCase


TAKEN = (ConsumerCoordinator, MUTANTS["taken-from-its-holder"].replacements, "INV-KIP-01", 4)
UPGRADE = (MixedCoordinator, FORGETS_WHAT_WAS_ASSIGNED, "INV-CONV-01", 8)


@pytest.mark.parametrize(("machine", "fault", "rule_id", "_"), [TAKEN, UPGRADE], ids=["taken", "upgrade"])
def test_a_planted_fault_is_found(machine, fault, rule_id, _):
    """``make test-all`` shrinks these two; that takes longest."""
    with in_place(fault):
        assert broken_by(machine, [Phase.generate]).rule == rule_id


@pytest.mark.parametrize(
    ("machine", "fault", "rule_id", "most"),
    [
        pytest.param(*TAKEN, marks=pytest.mark.all, id="taken"),
        pytest.param(
            ConsumerCoordinator, MUTANTS["revocation-not-awaited"].replacements, "M-REC-18", 6, id="not awaited"
        ),
        pytest.param(*UPGRADE, marks=pytest.mark.all, id="upgrade"),
        pytest.param(MixedCoordinator, TAKES_WHAT_CLASSIC_MEMBERS_HOLD, "INV-KIP-01", 8, id="taken from classic"),
    ],
)
def test_a_planted_fault_shrinks_to_a_few_steps(machine, fault, rule_id, most):
    with in_place(fault):
        broken, steps, program = shrunk(machine)
    assert 0 < len(steps) <= most, program
    assert broken == rule_id, program
