"""A member with the consumer protocol joins a classic group: the group becomes a consumer group."""

from __future__ import annotations

import asyncio
from typing import Any

from ..broker_settings import MIXES, POLICY
from ..case import case
from ..classic_member import ClassicMember, classic_member, stable_group, until_rebalance
from ..consumer_member import ConsumerMember, consumer_member
from ..group_state import described_consumer, expect_members, expect_state
from ..mixed_group import assigned_to, joins, rolled
from ..offset_requests import commit, expect_offset
from ..peer import NotReached, Peer, Topic

_API = {"consumer_group_heartbeat": 1, "consumer_group_describe": 0}


async def _upgraded(peer: Peer, topic: Topic) -> tuple[ClassicMember, ConsumerMember]:
    """Return the members of a group that was classic when the second one joined."""
    (classic,) = await stable_group(peer, 1, topics=(topic.name,))
    consumer = await consumer_member(peer, topic)
    answer = await joins(peer, consumer)
    if answer["error_code"] != "NONE":
        raise NotReached(f"ConsumerGroupHeartbeat was answered {answer['error_code']}: the group was not converted")
    return classic, consumer


@case("mixed.upgrade.1", "X-UP-01", "X-UP-05", waits_s=3, needs=_API)
async def a_classic_group_is_converted(peer: Peer) -> None:
    """A member with the consumer protocol joins a stable classic group. It is admitted, and describing the consumer
    group shows both members: the first as a classic one."""
    topic = await peer.topic(partitions=2)
    (classic,) = await stable_group(peer, 1, topics=(topic.name,))
    consumer = await consumer_member(peer, topic)
    (await joins(peer, consumer)).expect(error_code="NONE")
    rows = await expect_members(peer, number=2)
    member_ids = {row["member_id"] for row in rows}
    expected = {classic.member_id, consumer.member_id}
    peer.require(holds=member_ids == expected, expected=str(expected), received=str(member_ids))


@case("mixed.upgrade.2", "X-UP-04", "X-UP-09", waits_s=3, needs=_API)
async def epochs_continue_from_the_generation(peer: Peer) -> None:
    """A member with the consumer protocol joins a stable classic group. Its epoch is higher than the generation."""
    topic = await peer.topic(partitions=2)
    (classic,) = await stable_group(peer, 1, topics=(topic.name,))
    consumer = await consumer_member(peer, topic)
    answer = (await joins(peer, consumer)).expect(error_code="NONE")
    received = answer["member_epoch"]
    peer.require(
        holds=received > classic.generation_id,
        expected=f"an epoch above {classic.generation_id}",
        received=str(received),
    )


@case("mixed.upgrade.3", "X-HB-03", "X-UP-11", waits_s=3, needs=_API)
async def the_classic_member_is_asked_to_rejoin(peer: Peer) -> None:
    """A classic group was converted. The heartbeat of its classic member is answered REBALANCE_IN_PROGRESS; JoinGroup
    is answered at once with a higher generation and no leader."""
    topic = await peer.topic(partitions=2)
    classic, _ = await _upgraded(peer, topic)
    generation = classic.generation_id
    await until_rebalance(classic)
    (await classic.join()).expect(error_code="NONE", leader="").rows("members", number=0)
    received = classic.generation_id
    peer.require(holds=received >= generation, expected=f"at least {generation}", received=str(received))


@case("mixed.upgrade.4", "X-UP-14", "X-SYNC-06", "INV-KIP-01", waits_s=4, needs=_API)
async def both_protocols_share_the_partitions(peer: Peer) -> None:
    """A classic group of one is joined by a member with the consumer protocol. In the end each owns one of the two
    partitions, and none has two owners."""
    topic = await peer.topic(partitions=2)
    classic, consumer = await _upgraded(peer, topic)
    mine = await rolled(topic, classic, consumer)
    theirs = consumer.owned[topic.topic_id]
    peer.require(holds=sorted(mine + theirs) == [0, 1], expected="[0, 1] divided", received=f"{mine} and {theirs}")


