"""Static members of consumer groups: they keep their partitions when their process starts again."""

from __future__ import annotations

import asyncio

from ..case import case
from ..consumer_member import LEAVE, LEAVE_FOR_A_WHILE, ConsumerMember, consumer_member, joined
from ..group_state import expect_members
from ..peer import Peer, Topic

_V1 = {"consumer_group_heartbeat": 1}


async def _static(peer: Peer, topic: Topic) -> ConsumerMember:
    return await joined(peer, topic, instance_id="one")


@case("consumer.static.1", "M-STATIC-02", needs=_V1)
async def a_live_member_is_not_replaced(peer: Peer) -> None:
    """A static member is in the group, and another process joins with its instance id. The newcomer is answered
    UNRELEASED_INSTANCE_ID, and the member stays."""
    topic = await peer.topic(partitions=1)
    member = await _static(peer, topic)
    newcomer = await consumer_member(peer, topic, instance_id="one")
    (await newcomer.beat()).expect(error_code="UNRELEASED_INSTANCE_ID")
    (await member.beat(instance_id="one")).expect(error_code="NONE", member_epoch=member.epoch)


@case("consumer.static.2", "M-LEAVE-05", "M-RSP-04", needs=_V1)
async def a_static_member_leaves_for_a_while(peer: Peer) -> None:
    """A static member leaves with epoch -2. The answer has epoch -2; describing the group still shows the member with
    its partitions."""
    topic = await peer.topic(partitions=1)
    member = await _static(peer, topic)
    own = member.member_id
    answer = await member.beat(member_epoch=LEAVE_FOR_A_WHILE, instance_id="one")
    answer.expect(error_code="NONE", member_id=own, member_epoch=-2)
    (row,) = await expect_members(peer, number=1)
    row.expect(instance_id="one")
    row.at("assignment.topic_partitions.0").expect(topic_id=topic.topic_id, partitions=[0])


@case("consumer.static.3", "M-STATIC-03", "M-STATIC-11", needs=_V1)
async def a_restart_keeps_the_partitions(peer: Peer) -> None:
    """A static member leaves with epoch -2, and its new process joins with the instance id. It receives the same
    partitions at the same epoch."""
    topic = await peer.topic(partitions=2)
    old = await _static(peer, topic)
    epoch = old.epoch
    await old.gone(LEAVE_FOR_A_WHILE, instance_id="one")
    new = await consumer_member(peer, topic, instance_id="one")
    answer = (await new.beat()).expect(error_code="NONE", member_epoch=epoch)
    (row,) = answer.rows("assignment.topic_partitions", number=1)
    row.expect(topic_id=topic.topic_id, partitions=[0, 1])


@case("consumer.static.4", "M-STATIC-05", needs=_V1)
async def the_old_process_is_fenced(peer: Peer) -> None:
    """The new process of a static member has taken its place. A heartbeat of the old one with the instance id is
    answered FENCED_INSTANCE_ID."""
    topic = await peer.topic(partitions=1)
    old = await _static(peer, topic)
    epoch = old.epoch
    await old.gone(LEAVE_FOR_A_WHILE, instance_id="one")
    new = await consumer_member(peer, topic, instance_id="one")
    await new.beat()
    (await old.beat(member_epoch=epoch, instance_id="one")).expect(error_code="FENCED_INSTANCE_ID")
    (await old.beat(member_epoch=epoch)).expect(error_code="UNKNOWN_MEMBER_ID")


@case("consumer.static.5", "M-STATIC-04", needs=_V1)
async def an_unknown_instance_id_is_refused(peer: Peer) -> None:
    """A member sends a heartbeat with a positive epoch and an instance id that no member has. The broker answers
    UNKNOWN_MEMBER_ID."""
    member = await joined(peer, await peer.topic(partitions=1))
    (await member.beat(instance_id="nobody")).expect(error_code="UNKNOWN_MEMBER_ID")


@case("consumer.static.6", "M-LEAVE-02", needs=_V1)
async def a_static_member_leaves_for_good(peer: Peer) -> None:
    """A static member leaves with epoch -1. It is removed, and another process may join with its instance id at
    once."""
    topic = await peer.topic(partitions=1)
    member = await _static(peer, topic)
    (await member.beat(member_epoch=LEAVE, instance_id="one")).expect(error_code="NONE", member_epoch=-1)
    newcomer = await consumer_member(peer, topic, instance_id="one")
    (await newcomer.beat()).expect(error_code="NONE")
    await expect_members(peer, number=1)


@case("consumer.static.7", "M-LEAVE-02", needs=_V1)
async def another_member_cannot_leave_for_it(peer: Peer) -> None:
    """A stranger leaves with the instance id of a static member and epoch -2. The broker answers FENCED_INSTANCE_ID,
    and the member stays."""
    topic = await peer.topic(partitions=1)
    member = await _static(peer, topic)
    stranger = await consumer_member(peer, topic)
    answer = await stranger.beat(member_epoch=LEAVE_FOR_A_WHILE, instance_id="one")
    answer.expect(error_code="FENCED_INSTANCE_ID")
    (await member.beat()).expect(error_code="NONE")


@case("consumer.static.8", "M-FENCE-09", needs=_V1)
async def the_instance_id_may_be_left_out(peer: Peer) -> None:
    """A static member sends a heartbeat without its instance id. The broker answers NONE."""
    member = await _static(peer, await peer.topic(partitions=1))
    (await member.beat()).expect(error_code="NONE", member_epoch=member.epoch)


@case("consumer.static.9", "M-PE-04", "M-LEAVE-05", needs=_V1)
async def its_partitions_wait_for_the_restart(peer: Peer) -> None:
    """A static member leaves with epoch -2 while another member is in the group. The other receives none of its
    partitions."""
    topic = await peer.topic(partitions=2)
    static = await _static(peer, topic)
    other = await consumer_member(peer, topic)
    await other.beat()
    while not other.assigned:
        await static.acknowledge(instance_id="one")
        await other.beat()
    await other.acknowledge()
    mine = other.assigned
    await static.gone(LEAVE_FOR_A_WHILE, instance_id="one")
    for _ in range(3):
        (await other.beat()).expect(error_code="NONE", assignment=None)
        await asyncio.sleep(0.2)
    peer.require(holds=other.assigned == mine, expected=str(mine), received=str(other.assigned))
