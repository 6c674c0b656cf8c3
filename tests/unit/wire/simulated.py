"""Wire traces that are right by construction: the group model as a broker, with clients and a slow network around it.

Requests are handled some time after they are sent, answers arrive some time after they are sent, records become durable
late, and members crash. The result is the trace that a recorder between them would have written.
"""

from __future__ import annotations

import heapq
import random
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from fencepost.protocol.errors import ErrorCode as E
from fencepost.protocol.messages import (
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupMember,
    LeaveGroupRequest,
    Protocol,
    RequestBody,
    ResponseBody,
    SyncGroupAssignment,
    SyncGroupRequest,
    SyncGroupResponse,
)
from fencepost.protocol.profiles import KAFKA_4_3
from fencepost.protocol.settings import Settings
from fencepost_conformance.judge.checker.answers import seen
from fencepost_conformance.traces.convert import wire_body
from fencepost_conformance.traces.files import WireTrace
from fencepost_conformance.traces.lines import GROUP_APIS, ConnectedLine, DisconnectedLine, ReceivedLine, SentLine
from fencepost_model.classic.group import GroupModel
from fencepost_model.classic.state import Arrive, Durable, Fire, Timer

KEY = {kind: (key, name) for name, (key, *kinds) in GROUP_APIS.items() for kind in kinds}
HIGHEST = {"JoinGroup": 9, "SyncGroup": 5, "Heartbeat": 4, "LeaveGroup": 5}


def subscription(topic: str, user_data: bytes) -> bytes:
    """Return a consumer's subscription: version 0, one topic, user data (A-EMB-01)."""
    name = topic.encode()
    return struct.pack(">hih", 0, 1, len(name)) + name + struct.pack(">i", len(user_data)) + user_data


@dataclass
class Client:
    name: str
    instance: str | None
    connection: int
    member_id: str = ""
    generation: int = -1
    version: int = 9
    alive: bool = True
    beating: int = 0  #: the number of the valid heartbeat loop; others stop


