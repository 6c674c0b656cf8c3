"""Coordinators of any size, and steps that involve one group or one member of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count

from fencepost.coordinator import CoordinatorState, consumer_view, initial_state, step
from fencepost.coordinator.kernel.topics import image, metadata_hash
from fencepost.functions import StandardFunctions
from fencepost.protocol import consumer_records as rec
from fencepost.protocol.choices import Choices
from fencepost.protocol.consumer_messages import ConsumerGroupHeartbeatRequest, TopicPartitions
from fencepost.protocol.events import Appended, Event, Load, Request, Topic, TopicsChanged
from fencepost.protocol.messages import (
    HeartbeatRequest,
    JoinGroupRequest,
    Protocol,
    RequestBody,
)
from fencepost.protocol.profiles import INTENDED
from fencepost.protocol.records import GroupMetadataKey, GroupMetadataMember, GroupMetadataValue, Record
from fencepost.protocol.settings import Settings

from ...targets.ids import MemberIds
from ...targets.java_order import JavaOrder

#: Time before a new target may be computed again, in ms.
_INTERVAL = 10_000
_STARTED = 1_000
_SETTINGS = Settings(
    group_consumer_max_size=1_000_000,
    group_consumer_assignment_interval_ms=_INTERVAL,
    group_consumer_max_assignment_interval_ms=_INTERVAL,
)
_FUNCTIONS = StandardFunctions()
_METADATA = b"\0\0\0\0\0\0\xff\xff\xff\xff"
_PROTOCOLS = (Protocol("range", _METADATA),)
_STABLE = 0  #: a member's state in its record

CLASSIC, CONSUMER = "classic", "consumer"


@dataclass(frozen=True, slots=True)
class Case:
    """One kind of step, taken in coordinators of several sizes; ``of``: what there are so many of.

    ``made`` returns a coordinator of a size, and ``events`` possible next events, each independent. ``grows`` says why
    its cost follows the size, where that is inherent.
    """

    of: str
    what: str
    sizes: tuple[int, ...]
    made: Callable[[int], CoordinatorState]
    events: Callable[[int], Iterator[Event]]
    grows: str = ""


def choices() -> Choices:
    return JavaOrder(MemberIds())


def coordinator(records: list[Record], topics: int = 1, partitions: int = 1) -> CoordinatorState:
    """Return a coordinator that knows these topics and has loaded this log. The group ``g``, if it is a consumer group,
    has refreshed its topics."""
    state = initial_state(_SETTINGS, INTENDED)
    state, _ = step(state, TopicsChanged(_STARTED, _image(topics, partitions), version=1), choices())
    state, _ = step(state, Load(_STARTED, leader_epoch=1, records=tuple(records)), choices())
    if consumer_view(state, "g") is not None:
        state, outcome = step(state, next(consumer_heartbeats(1)), choices())
        assert not outcome.records
    return state


def _image(topics: int, partitions: int) -> tuple[Topic, ...]:
    return tuple(Topic(_topic(number), _topic_id(number), partitions) for number in range(topics))


def many_groups(size: int) -> CoordinatorState:
    """Return groups with one member each, half of each kind."""
    records: list[Record] = []
    for number in range(size):
        name = _group(number)
        records += _classic(name, 1) if number % 2 == 0 else _consumer(name, 1)
    return coordinator(records)


def classic_members(size: int) -> CoordinatorState:
    return coordinator(_classic("g", size))


def consumer_members(size: int) -> CoordinatorState:
    """Return members with one partition each."""
    return coordinator(_consumer("g", size, due=False), partitions=size)


def consumer_members_due(size: int) -> CoordinatorState:
    """Return a group whose target may be computed again."""
    return coordinator(_consumer("g", size), partitions=size)


def consumer_members_behind(size: int) -> CoordinatorState:
    """Return a group that one more member has joined: the others have to move to the epoch of its target."""
    state, outcome = step(consumer_members_due(size), next(consumer_joins(size)), choices())
    assert outcome.records
    return step(state, Appended(_STARTED, offset=state.end), choices())[0]


def many_topics(size: int) -> CoordinatorState:
    """Return a group of two members that subscribe to one of the topics."""
    return coordinator(_consumer("g", 2, due=False), topics=size, partitions=2)


def subscribed_topics(size: int) -> CoordinatorState:
    """Return a group of two members that subscribe to all topics."""
    return coordinator(_consumer("g", 2, topics=size, due=False), topics=size, partitions=2)


def _classic(name: str, members: int) -> list[Record]:
    rows = tuple(
        GroupMetadataMember(
            _member(number),
            group_instance_id=None,
            client_id="c",
            client_host="/h",
            rebalance_timeout=60_000,
            session_timeout=45_000,
            subscription=_METADATA,
            assignment=b"",
        )
        for number in range(members)
    )
    value = GroupMetadataValue(
        "consumer", generation=1, protocol="range", leader=_member(0), current_state_timestamp=_STARTED, members=rows
    )
    return [Record(GroupMetadataKey(name), value)]


def _consumer(name: str, members: int, *, topics: int = 1, due: bool = True) -> list[Record]:
    """Return a group at epoch 2 whose members are at their target: one partition of the first topic, which has as many.
    ``due``: it may get a new target."""
    names = tuple(sorted(_topic(number) for number in range(topics)))
    share = [(TopicPartitions(_topic_id(0), (number,)),) for number in range(members)]
    held = [(rec.AssignedPartitions(_topic_id(0), (number,), assignment_epochs=(2,)),) for number in range(members)]
    known = image(_image(topics, members), version=1, created=1)
    return [
        *(
            Record(
                rec.ConsumerGroupMemberMetadataKey(name, _member(number)),
                rec.ConsumerGroupMemberMetadataValue(
                    instance_id=None,
                    rack_id=None,
                    client_id="c",
                    client_host="/h",
                    subscribed_topic_names=names,
                    subscribed_topic_regex="",
                    rebalance_timeout_ms=60_000,
                    server_assignor="uniform",
                ),
            )
            for number in range(members)
        ),
        Record(
            rec.ConsumerGroupMetadataKey(name),
            rec.ConsumerGroupMetadataValue(2, metadata_hash=metadata_hash(_FUNCTIONS.hash64, known, names)),
        ),
        *(
            Record(
                rec.ConsumerGroupTargetAssignmentMemberKey(name, _member(number)),
                rec.ConsumerGroupTargetAssignmentMemberValue(share[number]),
            )
            for number in range(members)
        ),
        Record(
            rec.ConsumerGroupTargetAssignmentMetadataKey(name),
            rec.ConsumerGroupTargetAssignmentMetadataValue(2, assignment_timestamp=0 if due else _STARTED),
        ),
        *(
            Record(
                rec.ConsumerGroupCurrentMemberAssignmentKey(name, _member(number)),
                rec.ConsumerGroupCurrentMemberAssignmentValue(
                    2,
                    previous_member_epoch=1,
                    state=_STABLE,
                    assigned_partitions=held[number],
                    partitions_pending_revocation=(),
                ),
            )
            for number in range(members)
        ),
    ]


def _group(number: int) -> str:
    return f"group-{number}"


def _member(number: int) -> str:
    return f"member-{number}"


def _topic(number: int) -> str:
    return f"topic-{number}"


def _topic_id(number: int) -> bytes:
    return (number + 1).to_bytes(16, "big")


def _requests(bodies: Iterator[tuple[int, RequestBody]]) -> Iterator[Event]:
    for number, (version, body) in zip(count(1), bodies, strict=False):
        yield Request(_STARTED, id=number, version=version, client_id="c", client_host="/h", body=body)


def _spread(size: int, every: int = 1) -> Iterator[int]:
    """Yield numbers from the whole range, so that no two steps involve the same part of it."""
    return (number * 7919 % (size // every) * every for number in count())


def _heartbeats(
    group_of: Callable[[int], str], member_of: Callable[[int], str], size: int, every: int
) -> Iterator[Event]:
    return _requests(
        (4, HeartbeatRequest(group_of(number), generation_id=1, member_id=member_of(number)))
        for number in _spread(size, every)
    )


def classic_heartbeats_of_groups(size: int) -> Iterator[Event]:
    return _heartbeats(_group, lambda number: _member(0), size, 2)


def classic_heartbeats_of_members(size: int) -> Iterator[Event]:
    return _heartbeats(lambda number: "g", _member, size, 1)


def _joins(group_of: Callable[[int], str], member_id: str = "", version: int = 3) -> Iterator[Event]:
    return _requests(
        (
            version,
            JoinGroupRequest(
                group_of(number),
                session_timeout_ms=45_000,
                rebalance_timeout_ms=60_000,
                member_id=member_id,
                protocol_type="consumer",
                protocols=_PROTOCOLS,
            ),
        )
        for number in count()
    )


def classic_joins_of_groups(size: int) -> Iterator[Event]:
    """Yield joins that create a group each."""
    return _joins(lambda number: f"new-{number}")


def classic_joins_of_members(size: int) -> Iterator[Event]:
    """Yield joins that get an id to come back with, for which the group waits."""
    return _joins(lambda number: "g", version=9)


def classic_rejoins(size: int) -> Iterator[Event]:
    """Yield joins of a follower that repeat its protocols."""
    return _joins(lambda number: "g", member_id=_member(size // 2))


def _beats(bodies: Iterator[ConsumerGroupHeartbeatRequest]) -> Iterator[Event]:
    return _requests((1, body) for body in bodies)


def consumer_heartbeats_of_groups(size: int) -> Iterator[Event]:
    return _beats(
        ConsumerGroupHeartbeatRequest(_group(number + 1), member_id=_member(0), member_epoch=2)
        for number in _spread(size, 2)
    )


def consumer_heartbeats(size: int) -> Iterator[Event]:
    return _beats(
        ConsumerGroupHeartbeatRequest("g", member_id=_member(number), member_epoch=2) for number in _spread(size)
    )


def two_members_heartbeats(size: int) -> Iterator[Event]:
    return consumer_heartbeats(2)


def _comes(group_of: Callable[[int], str], topics: int = 1) -> Iterator[Event]:
    names = tuple(_topic(number) for number in range(topics))
    return _beats(
        ConsumerGroupHeartbeatRequest(
            group_of(number),
            member_id=f"new-{number}",
            member_epoch=0,
            rebalance_timeout_ms=60_000,
            subscribed_topic_names=names,
            topic_partitions=(),
        )
        for number in count()
    )


def consumer_joins_of_groups(size: int) -> Iterator[Event]:
    """Yield joins that create a group each."""
    return _comes(lambda number: f"new-{number}")


def consumer_joins(size: int) -> Iterator[Event]:
    return _comes(lambda number: "g")


def consumer_joins_to_all(size: int) -> Iterator[Event]:
    return _comes(lambda number: "g", topics=size)


def consumer_leaves(size: int) -> Iterator[Event]:
    return _beats(
        ConsumerGroupHeartbeatRequest("g", member_id=_member(number), member_epoch=-1) for number in _spread(size)
    )


_GROUPS = (10, 100, 1_000, 10_000, 100_000)
_MEMBERS = (10, 100, 1_000, 5_000)
_TOPICS = (10, 100, 1_000, 10_000)

CASES = (
    Case("groups", "Heartbeat", _GROUPS, many_groups, classic_heartbeats_of_groups),
    Case("groups", "JoinGroup to a new group", _GROUPS, many_groups, classic_joins_of_groups),
    Case("groups", "heartbeat of a consumer group", _GROUPS, many_groups, consumer_heartbeats_of_groups),
    Case("groups", "join of a new consumer group", _GROUPS, many_groups, consumer_joins_of_groups),
    Case("members of a classic group", "Heartbeat", _MEMBERS, classic_members, classic_heartbeats_of_members),
    Case("members of a classic group", "JoinGroup of a follower again", _MEMBERS, classic_members, classic_rejoins),
    Case("members of a classic group", "JoinGroup without an id", _MEMBERS, classic_members, classic_joins_of_members),
    Case("members of a consumer group", "heartbeat", _MEMBERS, consumer_members, consumer_heartbeats),
    Case(
        "members of a consumer group",
        "heartbeat that moves to the target",
        _MEMBERS,
        consumer_members_behind,
        consumer_heartbeats,
    ),
    Case("members of a consumer group", "join between two targets", _MEMBERS, consumer_members, consumer_joins),
    Case("members of a consumer group", "departure", _MEMBERS, consumer_members, consumer_leaves),
    Case(
        "members of a consumer group",
        "join with a new target",
        _MEMBERS,
        consumer_members_due,
        consumer_joins,
        grows="a target is computed over all members",
    ),
    Case("topics", "heartbeat, subscribed to one", _TOPICS, many_topics, two_members_heartbeats),
    Case("topics", "join, subscribed to one", _TOPICS, many_topics, consumer_joins),
    Case("topics", "heartbeat, subscribed to all", _TOPICS, subscribed_topics, two_members_heartbeats),
    Case(
        "topics",
        "join, subscribed to all",
        _TOPICS,
        subscribed_topics,
        consumer_joins_to_all,
        grows="the hash covers all subscribed topics",
    ),
)
