"""Hand-made runs of consumer groups, for cases that random ones hardly ever reach: the model must follow the core.

There is also a hand-made log that was compacted while it was read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from fencepost.protocol.consumer_messages import STATIC_LEAVE_EPOCH, ConsumerGroupHeartbeatRequest, TopicPartitions
from fencepost.protocol.consumer_records import (
    AssignedPartitions,
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
)
from fencepost.protocol.consumer_view import MemberState
from fencepost.protocol.events import (
    Appended,
    Event,
    Load,
    Request,
    TimerFired,
    TimerKey,
    TimerKind,
    Topic,
    TopicsChanged,
)
from fencepost.protocol.records import Record

TOPIC: Final = bytes(15) + b"\x01"
STEADY, AWAY = "steady", "away"


def _heartbeat(number: int, at_ms: int, member: str, epoch: int, *owned: int, group: str = "g") -> Request:
    instance = "instance" if member == AWAY else None
    joins = epoch == 0
    body = ConsumerGroupHeartbeatRequest(
        group,
        member_id=member,
        member_epoch=epoch,
        instance_id=instance,
        rebalance_timeout_ms=10_000 if joins else -1,
        subscribed_topic_names=("t",) if joins else None,
        topic_partitions=(TopicPartitions(TOPIC, owned),) if owned else () if joins else None,
    )
    return Request(at_ms, id=number, version=1, client_id=member, client_host="/127.0.0.1", body=body)


def _must_revoke() -> Sequence[Event]:
    """A member has two partitions until another one joins; then it must revoke one of them."""
    return (
        TopicsChanged(0, (Topic("t", TOPIC, 2),), version=1),
        Load(0, leader_epoch=1, records=()),
        _heartbeat(1, 1, AWAY, 0),
        Appended(2, offset=5),
        _heartbeat(2, 2_000, STEADY, 0),
        Appended(2_001, offset=11),
        _heartbeat(3, 3_000, AWAY, 2),
        Appended(3_001, offset=12),
    )


def _leaves_while_it_must_revoke() -> Sequence[Event]:
    """A static member that must revoke leaves temporarily; its rebalance timer fires and must have no effect."""
    return (
        *_must_revoke(),
        _heartbeat(4, 4_000, AWAY, STATIC_LEAVE_EPOCH),
        Appended(4_001, offset=13),
        TimerFired(13_000, TimerKey(TimerKind.CONSUMER_REBALANCE, "g", AWAY)),
        _heartbeat(5, 14_000, STEADY, 3),
    )


def _says_it_owns_more() -> Sequence[Event]:
    """A member that missed the answer with its new epoch repeats the old one, and owns partitions that it had
    revoked."""
    return (
        *_must_revoke(),
        _heartbeat(4, 4_000, AWAY, 2, 0),
        Appended(4_001, offset=13),
        _heartbeat(5, 5_000, AWAY, 2, 0),
        _heartbeat(6, 6_000, AWAY, 2, 0, 1),
    )


def _two_groups_with_similar_names() -> Sequence[Event]:
    """Kafka has one key for the timers of both members; each must have its own."""
    return (
        TopicsChanged(0, (Topic("t", TOPIC, 2),), version=1),
        Load(0, leader_epoch=1, records=()),
        _heartbeat(1, 1, "0-x", 0),
        Appended(2, offset=5),
        _heartbeat(2, 1_000, "x", 0, group="g-0"),
        Appended(1_001, offset=10),
    )


#: name → the events, under the default settings
SCENES: Final[Mapping[str, Sequence[Event]]] = {
    "a static member leaves while it must revoke": _leaves_while_it_must_revoke(),
    "a member repeats its old epoch and owns too much": _says_it_owns_more(),
    "two groups have similar names": _two_groups_with_similar_names(),
}


def _current(member: str, epoch: int, *partitions: int) -> Record:
    rows = (AssignedPartitions(TOPIC, partitions, assignment_epochs=(epoch,) * len(partitions)),)
    value = ConsumerGroupCurrentMemberAssignmentValue(
        epoch,
        previous_member_epoch=epoch - 1,
        state=MemberState.STABLE.value,
        assigned_partitions=rows,
        partitions_pending_revocation=(),
    )
    return Record(ConsumerGroupCurrentMemberAssignmentKey("g", member), value)


def _member(member: str) -> Record:
    value = ConsumerGroupMemberMetadataValue(
        instance_id=None,
        rack_id=None,
        client_id="c",
        client_host="/127.0.0.1",
        subscribed_topic_names=("t",),
        subscribed_topic_regex="",
        rebalance_timeout_ms=60_000,
        server_assignor=None,
    )
    return Record(ConsumerGroupMemberMetadataKey("g", member), value)


#: ``one`` had both partitions, revoked the second, which ``two`` got, and got a new epoch. The record of that
#: revocation was compacted away after an older one had been read (KAFKA-19862).
READ_WHILE_COMPACTED: Final[tuple[Record, ...]] = (
    _member("one"),
    _current("one", 2, 0, 1),
    _member("two"),
    _current("two", 3, 1),
    Record(ConsumerGroupMetadataKey("g"), ConsumerGroupMetadataValue(4)),
    _current("one", 4, 0),
)
#: the resulting (topic id, partition, epoch) (M-PE-01, M-PE-02)
HELD_AFTERWARDS: Final = ((TOPIC, 0, 4), (TOPIC, 1, 3))