@dataclass
class Simulation:
    """A simulation. ``latency_ms``: the maximum travel time of a frame. ``run`` returns the trace of ``length_ms``."""

    seed: int
    clients: int = 4
    length_ms: int = 20_000
    latency_ms: int = 30
    crashes: float = 0.2
    static: float = 0.3
    settings: Settings = field(default_factory=lambda: Settings(group_initial_rebalance_delay_ms=500))

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        self.model = GroupModel(self.settings, KAFKA_4_3, group_id="g")
        self.state = self.model.initial()
        self.now = 0
        self.order = 0
        self.agenda: list[tuple[int, int, Callable[[], None]]] = []
        self.lines: list[Any] = []
        self.deadlines: dict[Timer, int] = {}
        self.asked: dict[int, tuple[Client, RequestBody, int]] = {}
        self.connections = 0
        self.free: dict[int, int] = {}

    def at(self, delay: int, do: Callable[[], None]) -> None:
        self.order += 1
        heapq.heappush(self.agenda, (self.now + delay, self.order, do))

    def travel(self) -> int:
        return self.random.randint(0, self.latency_ms)

    def run(self) -> WireTrace:
        for number in range(self.clients):
            instance = f"i{number}" if self.random.random() < self.static else None
            self.at(self.random.randint(0, 3_000), lambda n=number, i=instance: self.arrive(f"c{n}", i))
        while self.agenda and self.agenda[0][0] <= self.length_ms:
            self.now, _, do = heapq.heappop(self.agenda)
            do()
        return WireTrace(self.settings, KAFKA_4_3, tuple(self.lines), self.seed, f"simulated-{self.seed}")

    # ---- the broker ---------------------------------------------------------------------------------------------

    def step(self, step: Any) -> None:
        result = self.random.choice(self.model.successors(self.state, step))
        self.state = result.state
        for timer, length in result.armed:
            deadline = self.deadlines[timer] = self.now + length
            self.at(length + self.random.randint(0, 5), lambda t=timer, d=deadline: self.fire(t, d))
        if result.output.records:
            self.at(self.random.randint(0, 12), self.durable)
        for number, body in result.output.replies:
            client, _, _ = self.asked[number]
            # Answers of one connection come in the order in which they were given.
            when = max(self.now + self.travel(), self.free.get(client.connection, 0))
            self.free[client.connection] = when
            self.at(when - self.now, lambda n=number, b=body: self.answered(n, b))

    def fire(self, timer: Timer, deadline: int) -> None:
        if timer in self.state.timers and self.deadlines[timer] == deadline:
            self.step(Fire(timer))

    def durable(self) -> None:
        if self.state.undurable:
            self.step(Durable(self.state.undurable))

    # ---- the wire -----------------------------------------------------------------------------------------------

    def send(self, client: Client, body: RequestBody) -> None:
        if not client.alive:
            return
        key, api = KEY[type(body)]
        version = client.version if api == "JoinGroup" else HIGHEST[api]
        number = len(self.asked) + 1
        self.asked[number] = client, body, version
        self.lines.append(
            SentLine(
                at_ms=self.now,
                connection=client.connection,
                correlation_id=number,
                api_key=key,
                api_version=version,
                client_id=client.name,
                body=wire_body(body),
            )
        )
        when = max(self.now + self.travel(), self.free.get(-client.connection, 0))
        self.free[-client.connection] = when
        request = Arrive(number, version, client.name, "", body, f"{client.instance or client.name}-{number:04}")
        self.at(when - self.now, lambda: self.step(request))

    def answered(self, number: int, body: ResponseBody) -> None:
        client, asked, version = self.asked[number]
        if not client.alive:
            return
        key, _ = KEY[type(asked)]
        body = seen(version, body)
        self.lines.append(
            ReceivedLine(
                at_ms=self.now,
                connection=client.connection,
                correlation_id=number,
                api_key=key,
                api_version=version,
                body=wire_body(body),
            )
        )
        self.react(client, asked, body)

    # ---- the clients --------------------------------------------------------------------------------------------

    def arrive(self, name: str, instance: str | None) -> None:
        self.connections += 1
        client = Client(name, instance, self.connections, version=self.random.choice((3, 9, 9, 9)))
        if instance is not None:
            client.version = 9
        self.lines.append(ConnectedLine(at_ms=self.now, connection=client.connection))
        self.join(client)
        end = self.random.randint(2_000, self.length_ms)
        self.at(end, lambda: self.crash(client) if self.random.random() < self.crashes else self.leave(client))
        self.at(end + self.random.randint(0, 4_000), lambda: self.arrive(name, instance))

    def crash(self, client: Client) -> None:
        if client.alive:
            client.alive = False
            self.lines.append(DisconnectedLine(at_ms=self.now, connection=client.connection, by="client"))

    def leave(self, client: Client) -> None:
        if client.member_id:
            self.send(client, LeaveGroupRequest("g", (LeaveGroupMember(client.member_id),)))
        client.beating += 1
        self.at(200, lambda: self.crash(client))

    def join(self, client: Client) -> None:
        client.beating += 1
        metadata = subscription("topic", f"{client.name}:{client.generation}".encode())
        protocols = (Protocol("range", metadata), Protocol("sticky", metadata))
        body = JoinGroupRequest(
            "g",
            session_timeout_ms=6_000,
            rebalance_timeout_ms=8_000,
            member_id=client.member_id,
            group_instance_id=client.instance,
            protocol_type="consumer",
            protocols=protocols,
        )
        self.send(client, body)

    def beat(self, client: Client, loop: int) -> None:
        if client.alive and client.beating == loop:
            self.send(
                client,
                HeartbeatRequest(
                    "g", generation_id=client.generation, member_id=client.member_id, group_instance_id=client.instance
                ),
            )
            self.at(self.random.randint(300, 700), lambda: self.beat(client, loop))

    def react(self, client: Client, asked: RequestBody, body: ResponseBody) -> None:
        error = getattr(body, "error_code", E.NONE)
        if isinstance(asked, LeaveGroupRequest):
            return
        if error in (E.UNKNOWN_MEMBER_ID, E.FENCED_INSTANCE_ID):
            client.member_id, client.generation = "", -1
            self.at(self.random.randint(50, 200), lambda: self.join(client))
        elif error in (E.REBALANCE_IN_PROGRESS, E.ILLEGAL_GENERATION):
            if not isinstance(asked, HeartbeatRequest) or asked.generation_id == client.generation:
                client.generation = -1
                self.at(self.random.randint(0, 200), lambda: self.join(client))
        elif isinstance(body, JoinGroupResponse) and error in (E.NONE, E.MEMBER_ID_REQUIRED):
            client.member_id = body.member_id
            if error is E.MEMBER_ID_REQUIRED:
                self.join(client)
                return
            client.generation = body.generation_id
            rows = tuple(
                SyncGroupAssignment(row.member_id, f"{row.member_id}@{body.generation_id}".encode())
                for row in body.members
                if not body.skip_assignment
            )
            name = body.protocol_name
            self.send(
                client,
                SyncGroupRequest(
                    "g",
                    generation_id=client.generation,
                    member_id=client.member_id,
                    group_instance_id=client.instance,
                    protocol_type="consumer",
                    protocol_name=name,
                    assignments=rows,
                ),
            )
        elif isinstance(body, SyncGroupResponse):
            client.beating += 1
            self.beat(client, client.beating)
