"""A coordinator of the model with one group ``g``, its clock, its log and its timers, for tests of mixed groups."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, TypeVar

from fencepost.protocol import embedded
from fencepost.protocol.consumer_messages import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse
from fencepost.protocol.consumer_records import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMetadataKey,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMetadataKey,
)
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import (
    Appended,
    AppendFailed,
    Event,
    Load,
    LoadStarted,
    Request,
    TimerFired,
    TimerKey,
    TimerKind,
    Topic,
    TopicsChanged,
)
from fencepost.protocol.messages import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupMember,
    LeaveGroupRequest,
    Protocol,
    RequestBody,
    SyncGroupAssignment,
    SyncGroupRequest,
    SyncGroupResponse,
)
from fencepost.protocol.partitions import TopicPartition
from fencepost.protocol.profile import Profile
from fencepost.protocol.profiles import KAFKA_4_3
from fencepost.protocol.records import GroupMetadataKey, Record
from fencepost.protocol.settings import Settings
from fencepost_model.classic.coordinator import CoordinatorModel
from fencepost_model.classic.coordinator_state import CoordinatorState, Step
from fencepost_model.classic.state import Group
from fencepost_model.consumer.state import ConsumerGroup, Member
from fencepost_model.deadlines import Deadlines, after_step

T, U = b"\x01" * 16, b"\x02" * 16  #: ids of the topics t and u
TOPICS = (Topic("t", T, 3), Topic("u", U, 3))
Body = TypeVar("Body")

#: Short names for the kinds of records, in the order in which a test reads them.
KINDS = {
    GroupMetadataKey: "Group",
    ConsumerGroupMemberMetadataKey: "Member",
    ConsumerGroupMetadataKey: "Epoch",
    ConsumerGroupPartitionMetadataKey: "Partitions",
    ConsumerGroupTargetAssignmentMemberKey: "Target",
    ConsumerGroupTargetAssignmentMetadataKey: "TargetEpoch",
    ConsumerGroupCurrentMemberAssignmentKey: "Current",
}


def kinds(records: Iterable[Record]) -> list[str]:
    """Return the records written as kind and member, with ``-`` before a tombstone."""
    shown = []
    for record in records:
        key: Any = record.key
        member = f" {key.member_id}" if hasattr(key, "member_id") else ""
        shown.append(f"{'-' if record.value is None else ''}{KINDS[type(key)]}{member}")
    return shown


def subscription(
    *names: str,
    owned: Iterable[tuple[str, int]] = (),
    generation: int = embedded.NO_GENERATION,
    version: int = 3,
    rack: str | None = None,
) -> bytes:
    partitions = tuple(TopicPartition(topic, number) for topic, number in owned)
    body = embedded.Subscription(names, owned_partitions=partitions, generation_id=generation, rack_id=rack)
    return embedded.encode_subscription(body, version)


def assignment(*rows: tuple[str, list[int]]) -> bytes:
    """Return an assignment with its rows in the given order."""
    return embedded.encode_topics(rows, 3)


class Scene:
    """A coordinator that takes events and answers. ``deadlines``: the timers that run; ``log``: all records."""

    def __init__(self, profile: Profile = KAFKA_4_3, log: tuple[Record, ...] = (), **settings: Any) -> None:
        settings = {"group_initial_rebalance_delay_ms": 0, "group_consumer_assignment_interval_ms": 0, **settings}
        self.model = CoordinatorModel(replace(Settings(), **settings), profile)
        self.state: CoordinatorState = self.model.initial()
        self.deadlines: Deadlines = {}
        self.now, self.asked = 0, 0
        self.log = log
        for event in (
            TopicsChanged(0, TOPICS, version=1),
            LoadStarted(0, leader_epoch=1),
            Load(0, leader_epoch=1, records=log),
        ):
            self.step(event)

    # ---- events -----------------------------------------------------------------------------------------------------

    def step(self, event: Event, new_id: str = "") -> Step:
        """Apply an event and take the first of the possible results."""
        step = self.model.successors(self.state, event, new_id)[0]
        self.deadlines = after_step(self.deadlines, event, step).deadlines
        self.state = step.state
        self.log += step.outcome.records
        return step

    def send(self, body: RequestBody, new_id: str = "", version: int | None = None) -> Step:
        """Send a request, and leave its records unreplicated; ``asked`` is its id."""
        if version is None:
            version = 1 if isinstance(body, ConsumerGroupHeartbeatRequest) else 5
            version = 4 if isinstance(body, HeartbeatRequest | LeaveGroupRequest) else version
        self.asked += 1
        return self.step(
            Request(self.now, id=self.asked, version=version, client_id="c", client_host="/h", body=body), new_id
        )

    def replicate(self) -> Step:
        return self.step(Appended(self.now, offset=self.state.durable + self.state.undurable))

    def fail(self, error: ErrorCode = ErrorCode.NOT_ENOUGH_REPLICAS) -> Step:
        return self.step(AppendFailed(self.now, error))

    def fire(self, kind: TimerKind, member: str = "", operation: int = 0) -> Step:
        """Let the timer run out at its deadline."""
        group = "" if kind is TimerKind.OPERATION else "g"
        key = TimerKey(kind, group, member, operation)
        self.now = max(self.now, self.deadlines[key])
        return self.step(TimerFired(self.now, key))

    def ask(self, body: RequestBody, answer: type[Body], new_id: str = "", version: int | None = None) -> Body:
        """Send a request, replicate all records, and return the answer. ``written`` holds the request's records."""
        step = self.send(body, new_id, version)
        self.written = step.outcome.records
        replies = {r.request_id: r.body for r in (*step.outcome.replies, *self.replicate().outcome.replies)}
        found = replies[self.asked]
        assert isinstance(found, answer)
        return found

    # ---- requests ---------------------------------------------------------------------------------------------------

    def beat(
        self,
        member: str,
        epoch: int = 0,
        instance: str | None = None,
        names: tuple[str, ...] | None = ("t",),
        **more: Any,
    ) -> ConsumerGroupHeartbeatRequest:
        if epoch:
            return ConsumerGroupHeartbeatRequest(
                "g", member_id=member, member_epoch=epoch, instance_id=instance, **more
            )
        more = {"topic_partitions": (), **more}
        return ConsumerGroupHeartbeatRequest(
            "g",
            member_id=member,
            member_epoch=0,
            instance_id=instance,
            rebalance_timeout_ms=1_000,
            subscribed_topic_names=names,
            **more,
        )

    def beats(
        self, member: str, epoch: int = 0, instance: str | None = None, **more: Any
    ) -> ConsumerGroupHeartbeatResponse:
        return self.ask(self.beat(member, epoch, instance, **more), ConsumerGroupHeartbeatResponse)

    def join(
        self, member: str, instance: str | None = None, *, data: bytes | None = None, **more: Any
    ) -> JoinGroupRequest:
        offers = (Protocol("range", subscription("t") if data is None else data),)
        more = {"session_timeout_ms": 10_000, "rebalance_timeout_ms": 20_000, "protocols": offers, **more}
        return JoinGroupRequest("g", member_id=member, group_instance_id=instance, protocol_type="consumer", **more)

    def joins(self, member: str, instance: str | None = None, *, new_id: str = "", **more: Any) -> JoinGroupResponse:
        return self.ask(self.join(member, instance, **more), JoinGroupResponse, new_id)

    def syncs(self, member: str, generation: int, instance: str | None = None) -> SyncGroupResponse:
        body = SyncGroupRequest(
            "g",
            generation_id=generation,
            member_id=member,
            group_instance_id=instance,
            protocol_type="consumer",
            protocol_name="range",
        )
        return self.ask(body, SyncGroupResponse)

    def heartbeat(self, member: str, generation: int, instance: str | None = None) -> ErrorCode:
        return self.ask(
            HeartbeatRequest("g", generation_id=generation, member_id=member, group_instance_id=instance),
            HeartbeatResponse,
        ).error_code

    def leave(self, *members: str) -> None:
        self.ask(LeaveGroupRequest("g", tuple(LeaveGroupMember(member) for member in members)), object)

    # ---- groups -----------------------------------------------------------------------------------------------------

    def stable(
        self,
        assigned: dict[str, bytes],
        *,
        instances: dict[str, str] | None = None,
        data: dict[str, bytes] | None = None,
    ) -> Group:
        """Return a Stable classic group of these members and assignments at generation 1; the first one leads."""
        self.forming(tuple(assigned), instances=instances, data=data)
        self.formed()
        leader = self.classic.leader or ""
        self.lead(leader, assigned)
        self.replicate()
        assert self.classic.state == "Stable"
        return self.classic

    def forming(
        self, members: tuple[str, ...], *, instances: dict[str, str] | None = None, data: dict[str, bytes] | None = None
    ) -> None:
        """Let all members join; the first rebalance is still open."""
        for member in members:
            body = self.join("", (instances or {}).get(member), data=(data or {}).get(member))
            self.send(body, new_id=member, version=3)
            self.replicate()

    def formed(self) -> None:
        """End the first rebalance. A member that joined later extends the delay once, by zero (C-JOIN-43)."""
        while self.classic.state == "PreparingRebalance":
            self.fire(TimerKind.JOIN)

    def lead(self, leader: str, assigned: dict[str, bytes]) -> Step:
        """Send the leader's SyncGroup; its record is written but not replicated."""
        rows = tuple(SyncGroupAssignment(member, data) for member, data in assigned.items())
        instance = next(m.instance for m in self.classic.members if m.member_id == leader)
        generation = self.classic.generation
        return self.send(
            SyncGroupRequest(
                "g",
                generation_id=generation,
                member_id=leader,
                group_instance_id=instance,
                protocol_type="consumer",
                protocol_name="range",
                assignments=rows,
            )
        )

    @property
    def classic(self) -> Group:
        group = self.state.group("g")
        assert group is not None
        return group

    @property
    def group(self) -> ConsumerGroup:
        group = self.state.consumer_group("g")
        assert group is not None
        return group

    def member(self, member_id: str) -> Member:
        member = self.group.member(member_id)
        assert member is not None
        return member

    def due(self, kind: TimerKind, member: str = "") -> int | None:
        """Return when the timer runs out, in ms from now, or None if it does not run."""
        at = self.deadlines.get(TimerKey(kind, "g", member))
        return None if at is None else at - self.now
