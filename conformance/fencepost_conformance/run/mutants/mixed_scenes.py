"""Hand-made runs of mixed groups, for cases that random ones hardly ever reach: the model must follow the core."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from fencepost.protocol.consumer_messages import LEAVE_EPOCH, ConsumerGroupHeartbeatRequest
from fencepost.protocol.embedded import NO_GENERATION, Subscription, encode_subscription
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
from fencepost.protocol.messages import (
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupMember,
    LeaveGroupRequest,
    Protocol,
    RequestBody,
    SyncGroupRequest,
)
from fencepost.protocol.partitions import TopicPartition
from fencepost.protocol.settings import Settings

#: two classic members fit in a group, three do not
SETTINGS: Final = Settings(group_max_size=2)
_VERSIONS: Final = {
    ConsumerGroupHeartbeatRequest: 1, JoinGroupRequest: 9, SyncGroupRequest: 5, HeartbeatRequest: 4,
    LeaveGroupRequest: 5,
}  # fmt: skip
_START: Final = (
    TopicsChanged(0, (Topic("t", bytes(15) + b"\x01", 2), Topic("u", bytes(15) + b"\x02", 1)), version=1),
    Load(0, leader_epoch=1, records=()),
)


def _ask(number: int, at_ms: int, body: RequestBody) -> Request:
    return Request(
        at_ms, id=number, version=_VERSIONS[type(body)], client_id="client", client_host="/127.0.0.1", body=body
    )


def _consumer(number: int, at_ms: int, epoch: int = 0, topic: str = "u", instance: str | None = None) -> Request:
    """Return a heartbeat of ``s`` of the consumer protocol, which joins for a topic, or leaves."""
    joins = epoch == 0
    body = ConsumerGroupHeartbeatRequest(
        "g",
        member_id="s",
        member_epoch=epoch,
        instance_id=instance,
        rebalance_timeout_ms=10_000 if joins else -1,
        subscribed_topic_names=(topic,) if joins else None,
        topic_partitions=() if joins else None,
    )
    return _ask(number, at_ms, body)


def _classic(
    number: int,
    at_ms: int,
    member: str,
    topics: str,
    *owned: int,
    instance: str | None = None,
    generation: int = NO_GENERATION,
    assignor: str = "cooperative-sticky",
) -> Request:
    """Return a join of a classic member for topics of one letter; ``owned``: partitions of t, of that
    ``generation``."""
    said = Subscription(tuple(topics), None, tuple(TopicPartition("t", each) for each in owned), generation)
    offer = (Protocol(assignor, encode_subscription(said)),)
    return _ask(
        number,
        at_ms,
        JoinGroupRequest(
            "g",
            session_timeout_ms=30_000,
            rebalance_timeout_ms=60_000,
            member_id=member,
            group_instance_id=instance,
            protocol_type="consumer",
            protocols=offer,
        ),
    )


def _sync(number: int, at_ms: int, member: str, generation: int) -> Request:
    return _ask(
        number,
        at_ms,
        SyncGroupRequest(
            "g",
            generation_id=generation,
            member_id=member,
            protocol_type="consumer",
            protocol_name="cooperative-sticky",
        ),
    )


def _too_many_for_a_classic_group() -> Sequence[Event]:
    """The last member of the consumer protocol leaves three classic ones behind."""
    return (
        *_START,
        _consumer(1, 1),
        Appended(2, offset=5),
        _classic(2, 2_000, "one", "t"),
        Appended(2_001, offset=10),
        _classic(3, 4_000, "two", "t"),
        Appended(4_001, offset=16),
        _classic(4, 6_000, "three", "t"),
        Appended(6_001, offset=21),
        _consumer(5, 7_000, LEAVE_EPOCH),
        Appended(7_001, offset=25),
        _ask(6, 7_002, HeartbeatRequest("g", generation_id=5, member_id="three")),
    )


def _must_revoke_at_the_epoch_of_the_target() -> Sequence[Event]:
    """A classic member changes its subscription before a new target may be computed: only its pending revocation can
    make its heartbeat ask for a rejoin."""
    return (
        *_START,
        _consumer(1, 1),
        Appended(2, offset=5),
        _classic(2, 2_000, "one", "t"),
        Appended(2_001, offset=10),
        _sync(3, 2_002, "one", 3),
        _classic(4, 2_500, "one", "u", 0, 1),
        Appended(2_501, offset=13),
        _sync(5, 2_502, "one", 3),
        _ask(6, 2_600, HeartbeatRequest("g", generation_id=3, member_id="one")),
    )


def _two_leave_at_once() -> Sequence[Event]:
    """An administrator removes two members in one request."""
    return (
        *_START,
        _consumer(1, 1),
        Appended(2, offset=5),
        _classic(2, 2_000, "one", "t"),
        Appended(2_001, offset=10),
        _classic(3, 4_000, "two", "t"),
        Appended(4_001, offset=16),
        _ask(4, 5_000, LeaveGroupRequest("g", (LeaveGroupMember("one"), LeaveGroupMember("two")))),
        Appended(5_001, offset=23),
    )


def _waits_as_the_last_one_comes_back() -> Sequence[Event]:
    """The last member of the consumer protocol holds everything, and comes back as a classic one: the member that waits
    for its share must get it."""
    return (
        *_START,
        _consumer(1, 1, topic="t", instance="i"),
        Appended(2, offset=5),
        _classic(2, 2_000, "one", "t"),
        Appended(2_001, offset=11),
        _sync(3, 2_002, "one", 3),
        _classic(4, 4_000, "", "t", instance="i"),
    )


def _two_claim_the_same() -> Sequence[Event]:
    """Two members of a classic group in a rebalance claim the same partition, one of them from an older generation;
    then a consumer joins."""
    return (
        *_START,
        _classic(1, 1, "", "t", 0, instance="a", generation=3),
        _classic(2, 2, "", "t", 0, 1, instance="b", generation=5),
        Appended(3, offset=1),
        TimerFired(3_001, TimerKey(TimerKind.JOIN, "g")),
        TimerFired(6_001, TimerKey(TimerKind.JOIN, "g")),
        _consumer(3, 7_000),
    )


def _comes_again_from_before() -> Sequence[Event]:
    """A classic member must revoke a partition; then a JoinGroup of an older epoch arrives, which owns less."""
    return (
        *_START,
        _consumer(1, 1),
        Appended(2, offset=5),
        _classic(2, 2_000, "one", "t"),
        Appended(2_001, offset=10),
        _classic(3, 4_000, "one", "tu", 0, 1, generation=3),
        Appended(4_001, offset=14),
        _classic(4, 6_000, "two", "t"),
        Appended(6_001, offset=20),
        _classic(5, 8_000, "one", "tu", 0, 1, generation=4),
        Appended(8_001, offset=22),
        _classic(6, 8_002, "one", "tu", 0, generation=3),
    )


#: name → the events, under ``SETTINGS``
def _comes_with_another_assignor() -> Sequence[Event]:
    """X-JOIN-04: c offers an assignor that all classic members have, d one that c does not have."""
    return (
        *_START, _consumer(1, 1_000), _classic(2, 2_000, "c", "t"), _classic(3, 3_000, "d", "t", assignor="range"),
    )  # fmt: skip


SCENES: Final[Mapping[str, Sequence[Event]]] = {
    "too many are left for a classic group": _too_many_for_a_classic_group(),
    "a classic member must revoke at the epoch of the target": _must_revoke_at_the_epoch_of_the_target(),
    "two members of a mixed group leave at once": _two_leave_at_once(),
    "a classic member waits as the last consumer comes back": _waits_as_the_last_one_comes_back(),
    "two members of a classic group claim the same": _two_claim_the_same(),
    "a JoinGroup of an older epoch comes again": _comes_again_from_before(),
    "a classic member comes with another assignor": _comes_with_another_assignor(),
}
