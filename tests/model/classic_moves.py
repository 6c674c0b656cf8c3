"""Moves that clients of classic groups may make in a search (``shortest``), and logs to start from."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from shortest import NOW, Ask, Fire, Move, Search

from fencepost.protocol import embedded
from fencepost.protocol.events import TimerKind
from fencepost.protocol.messages import (
    DeleteGroupsRequest,
    JoinGroupRequest,
    LeaveGroupMember,
    LeaveGroupRequest,
    ListGroupsRequest,
    Protocol,
    SyncGroupAssignment,
    SyncGroupRequest,
)
from fencepost.protocol.partitions import TopicPartition
from fencepost.protocol.profiles import INTENDED
from fencepost.protocol.records import GroupMetadataValue, Record
from fencepost_conformance.targets.ids import member_id


def _of(topic: str) -> bytes:
    return embedded.encode_subscription(embedded.Subscription((topic,), None, ()), 1)


PLAIN: Final = Protocol("range", _of("t"))
OTHER: Final = Protocol("roundrobin", _of("t"))
OF_U: Final = Protocol("range", _of("u"))
#: Bytes that end before the subscription has begun (X-UP-06).
SHORT: Final = Protocol("range", b"")
#: A subscription of version 0 with -7 topics (G-DATA-10).
IMPOSSIBLE: Final = Protocol("range", b"\x00\x00\xff\xff\xff\xf9")

ROUND: Final = Fire(TimerKind.JOIN)
TIMED_OUT: Final = Fire(TimerKind.OPERATION)
DELETE: Final = Ask(DeleteGroupsRequest(("g",)))
LIST: Final = Ask(ListGroupsRequest())
#: The ids of the first and the second member of a trace, by instance id.
I1, I2 = member_id("i1", 0), member_id("i2", 1)


def joins(member: str, *protocols: Protocol, instance: str | None = None, timeout: int = 60_000) -> Ask:
    """Return a JoinGroup; ``timeout`` is the rebalance timeout in ms."""
    return Ask(
        JoinGroupRequest(
            "g",
            session_timeout_ms=10_000,
            rebalance_timeout_ms=timeout,
            member_id=member,
            group_instance_id=instance,
            protocol_type="consumer",
            protocols=protocols or (PLAIN,),
        )
    )


def syncs(member: str, generation: int, *partitions: int) -> Ask:
    """Return a SyncGroup that assigns these partitions of topic ``t`` to its sender, if the sender is the leader."""
    share = embedded.Assignment(tuple(TopicPartition("t", number) for number in partitions), None)
    rows = (SyncGroupAssignment(member, embedded.encode_assignment(share)),)
    return Ask(
        SyncGroupRequest(
            "g",
            generation_id=generation,
            member_id=member,
            protocol_type="consumer",
            protocol_name="range",
            assignments=rows,
        )
    )


def leaves(*instances: str) -> Ask:
    return Ask(LeaveGroupRequest("g", tuple(LeaveGroupMember("", group_instance_id=each) for each in instances)))


def stable_group() -> tuple[Record, ...]:
    """The log of a Stable group with the static members i1 and i2, whose ids are ``one`` and ``two``."""
    return _log(joins("", instance="i1"), joins("", instance="i2"), ROUND, ROUND, syncs(I1, 1, 0))


def stable_member() -> tuple[Record, ...]:
    """The log of a Stable group with the static member i1, whose id is ``one`` and which offers two protocols."""
    return _log(joins("", PLAIN, OTHER, instance="i1"), ROUND, syncs(I1, 1, 0))


def _log(*moves: Move) -> tuple[Record, ...]:
    return tuple(map(_renamed, Search(NOW, INTENDED, ()).again(moves).log))


def _renamed(record: Record) -> Record:
    value, names = record.value, {I1: "one", I2: "two"}
    if not isinstance(value, GroupMetadataValue):
        return record
    members = tuple(replace(member, member_id=names[member.member_id]) for member in value.members)
    return replace(record, value=replace(value, leader=names.get(value.leader or ""), members=members))
