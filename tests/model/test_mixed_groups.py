"""Groups of both protocols, step by step (rule book, 9)."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from fencepost.protocol import embedded
from fencepost.protocol.consumer_messages import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import Appended, Load, LoadStarted, Reply, Request, Topic, TopicsChanged
from fencepost.protocol.messages import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupMember,
    LeaveGroupRequest,
    Protocol,
    RequestBody,
    SyncGroupRequest,
    SyncGroupResponse,
)
from fencepost.protocol.profile import Profile
from fencepost.protocol.profiles import INTENDED, KAFKA_4_3
from fencepost.protocol.settings import MigrationPolicy, Settings
from fencepost_model.classic.coordinator import CoordinatorModel
from fencepost_model.classic.coordinator_state import CoordinatorState

TOPIC = Topic("t", b"\x01" * 16, 2)
Body = TypeVar("Body")


class Run:
    """A coordinator with a consumer group of m1, to which the test adds the classic member m2."""

    def __init__(self, profile: Profile = KAFKA_4_3, policy: MigrationPolicy = MigrationPolicy.BIDIRECTIONAL) -> None:
        settings = replace(Settings(), group_consumer_migration_policy=policy, group_consumer_assignment_interval_ms=0)
        self.model = CoordinatorModel(settings, profile)
        self.state: CoordinatorState = self.model.initial()
        for event in (
            TopicsChanged(0, (TOPIC,), version=1),
            LoadStarted(0, leader_epoch=1),
            Load(0, leader_epoch=1, records=()),
        ):
            self.state = self.model.successors(self.state, event)[0].state
        self.asked = 0
        beat = self.ask(self.beat("m1", 0), ConsumerGroupHeartbeatResponse)
        assert beat.error_code is ErrorCode.NONE

    def ask(self, body: RequestBody, answer: type[Body]) -> Body:
        self.asked += 1
        version = 1 if isinstance(body, ConsumerGroupHeartbeatRequest) else 5
        step = self.model.successors(
            self.state, Request(0, id=self.asked, version=version, client_id="c", client_host="/h", body=body)
        )[0]
        durable = self.model.successors(step.state, Appended(0, offset=step.state.durable + step.state.undurable))[0]
        self.state = durable.state
        replies: tuple[Reply, ...] = (*step.outcome.replies, *durable.outcome.replies)
        found = [reply.body for reply in replies if reply.request_id == self.asked]
        assert isinstance(found[0], answer)
        return found[0]

    def beat(self, member: str, epoch: int) -> ConsumerGroupHeartbeatRequest:
        owned = () if epoch == 0 else None
        if epoch:
            return ConsumerGroupHeartbeatRequest("g", member_id=member, member_epoch=epoch)
        return ConsumerGroupHeartbeatRequest(
            "g",
            member_id=member,
            member_epoch=0,
            rebalance_timeout_ms=1_000,
            subscribed_topic_names=("t",),
            topic_partitions=owned,
        )

    def join(self, member: str) -> JoinGroupResponse:
        data = embedded.encode_subscription(embedded.Subscription(("t",)))
        protocols = (Protocol("range", data),)
        body = JoinGroupRequest(
            "g",
            session_timeout_ms=10_000,
            rebalance_timeout_ms=20_000,
            member_id=member,
            protocol_type="consumer",
            protocols=protocols,
        )
        return self.ask(body, JoinGroupResponse)


def test_a_classic_member_joins_syncs_and_is_asked_to_rejoin() -> None:
    """A classic member joins, syncs and is asked to rejoin by Heartbeat (X-JOIN-06, 15, X-SYNC-03, 06, X-HB-03, 05)."""
    run = Run()
    joined = run.join("m2")
    assert (joined.error_code, joined.leader, joined.members) == (ErrorCode.NONE, "", ())
    generation = joined.generation_id
    late = run.ask(HeartbeatRequest("g", generation_id=generation - 1, member_id="m2"), HeartbeatResponse)
    assert late.error_code is ErrorCode.ILLEGAL_GENERATION
    sync = run.ask(
        SyncGroupRequest(
            "g", generation_id=generation, member_id="m2", protocol_type="consumer", protocol_name="range"
        ),
        SyncGroupResponse,
    )
    assert (sync.error_code, embedded.decode_assignment(sync.assignment).partitions) == (ErrorCode.NONE, ())
    assert (
        run.ask(HeartbeatRequest("g", generation_id=generation, member_id="m2"), HeartbeatResponse).error_code
        is ErrorCode.NONE
    )
    run.ask(run.beat("m3", 0), ConsumerGroupHeartbeatResponse)
    beat = run.ask(HeartbeatRequest("g", generation_id=generation, member_id="m2"), HeartbeatResponse)
    assert beat.error_code is ErrorCode.REBALANCE_IN_PROGRESS
    assert run.state.consumer.join_timers == {("g", "m2")}  # X-HB-04


def test_a_disabled_policy_refuses_joins_and_downgrades() -> None:
    """The policy ``disabled`` refuses joins; 4.2 and earlier accept them (X-POL-04)."""
    assert run_policy(KAFKA_4_3) is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert run_policy(replace(KAFKA_4_3, old_disabled_policy_accepts_joins=True)) is ErrorCode.NONE


def run_policy(profile: Profile) -> ErrorCode:
    return Run(profile, MigrationPolicy.DISABLED).join("m2").error_code


def test_the_last_consumer_member_leaves_and_the_group_is_upgraded_again() -> None:
    """When the last consumer leaves, the group becomes classic, and later a consumer group again.

    The rules are X-DOWN-01…06 and X-UP-03, 04, 09.
    """
    for profile in (KAFKA_4_3, INTENDED):
        run = Run(profile)
        epoch = run.join("m2").generation_id
        run.ask(LeaveGroupRequest("g", (LeaveGroupMember("m1"),)), object)
        group = run.state.group("g")
        assert group is not None
        assert (group.state, group.generation, group.leader) == ("PreparingRebalance", epoch, "m2")
        run.join("m2")
        answer = run.ask(run.beat("m3", 0), ConsumerGroupHeartbeatResponse)
        after = run.state.consumer_group("g")
        assert answer.error_code is ErrorCode.NONE
        assert after is not None
        assert [member.classic is not None for member in after.members] == [True, False]
        assert after.epoch == epoch + 2


def test_only_a_group_that_may_be_downgraded_is() -> None:
    """The policy ``upgrade`` does not allow the downgrade (X-DOWN-08, X-POL-02, X-JOIN-22)."""
    run = Run(policy=MigrationPolicy.UPGRADE)
    epoch = run.join("m2").generation_id
    run.ask(LeaveGroupRequest("g", (LeaveGroupMember("m1"),)), object)
    assert run.state.group("g") is None
    error = run.ask(HeartbeatRequest("g", generation_id=epoch, member_id="m2"), HeartbeatResponse).error_code
    assert error is ErrorCode.REBALANCE_IN_PROGRESS  # X-HB-03, X-JOIN-22: the partitions of m1 are free
