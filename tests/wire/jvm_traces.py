"""Shortcuts for events, and targets that skip the test where they cannot run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

import pytest

from fencepost.protocol.events import Event, Load, Reply, Request, TimerKey, TimerKind
from fencepost.protocol.messages import (
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupMember,
    LeaveGroupRequest,
    Protocol,
    RequestBody,
    SyncGroupAssignment,
    SyncGroupRequest,
)
from fencepost.protocol.profiles import KAFKA_4_3
from fencepost.protocol.settings import Settings
from fencepost.protocol.view import GroupView
from fencepost_conformance.common.errors import CannotRun
from fencepost_conformance.targets.jvm import harness
from fencepost_conformance.targets.kafka_jvm import KafkaJvm
from fencepost_conformance.traces.observation import Observation

Key = TypeVar("Key")
Value = TypeVar("Value")
#: Kafka's coordinator of a release, from the fixture ``kafka_of``
KafkaOf = Callable[[str], KafkaJvm]
RANGE = (Protocol("range", b"\x00m\xff"),)
#: these tests are about this release
RELEASE = "4.3.1"
LOADED = Load(0, leader_epoch=1, records=())


def require_harness(version: str = RELEASE) -> None:
    """Fetch and compile what the harness needs, or skip the test with the reason."""
    try:
        harness.command(version)
    except CannotRun as reason:
        pytest.skip(str(reason).splitlines()[0])


def request(at_ms: int, number: int, version: int, body: RequestBody, denied: frozenset[str] = frozenset()) -> Request:
    return Request(
        at_ms, id=number, version=version, client_id="client", client_host="/127.0.0.1", body=body, denied=denied
    )


def join(
    at_ms: int,
    number: int,
    member: str = "",
    *,
    group: str = "g",
    instance: str | None = None,
    protocols: tuple[Protocol, ...] = RANGE,
    session: int = 10_000,
    rebalance: int = 60_000,
    version: int = 9,
) -> Request:
    body = JoinGroupRequest(
        group,
        session_timeout_ms=session,
        rebalance_timeout_ms=rebalance,
        member_id=member,
        group_instance_id=instance,
        protocol_type="consumer",
        protocols=protocols,
    )
    return request(at_ms, number, version, body)


def sync(at_ms: int, number: int, member: str, generation: int = 1, *, given: bytes | None = None) -> Request:
    assignments = () if given is None else (SyncGroupAssignment(member, given),)
    return request(
        at_ms,
        number,
        5,
        SyncGroupRequest(
            "g",
            generation_id=generation,
            member_id=member,
            protocol_type="consumer",
            protocol_name="range",
            assignments=assignments,
        ),
    )


def heartbeat(at_ms: int, number: int, member: str, generation: int = 1, *, group: str = "g") -> Request:
    return request(at_ms, number, 4, HeartbeatRequest(group, generation_id=generation, member_id=member))


def leave(at_ms: int, number: int, *members: str, version: int = 5) -> Request:
    return request(at_ms, number, version, LeaveGroupRequest("g", tuple(map(LeaveGroupMember, members))))


def run(kafka: KafkaJvm, *events: Event, settings: Settings | None = None) -> list[Observation]:
    return kafka.run(settings or Settings(), KAFKA_4_3, events)


def only(observation: Observation) -> Reply:
    """Return the only reply of the step."""
    (reply,) = observation.replies
    return reply


def keep(state: dict[Key, Value], changes: Mapping[Key, Value | None]) -> None:
    """Update the known values; None removes one."""
    for key, value in changes.items():
        if value is None:
            state.pop(key)
        else:
            state[key] = value


def armed(observations: list[Observation]) -> dict[TimerKey, int]:
    """Return the timers of groups that are set after these steps; the timer of the expiry check always is."""
    result: dict[TimerKey, int] = {}
    for observation in observations:
        keep(result, observation.timers)
    return {key: at for key, at in result.items() if key.kind is not TimerKind.EXPIRY}


def groups(observations: list[Observation]) -> dict[str, GroupView]:
    """Return the groups that exist after these steps."""
    result: dict[str, GroupView] = {}
    for observation in observations:
        keep(result, observation.groups)
    return result
