"""Next requests of classic members in a group of either kind, with real subscriptions and assignments.

In a consumer group a classic member's generation is its epoch (X-JOIN-15), and its JoinGroup lists owned partitions
(X-JOIN-10): none if it is eager, else what it has, or what it may keep. It may omit its generation. The generation may
also be older than its last answer, or one that it never was in, and other members may own what it claims (X-JOIN-12).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from fencepost.protocol.consumer_records import AssignedPartitions
from fencepost.protocol.consumer_view import ConsumerGroupView
from fencepost.protocol.embedded import (
    NO_GENERATION,
    Assignment,
    Subscription,
    decode_assignment,
    encode_assignment,
    encode_subscription,
)
from fencepost.protocol.events import Topic
from fencepost.protocol.messages import (
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupMember,
    LeaveGroupRequest,
    Protocol,
    SyncGroupAssignment,
    SyncGroupRequest,
)
from fencepost.protocol.partitions import TopicPartition
from fencepost.protocol.view import GroupView

from .bounds import GROUP, Bounds, Move, Scene

INSTANCE = "i"
TIMEOUT_MS = 10_000


def mixed_moves(bounds: Bounds, scene: Scene) -> Iterator[Move]:
    if scene.made < bounds.ids:
        yield Move("", "joins", _join("", None, ()))
        if bounds.static:
            yield Move("", "static joins", _join("", INSTANCE, ()))
    present: set[str] = set()
    if scene.classic is not None:
        present = {member.member_id for member in scene.classic.members}
        yield from _in_classic(scene.classic, bounds.images[0])
    elif scene.consumer is not None:
        present = {member.member_id for member in scene.consumer.members}
        yield from _in_consumer(scene.consumer, bounds.images[0])
    for number in range(1, scene.made + 1):
        if (name := f"m{number}") not in present:
            yield Move(name, "uses its id", _join(name, None, ()))
            yield Move(name, "uses its id and claims all", _join(name, None, _every(bounds.images[0])))
            yield Move(name, "uses its id and generation", _join(name, None, (), 1))


def _in_classic(group: GroupView, topics: Sequence[Topic]) -> Iterator[Move]:
    generation = group.generation_id
    ids = [member.member_id for member in group.members]
    for member in group.members:
        name, instance = member.member_id, member.group_instance_id
        shares = _shares(ids, topics) if name == group.leader else ()
        has = decode_assignment(member.assignment).partitions if member.assignment else ()
        yield Move(name, "rejoins", _join(name, instance, ()))
        yield Move(name, "rejoins at its epoch", _join(name, instance, has, generation))
        yield Move(name, "rejoins and claims all", _join(name, instance, _every(topics), generation))
        yield Move(
            name,
            "syncs",
            SyncGroupRequest(
                GROUP,
                generation_id=generation,
                member_id=name,
                group_instance_id=instance,
                protocol_type="consumer",
                protocol_name="range",
                assignments=shares,
            ),
        )
        if shares:  # the first round of a cooperative rebalance
            less = (replace(shares[0], assignment=b""), *shares[1:])
            withholds = SyncGroupRequest(
                GROUP,
                generation_id=generation,
                member_id=name,
                group_instance_id=instance,
                protocol_type="consumer",
                protocol_name="range",
                assignments=less,
            )
            yield Move(name, "withholds", withholds)
        yield Move(
            name,
            "heartbeats",
            HeartbeatRequest(GROUP, generation_id=generation, member_id=name, group_instance_id=instance),
        )
        yield Move(name, "leaves", LeaveGroupRequest(GROUP, (LeaveGroupMember(name, group_instance_id=instance),)))


def _in_consumer(group: ConsumerGroupView, topics: Sequence[Topic]) -> Iterator[Move]:
    names = {topic.topic_id: topic.name for topic in topics}
    for member in group.members:
        name, instance, epoch = member.member_id, member.instance_id, member.member_epoch
        keeps = _partitions(member.assigned, names)
        holds = keeps + _partitions(member.pending_revocation, names)
        yield Move(name, "leaves", LeaveGroupRequest(GROUP, (LeaveGroupMember(name, group_instance_id=instance),)))
        yield Move(name, "rejoins", _join(name, instance, ()))
        yield Move(name, "rejoins at its epoch", _join(name, instance, holds, epoch))
        if member.classic is None:
            continue
        before = member.previous_member_epoch
        yield Move(name, "rejoins ahead", _join(name, instance, (), max(epoch, before) + 1))
        yield Move(name, "rejoins and claims all", _join(name, instance, _every(topics)))
        if before != epoch:
            yield Move(name, "rejoins at its previous epoch", _join(name, instance, keeps, before))
            yield Move(name, "rejoins at its previous epoch and owns nothing", _join(name, instance, (), before))
            yield Move(
                name, "rejoins at its previous epoch and claims all", _join(name, instance, _every(topics), before)
            )
        if keeps:
            yield Move(name, "rejoins with what it may keep", _join(name, instance, keeps))
        if holds != keeps:
            yield Move(name, "rejoins with what it has", _join(name, instance, holds))
        yield Move(
            name,
            "syncs",
            SyncGroupRequest(
                GROUP,
                generation_id=epoch,
                member_id=name,
                group_instance_id=instance,
                protocol_type="consumer",
                protocol_name="range",
            ),
        )
        yield Move(
            name, "heartbeats", HeartbeatRequest(GROUP, generation_id=epoch, member_id=name, group_instance_id=instance)
        )
        yield Move(
            name,
            "heartbeats late",
            HeartbeatRequest(GROUP, generation_id=epoch - 1, member_id=name, group_instance_id=instance),
        )


def _join(
    member_id: str, instance: str | None, owned: tuple[TopicPartition, ...], generation: int = NO_GENERATION
) -> JoinGroupRequest:
    protocols = (Protocol("range", encode_subscription(Subscription(("t",), None, owned, generation))),)
    return JoinGroupRequest(
        GROUP,
        session_timeout_ms=TIMEOUT_MS,
        rebalance_timeout_ms=2 * TIMEOUT_MS,
        member_id=member_id,
        group_instance_id=instance,
        protocol_type="consumer",
        protocols=protocols,
    )


def _shares(ids: Sequence[str], topics: Sequence[Topic]) -> tuple[SyncGroupAssignment, ...]:
    """Distribute all partitions over the members in turn."""
    every = _every(topics)
    return tuple(
        SyncGroupAssignment(name, encode_assignment(Assignment(every[place :: len(ids)])))
        for place, name in enumerate(ids)
    )


def _every(topics: Sequence[Topic]) -> tuple[TopicPartition, ...]:
    return tuple(TopicPartition(topic.name, number) for topic in topics for number in range(topic.partitions))


def _partitions(assigned: Sequence[AssignedPartitions], names: dict[bytes, str]) -> tuple[TopicPartition, ...]:
    return tuple(
        TopicPartition(names[row.topic_id], number)
        for row in assigned
        if row.topic_id in names
        for number in row.partitions
    )
