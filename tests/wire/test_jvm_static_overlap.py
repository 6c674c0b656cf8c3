"""A static member of a classic group may own partitions that the coordinator has assigned to another process, until its
next request is rejected (C-STATIC-03, C-STATIC-13, C-STATIC-14), in Kafka and under ``intended``."""

from __future__ import annotations

from typing import Final

import pytest
from jvm_traces import KafkaOf

from fencepost.protocol import events as ev
from fencepost.protocol import messages as m
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.profile import Profile
from fencepost.protocol.profiles import INTENDED, PROFILES
from fencepost.protocol.settings import Settings
from fencepost_conformance.targets.core import Core
from fencepost_conformance.traces.observation import Observation

SETTINGS = Settings()
JOIN = ev.TimerKey(ev.TimerKind.JOIN, "g")
#: the ids that targets draw, in this order
IDS: Final = (
    "5feceb66-ffc8-4f38-9952-786c6d696c79",
    "6b86b273-ff34-4ce1-9d6b-804eff5a3f57",
    "d4735e3a-265e-46ee-a03f-59718b9b5d03",
)
SHARE = b"the partitions"


def _request(at_ms: int, number: int, version: int, body: m.RequestBody) -> ev.Request:
    return ev.Request(at_ms, id=number, version=version, client_id="client", client_host="/127.0.0.1", body=body)


def _joins(at_ms: int, number: int, instance: str, member_id: str = "") -> ev.Request:
    body = m.JoinGroupRequest(
        "g",
        session_timeout_ms=60_000,
        rebalance_timeout_ms=20_000,
        member_id=member_id,
        group_instance_id=instance,
        protocol_type="work",
        protocols=(m.Protocol("even", b"owns nothing yet"),),
    )
    return _request(at_ms, number, 9, body)


def _syncs(at_ms: int, number: int, generation: int, instance: str, member_id: str, **shares: bytes) -> ev.Request:
    body = m.SyncGroupRequest(
        "g",
        generation_id=generation,
        member_id=member_id,
        group_instance_id=instance,
        protocol_type="work",
        protocol_name="even",
        assignments=tuple(m.SyncGroupAssignment(f"{who}-{IDS[int(who[1:])]}", each) for who, each in shares.items()),
    )
    return _request(at_ms, number, 5, body)


def _beats(at_ms: int, number: int, instance: str, member_id: str) -> ev.Request:
    body = m.HeartbeatRequest("g", generation_id=1, member_id=member_id, group_instance_id=instance)
    return _request(at_ms, number, 4, body)


OLD, NEW = (f"i0-{each}" for each in IDS[:2])
#: a process has the share; another process joins with its instance id; the first one sends a heartbeat
SECOND_PROCESS = (
    ev.Load(0, leader_epoch=1, records=()),
    _joins(0, 1, "i0"),
    ev.Appended(1, offset=1),
    ev.TimerFired(3_000, JOIN),
    _syncs(3_000, 2, 1, "i0", OLD, i0=SHARE),
    ev.Appended(3_001, offset=2),
    _joins(4_000, 3, "i0"),
    ev.Appended(4_001, offset=3),
    _syncs(4_002, 4, 1, "i0", NEW),
    _beats(5_000, 5, "i0", OLD),
)
LEADER, SLOW, THIRD = (f"i{number}-{each}" for number, each in enumerate(IDS))
#: the slow member has the share and misses a join phase; the leader assigns the share to the third member
MISSED_JOIN = (
    ev.Load(0, leader_epoch=1, records=()),
    _joins(0, 1, "i0"),
    ev.Appended(1, offset=1),
    _joins(2, 2, "i1"),
    ev.TimerFired(3_000, JOIN),
    ev.TimerFired(6_000, JOIN),
    _syncs(6_000, 3, 1, "i0", LEADER, i0=b"", i1=SHARE),
    ev.Appended(6_001, offset=2),
    _syncs(6_002, 4, 1, "i1", SLOW),
    _joins(7_000, 5, "i2"),
    _joins(7_001, 6, "i0", LEADER),
    _beats(8_000, 7, "i1", SLOW),
    ev.TimerFired(27_000, JOIN),
    _syncs(27_001, 8, 2, "i0", LEADER, i0=b"", i1=b"", i2=SHARE),
    ev.Appended(27_002, offset=3),
    _syncs(27_003, 9, 2, "i2", THIRD),
    _beats(28_000, 10, "i1", SLOW),
)


def _two_processes_own_a_share(seen: list[Observation]) -> None:
    answers = {reply.request_id: reply.body for each in seen for reply in each.replies}
    (first, second) = (answers[2], answers[4])
    assert isinstance(first, m.SyncGroupResponse)
    assert isinstance(second, m.SyncGroupResponse)
    assert (first.assignment, second.assignment) == (SHARE, SHARE)
    joined = answers[3]
    assert isinstance(joined, m.JoinGroupResponse)
    assert (joined.error_code, joined.generation_id, joined.member_id) == (ErrorCode.NONE, 1, NEW)
    assert answers[5] == m.HeartbeatResponse(error_code=ErrorCode.FENCED_INSTANCE_ID)


def _two_members_own_a_share(seen: list[Observation]) -> None:
    answers = {reply.request_id: reply.body for each in seen for reply in each.replies}
    slow, third, joined = answers[4], answers[9], answers[6]
    assert isinstance(slow, m.SyncGroupResponse)
    assert isinstance(third, m.SyncGroupResponse)
    assert (slow.assignment, third.assignment) == (SHARE, SHARE)
    assert isinstance(joined, m.JoinGroupResponse)
    assert {each.member_id for each in joined.members} == {LEADER, SLOW, THIRD}
    assert answers[7] == m.HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)
    assert answers[10] == m.HeartbeatResponse(error_code=ErrorCode.ILLEGAL_GENERATION)


SCENES = {
    "second process": (SECOND_PROCESS, _two_processes_own_a_share),
    "missed join": (MISSED_JOIN, _two_members_own_a_share),
}


@pytest.mark.parametrize("name", SCENES)
@pytest.mark.parametrize("profile", [INTENDED, PROFILES["kafka-4.4"]], ids=lambda profile: profile.name)
def test_the_core_has_two_owners(profile: Profile, name: str) -> None:
    events, judge = SCENES[name]
    judge(list(Core().run(SETTINGS, profile, events)))


@pytest.mark.jvm
@pytest.mark.parametrize("name", SCENES)
@pytest.mark.parametrize("release", ["4.3.1", "4.4.0"])
def test_kafka_has_two_owners(kafka_of: KafkaOf, release: str, name: str) -> None:
    events, judge = SCENES[name]
    judge(list(kafka_of(release).run(SETTINGS, PROFILES["kafka-4.4"], events)))
