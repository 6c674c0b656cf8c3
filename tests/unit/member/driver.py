"""Drive one member in tests: feed events, keep commands, with shortcuts for the common exchanges."""

from __future__ import annotations

from typing import Any

from driven import Driven

from fencepost.member import ClassicMemberState, Member, MemberSettings, step
from fencepost.member.consumer_protocol import Assignment, Subscription, encode_assignment, encode_subscription
from fencepost.member.events import (
    Answered,
    CancelMemberTimer,
    Command,
    CoordinatorFound,
    Failure,
    FindCoordinator,
    Listener,
    ListenerDone,
    MemberEvent,
    MemberTimer,
    MemberTimerFired,
    MetadataChanged,
    Poll,
    RequestMetadata,
    Returned,
    Send,
    SetMemberTimer,
    Subscribe,
)
from fencepost.member.partitions import TopicPartition
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import Topic
from fencepost.protocol.messages import (
    HeartbeatResponse,
    JoinGroupMember,
    JoinGroupResponse,
    SyncGroupResponse,
)

T0, T1, T2 = (TopicPartition("t", number) for number in range(3))
CLUSTER = (Topic("t", b"\1" * 16, 3), Topic("u", b"\2" * 16, 1))


def subscription(*topics: str, owned: tuple[TopicPartition, ...] = (), generation: int = -1) -> bytes:
    return encode_subscription(Subscription(topics, None, owned, generation))


class Driver(Driven):
    """A member under test: ``member`` is its present state, ``commands`` are those of the last event, ``listener`` all
    listener calls so far."""

    def __init__(self, **settings: Any) -> None:
        self.member = Member(MemberSettings("g", **settings))
        self.now = 1_000
        self.commands: tuple[Command, ...] = ()
        self.listener: list[Listener] = []
        self.timers: dict[MemberTimer, int] = {}
        self.states: list[ClassicMemberState] = [self.member.state]

    def do(self, event: MemberEvent, jitter: float = 1.0) -> tuple[Command, ...]:
        self.member, self.commands = step(self.member, event, jitter)
        if self.states[-1] is not self.member.state:
            self.states.append(self.member.state)
        self.listener += [command for command in self.commands if isinstance(command, Listener)]
        self.set_timers(SetMemberTimer, CancelMemberTimer)
        return self.commands

    # --- application ---

    def poll(self, *, listener: bool = True) -> Failure | None:
        """Run one poll; the listener returns immediately by default. The commands of the last step remain visible."""
        kept = self.do(Poll(self.now))
        while listener and any(isinstance(command, Listener) for command in self.commands):
            kept += self.done()
        self.commands = kept
        if not any(isinstance(command, Listener) for command in self.commands) or listener:
            return self.only(Returned).failure
        return None

    def done(self, error: str | None = None) -> tuple[Command, ...]:
        return self.do(ListenerDone(self.now, error))

    def calls(self) -> list[tuple[str, tuple[TopicPartition, ...]]]:
        calls = [(call.call.value, call.partitions) for call in self.listener]
        self.listener.clear()
        return calls

    # --- network and clock ---

    def wait(self, delay_ms: int) -> None:
        """Let time pass; timers fire when they are due."""
        end = self.now + delay_ms
        kept: tuple[Command, ...] = ()
        while self.timers and min(self.timers.values()) <= end:
            timer = min(self.timers, key=self.timers.__getitem__)
            self.now = self.timers.pop(timer)
            kept += self.do(MemberTimerFired(self.now, timer))
        self.now = end
        self.commands = kept

    def answer(self, body: Any, request_id: int | None = None) -> tuple[Command, ...]:
        """Answer a request, by default the last one."""
        sent = self.member.sent[-1].request_id if request_id is None else request_id
        return self.do(Answered(self.now, request_id=sent, body=body))

    def start(self, *topics: str) -> None:
        """Subscribe; coordinator and metadata are known, and the first JoinGroup is sent."""
        self.do(Subscribe(self.now, frozenset(topics or ("t",))))
        self.metadata()
        self.poll()
        self.only(FindCoordinator)
        self.do(CoordinatorFound(self.now, node=1))
        self.poll()
        self.only(Send)

    def follow(self, generation: int = 1, member_id: str = "m", protocol: str | None = None) -> None:
        """Answer the JoinGroup: another member leads."""
        name = protocol or self.member.assignors[0].name
        self.answer(
            JoinGroupResponse(
                ErrorCode.NONE,
                generation_id=generation,
                protocol_type="consumer",
                protocol_name=name,
                leader="other",
                member_id=member_id,
            )
        )

    def lead(self, *others: tuple[str, bytes], generation: int = 1, skip: bool = False) -> None:
        """Answer the JoinGroup: this member leads itself and ``others``."""
        name = self.member.assignors[0].name
        rows = tuple(
            JoinGroupMember(member_id, metadata=data) for member_id, data in (("m", subscription("t")), *others)
        )
        self.answer(
            JoinGroupResponse(
                ErrorCode.NONE,
                generation_id=generation,
                protocol_type="consumer",
                protocol_name=name,
                leader="m",
                skip_assignment=skip,
                member_id="m",
                members=rows,
            )
        )

    def metadata(self, cluster: tuple[Topic, ...] = CLUSTER) -> None:
        self.only(RequestMetadata)
        self.do(MetadataChanged(self.now, cluster))

    def sync(self, *partitions: TopicPartition) -> None:
        name = self.member.generation.protocol_name
        data = encode_assignment(Assignment(partitions))
        self.answer(SyncGroupResponse(ErrorCode.NONE, protocol_type="consumer", protocol_name=name, assignment=data))

    def settle(self, *partitions: TopicPartition, generation: int = 1) -> None:
        """Bring the member to a stable generation as a follower that owns ``partitions``."""
        if self.member.join is None:
            self.start()
        self.follow(generation)
        self.sync(*partitions)
        self.poll()

    def beat(self, error: ErrorCode) -> None:
        """Wait for the next heartbeat and answer it."""
        self.wait(self.member.settings.heartbeat_interval_ms)
        self.answer(HeartbeatResponse(error))