@case("mixed.upgrade.5", "X-UP-02", waits_s=3, needs=_API)
async def another_protocol_type_is_not_converted(peer: Peer) -> None:
    """A member with the consumer protocol joins a classic group of type ``connect``. The broker answers
    GROUP_ID_NOT_FOUND, and the group stays classic."""
    topic = await peer.topic(partitions=1)
    member = await classic_member(peer, protocol_type="connect")
    await member.enter()
    consumer = await consumer_member(peer, topic)
    (await consumer.beat()).expect(error_code="GROUP_ID_NOT_FOUND")
    (await member.heartbeat()).expect(error_code="NONE")


@case("mixed.upgrade.6", "M-VAL-22", waits_s=3, needs=_API)
async def an_empty_classic_group_is_replaced(peer: Peer) -> None:
    """The only member of a classic group leaves, and a member with the consumer protocol joins. It is admitted, and the
    group is a consumer group."""
    topic = await peer.topic(partitions=1)
    (member,) = await stable_group(peer, 1, topics=(topic.name,))
    await member.leave()
    consumer = await consumer_member(peer, topic)
    (await consumer.beat()).expect(error_code="NONE")
    await expect_members(peer, number=1)


@case("mixed.upgrade.7", "X-UP-05", "O-COMMIT-20", waits_s=3, needs=_API | {"offset_commit": 9})
async def committed_offsets_stay(peer: Peer) -> None:
    """A member of a classic group commits, and the group is converted. Fetching returns the offset."""
    topic = await peer.topic(partitions=1)
    (member,) = await stable_group(peer, 1, topics=(topic.name,))
    await commit(member.client, peer.group, topic, {0: 9}, **member.committing())
    consumer = await consumer_member(peer, topic)
    (await joins(peer, consumer)).expect(error_code="NONE")
    await expect_offset(consumer.client, peer.group, topic, 9)


@case("mixed.upgrade.8", "M-VAL-20", waits_s=3, needs=_API)
async def only_epoch_0_converts(peer: Peer) -> None:
    """A heartbeat with epoch 5 arrives at a stable classic group. The broker answers GROUP_ID_NOT_FOUND, and the group
    stays classic."""
    topic = await peer.topic(partitions=1)
    await stable_group(peer, 1, topics=(topic.name,))
    consumer = await consumer_member(peer, topic, epoch=5)
    (await consumer.beat()).expect(error_code="GROUP_ID_NOT_FOUND")
    await expect_state(peer, "Stable")


@case("mixed.upgrade.9", "X-UP-03", waits_s=4, needs=_API)
async def a_waiting_join_is_answered(peer: Peer) -> None:
    """A member of a classic group waits for the answer to JoinGroup when a member with the consumer protocol joins. The
    wait ends with REBALANCE_IN_PROGRESS."""
    topic = await peer.topic(partitions=2)
    leader, _ = await stable_group(peer, 2, topics=(topic.name,))
    waiting = peer.start(leader.join())
    await asyncio.sleep(0.5)
    consumer = await consumer_member(peer, topic)
    (await joins(peer, consumer)).expect(error_code="NONE")
    (await waiting).expect(error_code="REBALANCE_IN_PROGRESS")


@case("mixed.upgrade.10", "X-LEAVE-02", "X-LEAVE-04", waits_s=3, needs=_API)
async def a_classic_member_leaves_the_converted_group(peer: Peer) -> None:
    """A classic group was converted, and its classic member leaves by LeaveGroup. The member with the consumer protocol
    receives all partitions."""
    topic = await peer.topic(partitions=2)
    classic, consumer = await _upgraded(peer, topic)
    (await classic.leave()).expect(error_code="NONE")
    await consumer.until({topic.topic_id: [0, 1]})
    await expect_members(peer, number=1)


