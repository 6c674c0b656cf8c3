"""Next requests of clients of the protocol of KIP-848.

They join, heartbeat at this epoch and others, report owned partitions or not, give up and keep what they should not,
change their subscription, leave, and come back. A client here knows the coordinator's view of it. Moves at other epochs
and with other partitions stand for a client that does not know it yet, or that knows something newer.
"""

from __future__ import annotations

from collections.abc import Iterator

from fencepost.protocol.consumer_messages import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    STATIC_LEAVE_EPOCH,
    ConsumerGroupHeartbeatRequest,
    TopicPartitions,
)
from fencepost.protocol.consumer_records import AssignedPartitions
from fencepost.protocol.consumer_view import ConsumerGroupState, ConsumerGroupView, ConsumerMemberView
from fencepost.protocol.messages import DeleteGroupsRequest

from .bounds import GROUP, Bounds, Client, Move, Scene

REBALANCE_TIMEOUT_MS = 20_000


def consumer_moves(bounds: Bounds, scene: Scene) -> Iterator[Move]:
    group = scene.consumer
    members = {} if group is None else {member.member_id: member for member in group.members}
    for client in bounds.clients:
        member = members.get(client.member_id)
        for subscription in client.subscriptions:
            yield Move(client.member_id, f"joins {_name(subscription)}", _join(client, subscription))
        if member is None or member.classic is not None:
            yield Move(client.member_id, "is unknown", _beat(client, 1))
        else:
            yield from _of_member(client, member)
            yield from _waits(bounds, scene, client, member)
    if group is not None and group.state is ConsumerGroupState.EMPTY:
        yield Move("", "is deleted", DeleteGroupsRequest((GROUP,)))


def _of_member(client: Client, member: ConsumerMemberView) -> Iterator[Move]:
    name, epoch = client.member_id, member.member_epoch
    keeps, holds = _rows(member.assigned), _rows((*member.assigned, *member.pending_revocation))
    yield Move(name, "leaves", _beat(client, LEAVE_EPOCH))
    if client.instance_id is not None:
        yield Move(name, "leaves for a while", _beat(client, STATIC_LEAVE_EPOCH))
    yield Move(name, "is ahead", _beat(client, max(epoch, 0) + 1))
    if epoch < 0:
        return
    yield Move(name, "heartbeats", _beat(client, epoch))
    if keeps or member.pending_revocation:
        yield Move(name, "owns what it should", _beat(client, epoch, owned=keeps))
        yield Move(name, "owns nothing", _beat(client, epoch, owned=()))
    if member.pending_revocation:
        yield Move(name, "owns what it should not", _beat(client, epoch, owned=holds))
    if 0 < member.previous_member_epoch != epoch:
        yield Move(name, "is behind", _beat(client, member.previous_member_epoch))
        yield Move(name, "is behind and owns", _beat(client, member.previous_member_epoch, owned=keeps))
    for subscription in client.subscriptions:
        if not _subscribed(member, subscription):
            names, regex = _fields(subscription)
            what = f"changes to {_name(subscription)}"
            yield Move(name, what, _beat(client, epoch, names=names, regex=regex))


def _waits(bounds: Bounds, scene: Scene, client: Client, member: ConsumerMemberView) -> Iterator[Move]:
    """Yield a heartbeat at the time when a delayed target may be computed (M-TGT-08)."""
    group = scene.consumer
    if group is None or member.member_epoch < 0 or (left := put_off_ms(bounds, group, scene.now)) <= 0:
        return
    yield Move(client.member_id, "heartbeats later", _beat(client, member.member_epoch), left)


def put_off_ms(bounds: Bounds, group: ConsumerGroupView, now: int) -> int:
    """Return how long the next target must wait, in ms; 0 if it may be computed now or nothing needs one."""
    if group.assignment_epoch == group.group_epoch or not group.assignment_timestamp:
        return 0
    return max(0, group.assignment_timestamp + bounds.settings.group_consumer_assignment_interval_ms - now)


def _join(client: Client, subscription: tuple[str, ...] | str) -> ConsumerGroupHeartbeatRequest:
    names, regex = _fields(subscription)
    return ConsumerGroupHeartbeatRequest(
        GROUP,
        member_id=client.member_id,
        member_epoch=JOIN_EPOCH,
        instance_id=client.instance_id,
        rebalance_timeout_ms=REBALANCE_TIMEOUT_MS,
        subscribed_topic_names=names,
        subscribed_topic_regex=regex,
        topic_partitions=(),
    )


def _beat(
    client: Client,
    epoch: int,
    *,
    owned: tuple[TopicPartitions, ...] | None = None,
    names: tuple[str, ...] | None = None,
    regex: str | None = None,
) -> ConsumerGroupHeartbeatRequest:
    return ConsumerGroupHeartbeatRequest(
        GROUP,
        member_id=client.member_id,
        member_epoch=epoch,
        instance_id=client.instance_id,
        subscribed_topic_names=names,
        subscribed_topic_regex=regex,
        topic_partitions=owned,
    )


def _fields(subscription: tuple[str, ...] | str) -> tuple[tuple[str, ...], str]:
    return ((), subscription) if isinstance(subscription, str) else (subscription, "")


def _name(subscription: tuple[str, ...] | str) -> str:
    return subscription if isinstance(subscription, str) else "+".join(subscription)


def _subscribed(member: ConsumerMemberView, subscription: tuple[str, ...] | str) -> bool:
    names, regex = _fields(subscription)
    return (set(member.subscribed_topic_names), member.subscribed_topic_regex) == (set(names), regex)


def _rows(assigned: tuple[AssignedPartitions, ...]) -> tuple[TopicPartitions, ...]:
    held: dict[bytes, list[int]] = {}
    for row in assigned:
        held.setdefault(row.topic_id, []).extend(row.partitions)
    return tuple(TopicPartitions(topic, tuple(sorted(numbers))) for topic, numbers in sorted(held.items()))
