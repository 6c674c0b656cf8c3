"""The coordinator, driven by the closed system's messages: requests to events, answers back, timers and when they are
due."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from fencepost.protocol.consumer_messages import ConsumerGroupHeartbeatResponse
from fencepost.protocol.events import Event, Request, TimerKind
from fencepost.protocol.messages import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupResponse,
    RequestBody,
    ResponseBody,
    SyncGroupResponse,
)
from fencepost.protocol.records import Record
from fencepost.protocol.settings import MigrationPolicy

from ...classic.state import Group
from ...consumer.state import ConsumerGroup
from .. import coordinator as classic
from ..consumer.state import Heartbeat
from ..consumer.translate import NOW, Translation
from ..coordinator import CLIENT_HOST, CLIENT_ID, GROUP_ID, LATE, NOBODY
from ..values import Client as ClassicClient
from ..values import JoinRequest
from . import state
from .config import MixedConfig
from .machine import Log, Machine, Memory, Result

HEARTBEAT_VERSION, CONSUMER_HEARTBEAT_VERSION = 4, 1


class Done(NamedTuple):
    """The result of a coordinator step: its memory, its records, the answers by client number, and its input."""

    memory: Memory
    records: tuple[Record, ...]
    replies: tuple[tuple[int, state.Reply], ...]
    events: tuple[Event, ...]


class Coordinator:
    """The machine for a configuration, and its messages."""

    def __init__(self, config: MixedConfig) -> None:
        self.config = config
        self.machine = Machine(config)
        self._messages = classic.Coordinator(config.classic)
        self._translation = Translation(config.partitions, config.classic.rebalance_timeout_ms)

    def get(self, memory: Memory, client: int, request: state.Request, new_id: str) -> Iterator[Done]:
        """Yield the results of a request."""
        version: int
        body: RequestBody
        if isinstance(request, Heartbeat):
            version, body = CONSUMER_HEARTBEAT_VERSION, self._translation.body(request)
        else:
            arrive = self._messages.request(client, request, "")
            version, body = arrive.version, arrive.body
        event = Request(
            NOW,
            id=client + 1 if request.awaited else LATE,
            version=version,
            client_id=CLIENT_ID,
            client_host=CLIENT_HOST,
            body=body,
        )
        return (self._done(result) for result in self.machine.step(memory, event, new_id))

    def heartbeat(self, memory: Memory, client: int, member: ClassicClient) -> tuple[Done, str]:
        """Return the result of a classic heartbeat, and its answer."""
        return self._heartbeat(memory, member.member_id, self.config.instance(client), member.generation)

    def asks_to_rejoin(self, memory: Memory, member_id: str, epoch: int) -> bool:
        """Return whether a heartbeat of the classic member, sent now, would ask it to rejoin (X-HB-03)."""
        return self._heartbeat(memory, member_id, "", epoch)[1] == "REBALANCE_IN_PROGRESS"

    def _heartbeat(self, memory: Memory, member_id: str, instance: str, generation: int) -> tuple[Done, str]:
        body = HeartbeatRequest(
            GROUP_ID, generation_id=generation, member_id=member_id, group_instance_id=instance or None
        )
        event = Request(
            NOW, id=LATE, version=HEARTBEAT_VERSION, client_id=CLIENT_ID, client_host=CLIENT_HOST, body=body
        )
        (result,) = self.machine.step(memory, event)
        (error,) = [body.error_code.name for _, body in result.replies if isinstance(body, HeartbeatResponse)]
        return self._done(result), error

    def fire(self, memory: Memory, kind: TimerKind, member_id: str) -> Iterator[Done]:
        """Expire a timer."""
        return (self._done(result) for result in self.machine.fire(memory, kind, member_id))

    def fail_over(self, memory: Memory, log: Log) -> Done:
        return self._done(self.machine.fail_over(memory, log))

    def _done(self, result: Result) -> Done:
        awaited = ((to - 1, body) for to, body in result.replies if NOBODY < to < LATE)
        replies = tuple((to, self._reply(body)) for to, body in awaited)
        return Done(result.memory, result.records, replies, result.events)

    def _reply(self, body: ResponseBody) -> state.Reply:
        if isinstance(body, JoinGroupResponse | SyncGroupResponse):
            return classic.reply_of(body)
        if isinstance(body, ConsumerGroupHeartbeatResponse):
            return self._translation.reply(body)
        raise TypeError(f"no client waits for {type(body).__name__}")


def needs_id(config: MixedConfig, memory: Memory, request: JoinRequest) -> bool:
    """Return whether answering the request uses up a member id."""
    asked = isinstance(memory.group, ConsumerGroup) and memory.group.members
    return not request.member_id and not (asked and config.policy is MigrationPolicy.DISABLED)


# ---- timers ----------------------------------------------------------------------------------------------------------


def armed(memory: Memory, kind: TimerKind) -> list[tuple[TimerKind, str]]:
    """Return the running timers of a kind. The session of a member is one timer or the other, by the kind of the
    group."""
    kinds = {kind, TimerKind.CONSUMER_SESSION} if kind is TimerKind.SESSION else {kind}
    return sorted((timer for timer in memory.timers if timer[0] in kinds), key=lambda timer: timer[1])


def is_due(memory: Memory, kind: TimerKind, name: str, held: frozenset[str]) -> bool:
    """Return whether a timer is sure to fire: all members that it concerns are abandoned. ``held``: ids that clients
    know."""
    group = memory.group
    alive = held
    if isinstance(group, Group):
        alive |= {m.member_id for m in group.members if (m.join or NOBODY) > NOBODY or (m.sync or NOBODY) > NOBODY}
        if kind is TimerKind.JOIN:
            missing = {member.member_id for member in group.members if member.join is None} | group.pending_join
            return memory.delay is not None or not missing & alive
        if kind is TimerKind.SYNC:
            return not group.pending_sync & alive
    return name not in alive