@case("mixed.upgrade.11", "X-HB-01", "X-SYNC-03", waits_s=3, needs=_API)
async def another_generation_is_refused(peer: Peer) -> None:
    """A classic group was converted. Heartbeat and SyncGroup of its classic member with the generation before its own
    are answered ILLEGAL_GENERATION."""
    topic = await peer.topic(partitions=2)
    classic, _ = await _upgraded(peer, topic)
    (await classic.heartbeat(generation_id=classic.generation_id - 1)).expect(error_code="ILLEGAL_GENERATION")
    (await classic.sync(generation_id=classic.generation_id - 1)).expect(error_code="ILLEGAL_GENERATION")


@case("mixed.upgrade.12", "X-SYNC-02", "X-HB-01", waits_s=3, needs=_API)
async def the_apis_of_the_other_protocol_are_refused(peer: Peer) -> None:
    """A classic group was converted. Heartbeat and SyncGroup with the id of the member that uses the consumer protocol
    are answered UNKNOWN_MEMBER_ID."""
    topic = await peer.topic(partitions=2)
    classic, consumer = await _upgraded(peer, topic)
    changes: dict[str, Any] = {"member_id": consumer.member_id, "generation_id": consumer.epoch}
    (await classic.heartbeat(**changes)).expect(error_code="UNKNOWN_MEMBER_ID")
    (await classic.sync(**changes)).expect(error_code="UNKNOWN_MEMBER_ID")


@case("mixed.upgrade.13", "X-JOIN-04", waits_s=3, needs=_API)
async def an_assignor_that_not_all_support_is_refused(peer: Peer) -> None:
    """A classic group with the assignor ``range`` was converted, and a classic member with only ``roundrobin`` joins.
    The broker answers INCONSISTENT_GROUP_PROTOCOL."""
    topic = await peer.topic(partitions=2)
    await _upgraded(peer, topic)
    newcomer = await classic_member(peer, topics=(topic.name,), assignors=("roundrobin",))
    (await newcomer.join()).expect(error_code="INCONSISTENT_GROUP_PROTOCOL")


@case("mixed.upgrade.14", "X-JOIN-05", "X-JOIN-14", "X-JOIN-15", waits_s=3, needs=_API)
async def a_classic_member_may_join_the_converted_group(peer: Peer) -> None:
    """A classic group was converted, and a further classic member joins. It is given an id first, and then admitted at
    once, without a leader."""
    topic = await peer.topic(partitions=3)
    await _upgraded(peer, topic)
    newcomer = await classic_member(peer, topics=(topic.name,))
    answer = await newcomer.join()
    answer.expect(error_code="MEMBER_ID_REQUIRED")
    (await newcomer.join()).expect(error_code="NONE", leader="").rows("members", number=0)
    await expect_members(peer, number=3)


@case("mixed.upgrade.15", "X-SYNC-06", waits_s=3, needs=_API, settings={POLICY: MIXES})
async def sync_returns_what_the_broker_assigned(peer: Peer) -> None:
    """A classic member joins a consumer group and sends SyncGroup. It receives the partitions that the broker assigned
    to it, in the form of a leader's assignment."""
    topic = await peer.topic(partitions=2)
    consumer = await consumer_member(peer, topic)
    await consumer.beat()
    await consumer.acknowledge()
    newcomer = await classic_member(peer, topics=(topic.name,))
    await newcomer.enter()
    mine = await rolled(topic, newcomer, consumer)
    answer = (await newcomer.sync()).expect(error_code="NONE")
    received = assigned_to(answer)
    peer.require(holds=received == mine, expected=str(mine), received=str(received))


@case("mixed.upgrade.16", "C-ADM-02", "X-UP-01", waits_s=3, needs=_API)
async def a_converted_group_is_no_classic_group(peer: Peer) -> None:
    """A classic group was converted. DescribeGroups no longer finds a classic group, and ConsumerGroupDescribe finds a
    consumer group."""
    topic = await peer.topic(partitions=2)
    await _upgraded(peer, topic)
    await expect_state(peer, "Dead")
    (await described_consumer(peer)).expect(error_code="NONE")
