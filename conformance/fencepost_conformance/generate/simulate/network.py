"""The network: requests and answers that are lost, late, duplicated, or overtaken by later ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fencepost.member.events import Answered, CoordinatorFound, LookupFailed, MetadataChanged, RequestLost, Send
from fencepost.protocol.consumer_messages import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import Reply, Request
from fencepost.protocol.messages import (
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    RequestBody,
    SyncGroupRequest,
)
from fencepost.protocol.offset_messages import OffsetCommitRequest, OffsetFetchRequest

from ..carried import as_carried
from .host import AnyHost
from .plan import NetworkPlan
from .world import World

#: API versions of clients that know KIP-814
VERSIONS = {
    JoinGroupRequest: 9,
    SyncGroupRequest: 5,
    HeartbeatRequest: 4,
    LeaveGroupRequest: 5,
    ConsumerGroupHeartbeatRequest: 1,
    OffsetCommitRequest: 9,
    OffsetFetchRequest: 9,
}
#: and of older ones
_OLD = {JoinGroupRequest: 5, SyncGroupRequest: 3, HeartbeatRequest: 3, LeaveGroupRequest: 3}


class Network:
    """The network. ``plan``: how bad it is now."""

    def __init__(self, world: World, plan: NetworkPlan) -> None:
        self.plan = plan
        self._world = world
        self._rng = world.rng
        self._askers: dict[int, tuple[AnyHost, int, int]] = {}
        self._heard: set[tuple[str, int, int]] = set()
        #: processes whose requests had copies, by the number of the copy
        self._copied: dict[int, tuple[str, int]] = {}
        #: processes whose connection has closed
        self._closed: set[tuple[str, int]] = set()
        self._requests = 0

    def delay(self) -> int:
        return self._rng.randint(0, self.plan.delay_ms)

    def send(self, host: AnyHost, command: Send) -> None:
        """Send a request."""
        body, process, world = command.body, host.process, self._world
        closed = (host.plan.name, process) in self._closed
        self._closed.discard((host.plan.name, process))
        if closed or self._rng.random() < self.plan.lose:
            lost = RequestLost(world.now, request_id=command.request_id)
            world.later(self._rng.randint(1, 2_000), lambda: host.receive(process, lost))
            return
        world.later(self.delay(), lambda: self._arrive(host, process, command.request_id, body))
        if self._rng.random() < self.plan.duplicate:
            self._copy(host, process, command.request_id, body)

    def _copy(self, host: AnyHost, process: int, number: int, body: RequestBody) -> None:
        late = self.plan.late_joins_ms
        if late is None:
            self._world.later(2 * self.delay(), lambda: self._arrive(host, process, number, body))
        elif isinstance(body, JoinGroupRequest):
            self._world.later(self._rng.randint(0, late), lambda: self._arrive_late(host, process, number, body))

    def _arrive_late(self, host: AnyHost, process: int, number: int, body: JoinGroupRequest) -> None:
        group = self._world.core.consumer_groups.get(body.group_id)
        if group is not None and group.members:
            self._arrive(host, process, number, body)

    def _arrive(self, host: AnyHost, process: int, number: int, body: RequestBody) -> None:
        version = (_OLD if host.plan.old else VERSIONS)[type(body)]
        self._requests += 1
        copy = (host.plan.name, process, number) in self._heard
        if host.plan.is_consumer:
            self._heard.add((host.plan.name, process, number))
        if copy:
            self._copied[self._requests] = (host.plan.name, process)
        else:
            self._askers[self._requests] = (host, process, number)
        self._world.feed(
            Request(
                self._world.now,
                id=self._requests,
                version=version,
                client_id=host.plan.name,
                client_host="/host",
                body=as_carried(body, version),
            )
        )

    def answer(self, replies: Sequence[Reply]) -> None:
        """Send answers; the sender of a JoinGroup learns in which life of the group its generation is."""
        for reply in replies:
            copied, body = self._copied.pop(reply.request_id, None), reply.body
            if copied and isinstance(body, ConsumerGroupHeartbeatResponse) and body.assignment is not None:
                # Later answers do not repeat this assignment (M-RSP-01), so the member would never learn of it. A
                # client closes a connection with an unexpected answer, and then sends a full heartbeat (N-HB-05).
                self._closed.add(copied)
            asker = self._askers.pop(reply.request_id, None)
            if asker is not None:
                host, process, number = asker
                life = self._world.life(host) if isinstance(reply.body, JoinGroupResponse) else None
                self._answer(host, process, Answered(self._world.now, request_id=number, body=reply.body), life)

    def _answer(self, host: AnyHost, process: int, answer: Answered, life: tuple[int, int] | None) -> None:
        def deliver() -> None:
            if life is not None and process == host.process:
                host.life = life
            host.receive(process, replace(answer, at_ms=self._world.now))

        if self._rng.random() < self.plan.lose:
            lost = RequestLost(self._world.now, request_id=answer.request_id)
            self._world.later(self._rng.randint(1, 2_000), lambda: host.receive(process, lost))
        else:
            self._world.later(self.delay(), deliver)

    def find_coordinator(self, host: AnyHost) -> None:
        process, world = host.process, self._world

        def answer() -> None:
            if world.broker.active:
                host.receive(process, CoordinatorFound(world.now, node=world.broker.leader_epoch))
            else:
                host.receive(process, LookupFailed(world.now, ErrorCode.COORDINATOR_NOT_AVAILABLE))

        world.later(self.delay(), answer)

    def fetch_metadata(self, host: AnyHost) -> None:
        process, world = host.process, self._world
        world.later(
            self.delay(),
            lambda: host.receive(process, MetadataChanged(world.now, tuple(world.broker.topics.values()))),
        )
