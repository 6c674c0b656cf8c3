"""Reconciliation: a partition changes its owner only after the former owner has given it up."""

from __future__ import annotations

import asyncio

from ..case import case
from ..consumer_member import ConsumerMember, consumer_member, joined, rows
from ..group_state import described_consumer, expect_members
from ..peer import Peer, Topic

_V1 = {"consumer_group_heartbeat": 1}


async def _asked_to_revoke(peer: Peer, topic: Topic) -> tuple[ConsumerMember, ConsumerMember]:
    """Return a member that owns both partitions and was asked to give one up, and the member that waits for it."""
    first = await joined(peer, topic)
    second = await consumer_member(peer, topic)
    await second.beat()
    while len(first.assigned.get(topic.topic_id, [])) == 2:
        await first.beat()
        await asyncio.sleep(0.05)
    await second.beat()
    return first, second


@case("consumer.reconcile.1", "M-REC-10", "M-RSP-03", needs=_V1)
async def the_owner_is_asked_to_give_up(peer: Peer) -> None:
    """A second member joins. The first receives an assignment with one partition less, at its unchanged epoch."""
    topic = await peer.topic(partitions=2)
    first = await joined(peer, topic)
    epoch = first.epoch
    second = await consumer_member(peer, topic)
    await second.beat()
    answer = await first.beat()
    while answer["assignment"] is None:
        await asyncio.sleep(0.05)
        answer = await first.beat()
    answer.expect(error_code="NONE", member_epoch=epoch)
    (row,) = answer.rows("assignment.topic_partitions", number=1)
    row.rows("partitions", number=1)


@case("consumer.reconcile.2", "M-REC-13", "INV-KIP-01", needs=_V1)
async def the_newcomer_waits_for_the_owner(peer: Peer) -> None:
    """The first member was asked to give up a partition, and has not reported that it did. The second member's
    heartbeats bring no partition."""
    topic = await peer.topic(partitions=2)
    _, second = await _asked_to_revoke(peer, topic)
    for _ in range(3):
        (await second.beat()).expect(error_code="NONE", assignment=None)


@case("consumer.reconcile.3", "M-REC-04", "M-REC-12", "M-REC-16", needs=_V1)
async def the_newcomer_receives_what_was_given_up(peer: Peer) -> None:
    """The first member reports that it gave up a partition, and moves to the new epoch. The second member's next
    heartbeat brings this partition."""
    topic = await peer.topic(partitions=2)
    first, second = await _asked_to_revoke(peer, topic)
    epoch = first.epoch
    kept = first.assigned[topic.topic_id]
    (await first.acknowledge()).expect(error_code="NONE", member_epoch=epoch + 1)
    answer = await second.beat()
    (row,) = answer.expect(error_code="NONE").rows("assignment.topic_partitions", number=1)
    row.expect(topic_id=topic.topic_id, partitions=[index for index in (0, 1) if index not in kept])


@case("consumer.reconcile.4", "M-REC-03", "M-REC-18", needs=_V1)
async def a_heartbeat_without_partitions_confirms_nothing(peer: Peer) -> None:
    """The first member was asked to give up a partition, and sends heartbeats without a list of partitions. It stays
    at its epoch, and the second member receives nothing."""
    topic = await peer.topic(partitions=2)
    first, second = await _asked_to_revoke(peer, topic)
    epoch = first.epoch
    for _ in range(3):
        (await first.beat()).expect(error_code="NONE", member_epoch=epoch)
    (await second.beat()).expect(error_code="NONE", assignment=None)


@case("consumer.reconcile.5", "M-REC-03", "M-REC-18", needs=_V1)
async def reporting_the_partition_confirms_nothing(peer: Peer) -> None:
    """The first member was asked to give up a partition, and still reports both. It stays at its epoch, and the second
    member receives nothing."""
    topic = await peer.topic(partitions=2)
    first, second = await _asked_to_revoke(peer, topic)
    epoch = first.epoch
    (await first.beat(topic_partitions=rows({topic.topic_id: [0, 1]}))).expect(error_code="NONE", member_epoch=epoch)
    (await second.beat()).expect(error_code="NONE", assignment=None)


