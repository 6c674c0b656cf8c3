"""Classic requests to a consumer group whose members all speak the consumer protocol (rule book, 9.4)."""

from __future__ import annotations

from fencepost.protocol.consumer_messages import ConsumerGroupHeartbeatRequest
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import Appended, Load, LoadStarted, Reply, Request
from fencepost.protocol.messages import (
    HeartbeatRequest,
    HeartbeatResponse,
    LeaveGroupMember,
    LeaveGroupMemberResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    RequestBody,
    SyncGroupRequest,
    SyncGroupResponse,
)
from fencepost.protocol.profiles import INTENDED
from fencepost.protocol.settings import Settings
from fencepost_model.classic.coordinator import CoordinatorModel
from fencepost_model.classic.coordinator_state import CoordinatorState, Step


class Run:
    """A coordinator with one consumer group of two members, m1 static."""

    def __init__(self) -> None:
        self.model = CoordinatorModel(Settings(), INTENDED)
        self.state: CoordinatorState = self.model.initial()
        for event in (LoadStarted(0, leader_epoch=1), Load(0, leader_epoch=1, records=())):
            self.state = self.model.successors(self.state, event)[0].state
        self.asked = 0
        self.ask(
            ConsumerGroupHeartbeatRequest(
                "g",
                member_id="m1",
                member_epoch=0,
                instance_id="i1",
                rebalance_timeout_ms=1_000,
                subscribed_topic_names=("t",),
                topic_partitions=(),
            )
        )
        self.ask(
            ConsumerGroupHeartbeatRequest(
                "g",
                member_id="m2",
                member_epoch=0,
                rebalance_timeout_ms=1_000,
                subscribed_topic_names=("t",),
                topic_partitions=(),
            )
        )

    def ask(self, body: RequestBody, version: int = 1) -> tuple[Step, object]:
        self.asked += 1
        step = self.model.successors(
            self.state, Request(0, id=self.asked, version=version, client_id="c", client_host="/h", body=body)
        )[0]
        durable = self.model.successors(step.state, Appended(0, offset=step.state.durable + step.state.undurable))[0]
        self.state = durable.state
        replies: tuple[Reply, ...] = (*step.outcome.replies, *durable.outcome.replies)
        (reply,) = replies
        return step, reply.body


def test_a_consumer_member_is_unknown_to_classic_requests() -> None:
    """A member that uses the consumer protocol is unknown to classic requests (X-SYNC-01, 02, X-HB-01)."""
    run = Run()
    for member_id, instance, error in (
        ("m2", None, ErrorCode.UNKNOWN_MEMBER_ID),
        ("m3", None, ErrorCode.UNKNOWN_MEMBER_ID),
        ("m2", "i1", ErrorCode.FENCED_INSTANCE_ID),
        ("m2", "i2", ErrorCode.UNKNOWN_MEMBER_ID),
    ):
        assert run.ask(HeartbeatRequest("g", generation_id=2, member_id=member_id, group_instance_id=instance))[
            1
        ] == HeartbeatResponse(error)
        sync = SyncGroupRequest(
            "g",
            generation_id=2,
            member_id=member_id,
            group_instance_id=instance,
            protocol_type="consumer",
            protocol_name="range",
        )
        assert run.ask(sync)[1] == SyncGroupResponse(error)


def test_leave_group_removes_members() -> None:
    """LeaveGroup removes members by id or instance id, each once, with one bump for all (X-LEAVE-01…04, 06)."""
    run = Run()
    before = run.state.consumer_group("g")
    assert before is not None
    entries = (
        LeaveGroupMember("", group_instance_id="i1"),
        LeaveGroupMember("m2"),
        LeaveGroupMember("m2"),
        LeaveGroupMember("m2", group_instance_id="i1"),
        LeaveGroupMember("nobody"),
    )
    step, body = run.ask(LeaveGroupRequest("g", entries), 5)
    errors = (
        ErrorCode.NONE,
        ErrorCode.NONE,
        ErrorCode.NONE,
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.UNKNOWN_MEMBER_ID,
    )
    rows = zip(entries, errors, strict=True)
    assert body == LeaveGroupResponse(
        ErrorCode.NONE,
        tuple(
            LeaveGroupMemberResponse(entry.member_id, group_instance_id=entry.group_instance_id, error_code=error)
            for entry, error in rows
        ),
    )
    after = run.state.consumer_group("g")
    assert after is not None
    assert (after.members, after.epoch) == ((), before.epoch + 1)
    assert len(step.outcome.records) == 8  # the last one: M-LEAVE-08


def test_a_leave_that_removes_no_member_writes_nothing() -> None:
    """A LeaveGroup that removes no member writes no record and bumps nothing (X-LEAVE-04)."""
    run = Run()
    step, _ = run.ask(LeaveGroupRequest("g", (LeaveGroupMember("nobody"),)), 5)
    assert step.outcome.records == ()