@case("consumer.reconcile.6", "M-PE-03", "M-LEAVE-03", needs=_V1)
async def a_leave_frees_the_partitions(peer: Peer) -> None:
    """The first member leaves while it is asked to give up a partition. The second member receives both."""
    topic = await peer.topic(partitions=2)
    first, second = await _asked_to_revoke(peer, topic)
    (await first.leave()).expect(error_code="NONE", member_epoch=-1)
    await second.until({topic.topic_id: [0, 1]})
    (row,) = await expect_members(peer, number=1)
    row.expect(member_id=second.member_id)


@case("consumer.reconcile.7", "M-REC-22", "INV-KIP-01", needs=_V1)
async def every_partition_has_one_owner(peer: Peer) -> None:
    """Three members join one after another and acknowledge every assignment. In the end the six partitions are divided
    evenly, and none has two owners."""
    topic = await peer.topic(partitions=6)
    members = [await consumer_member(peer, topic) for _ in range(3)]
    for member in members:
        await member.beat()
    owned: list[int] = []
    for _ in range(200):
        for member in members:
            await (member.beat() if member.owned == member.assigned else member.acknowledge())
        owned = sorted(index for member in members for index in member.owned.get(topic.topic_id, []))
        if owned == list(range(6)) and all(len(each.owned.get(topic.topic_id, [])) == 2 for each in members):
            break
        peer.require(holds=len(owned) == len(set(owned)), expected="one owner for each partition", received=f"{owned}")
        await asyncio.sleep(0.05)
    received = str([member.owned.get(topic.topic_id, []) for member in members])
    peer.require(holds=owned == list(range(6)), expected="six partitions divided evenly", received=received)
    (await described_consumer(peer)).expect(group_state="Stable").rows("members", number=3)


@case("consumer.reconcile.8", "M-REC-17", needs=_V1)
async def a_free_partition_needs_no_acknowledgement(peer: Peer) -> None:
    """A member joins an empty group and sends no second heartbeat. Describing the group shows it as the owner of all
    partitions."""
    topic = await peer.topic(partitions=2)
    member = await consumer_member(peer, topic)
    await member.beat()
    (row,) = await expect_members(peer, number=1)
    (assigned,) = row.rows("assignment.topic_partitions", number=1)
    assigned.expect(topic_id=topic.topic_id, partitions=[0, 1])


@case("consumer.reconcile.9", "M-EPOCH-02", "M-HB-03", needs=_V1)
async def another_subscription_starts_a_new_epoch(peer: Peer) -> None:
    """A member subscribes to another topic. The answer takes the first topic's partition away; when it has reported
    that, it owns the other's at a higher epoch."""
    first, second = await peer.topic(partitions=1), await peer.topic(partitions=1)
    member = await joined(peer, first)
    epoch = member.epoch
    member.topics = (second.name,)
    (await member.beat(full=True)).expect(error_code="NONE")
    answer = await member.until({second.topic_id: [0]})
    peer.require(holds=answer["member_epoch"] > epoch, expected="a higher epoch", received=str(answer["member_epoch"]))


@case("consumer.reconcile.10", "M-EPOCH-03", "M-META-03", needs=_V1 | {"create_partitions": 0})
async def new_partitions_are_assigned(peer: Peer) -> None:
    """Partitions are added to a topic. The member's next heartbeats bring them."""
    topic = await peer.topic(partitions=1)
    member = await joined(peer, topic)
    row = {"name": topic.name, "count": 3, "assignments": None}
    answer = await member.client.ask("create_partitions", topics=[row], timeout=30_000, validate_only=False)
    answer.at("results.0").expect(error_code="NONE")
    await member.until({topic.topic_id: [0, 1, 2]})
    (await member.beat(full=True)).at("assignment.topic_partitions.0").expect(partitions=[0, 1, 2])


@case("consumer.reconcile.11", "M-EPOCH-03", "M-META-06", needs=_V1 | {"delete_topics": 0})
async def the_partitions_of_a_deleted_topic_are_taken_away(peer: Peer) -> None:
    """A topic is deleted. The member's next heartbeats take its partitions away."""
    first, second = await peer.topic(partitions=1), await peer.topic(partitions=1)
    member = await joined(peer, first)
    member.topics = (first.name, second.name)
    await member.beat(full=True)
    await member.until({first.topic_id: [0], second.topic_id: [0]})
    await peer.delete(second)
    await member.until({first.topic_id: [0]})
    (await member.beat(full=True)).rows("assignment.topic_partitions", number=1)
