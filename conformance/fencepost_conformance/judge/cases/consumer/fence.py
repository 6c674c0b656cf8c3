"""Member epochs: which heartbeats a broker accepts, and which it fences."""

from __future__ import annotations

import asyncio

from ..case import case
from ..consumer_member import consumer_member, joined
from ..group_state import expect_members
from ..peer import Peer

_V1 = {"consumer_group_heartbeat": 1}


@case("consumer.fence.1", "M-FENCE-06", "M-RSP-01", needs=_V1)
async def a_member_is_confirmed(peer: Peer) -> None:
    """A member sends a heartbeat with its epoch and nothing new. The broker answers the same epoch and no
    assignment."""
    member = await joined(peer, await peer.topic(partitions=1))
    (await member.beat()).expect(error_code="NONE", member_epoch=member.epoch, assignment=None)


@case("consumer.fence.2", "M-FENCE-01", needs=_V1)
async def an_unknown_member_is_refused(peer: Peer) -> None:
    """A stranger sends a heartbeat with a positive epoch. The broker answers UNKNOWN_MEMBER_ID."""
    topic = await peer.topic(partitions=1)
    member = await joined(peer, topic)
    stranger = await consumer_member(peer, topic, epoch=member.epoch)
    (await stranger.beat()).expect(error_code="UNKNOWN_MEMBER_ID")


@case("consumer.fence.3", "M-FENCE-03", needs=_V1)
async def an_epoch_of_the_future_is_fenced(peer: Peer) -> None:
    """A member sends a heartbeat with the epoch after its own. The broker answers FENCED_MEMBER_EPOCH."""
    member = await joined(peer, await peer.topic(partitions=1))
    (await member.beat(member_epoch=member.epoch + 1)).expect(error_code="FENCED_MEMBER_EPOCH")


@case("consumer.fence.4", "M-FENCE-05", needs=_V1)
async def an_old_epoch_is_fenced(peer: Peer) -> None:
    """Another member joins, and the first moves to the next epoch. Then it sends a heartbeat with its old epoch and
    without a list of partitions. The broker answers FENCED_MEMBER_EPOCH."""
    topic = await peer.topic(partitions=2)
    first = await joined(peer, topic)
    old = first.epoch
    second = await consumer_member(peer, topic)
    await second.beat()
    while first.epoch == old:
        await first.acknowledge()
        await asyncio.sleep(0.05)
    (await first.beat(member_epoch=old)).expect(error_code="FENCED_MEMBER_EPOCH")


@case("consumer.fence.5", "M-FENCE-08", needs=_V1)
async def a_fenced_request_removes_nobody(peer: Peer) -> None:
    """A request of a member is answered FENCED_MEMBER_EPOCH. The member is still in the group with its partitions, and
    its next correct heartbeat is accepted."""
    topic = await peer.topic(partitions=1)
    member = await joined(peer, topic)
    (await member.beat(member_epoch=member.epoch + 1)).expect(error_code="FENCED_MEMBER_EPOCH")
    (row,) = await expect_members(peer, number=1)
    row.expect(member_id=member.member_id, member_epoch=member.epoch)
    (await member.beat()).expect(error_code="NONE", member_epoch=member.epoch)


@case("consumer.fence.6", "M-FENCE-07", needs=_V1)
async def epoch_0_is_accepted_from_a_member(peer: Peer) -> None:
    """A member sends epoch 0 again, as after it was fenced, and owns nothing. It is accepted, keeps its epoch, and
    receives its assignment."""
    topic = await peer.topic(partitions=2)
    member = await joined(peer, topic)
    epoch = member.epoch
    member.owned = {}
    answer = await member.beat(full=True, member_epoch=0)
    answer.expect(error_code="NONE", member_epoch=epoch)
    (row,) = answer.rows("assignment.topic_partitions", number=1)
    row.expect(partitions=[0, 1])


@case("consumer.fence.7", "M-RSP-01", "M-RSP-02", needs=_V1)
async def a_full_request_is_answered_in_full(peer: Peer) -> None:
    """A member sends a heartbeat with all fields. The answer contains its whole assignment, although nothing
    changed."""
    topic = await peer.topic(partitions=2)
    member = await joined(peer, topic)
    answer = await member.beat(full=True)
    (row,) = answer.expect(error_code="NONE").rows("assignment.topic_partitions", number=1)
    row.expect(topic_id=topic.topic_id, partitions=[0, 1])


@case("consumer.fence.8", "M-TMR-01", "M-LEAVE-07", waits_s=48, needs=_V1)
async def a_silent_member_is_removed(peer: Peer) -> None:
    """A member sends nothing for longer than the group's session timeout, which the broker's configuration says. Its
    next heartbeat is answered UNKNOWN_MEMBER_ID."""
    member = await joined(peer, await peer.topic(partitions=1))
    await asyncio.sleep(peer.consumer_session_s() + 1.5)
    (await member.beat()).expect(error_code="UNKNOWN_MEMBER_ID")


@case("consumer.fence.9", "M-TMR-02", "M-LEAVE-07", waits_s=9, needs=_V1)
async def a_member_that_does_not_revoke_is_removed(peer: Peer) -> None:
    """A member with a rebalance timeout of 5 s is asked to give up a partition. It sends heartbeats, but never reports
    that it did. It is removed after the timeout."""
    topic = await peer.topic(partitions=2)
    slow = await joined(peer, topic, rebalance_timeout_ms=5_000)
    other = await consumer_member(peer, topic)
    await other.beat()
    while len(slow.assigned.get(topic.topic_id, [])) == 2:
        (await slow.beat()).expect(error_code="NONE")
        await asyncio.sleep(0.05)
    await asyncio.sleep(3.0)
    (await slow.beat()).expect(error_code="NONE")
    await asyncio.sleep(3.5)
    (await slow.beat()).expect(error_code="UNKNOWN_MEMBER_ID")


@case("consumer.fence.10", "M-TMR-02", waits_s=8, needs=_V1)
async def a_member_that_revokes_in_time_stays(peer: Peer) -> None:
    """A member with a rebalance timeout of 5 s is asked to give up a partition, and reports after 3 s that it did. It
    is still a member 6 s later."""
    topic = await peer.topic(partitions=2)
    slow = await joined(peer, topic, rebalance_timeout_ms=5_000)
    other = await consumer_member(peer, topic)
    await other.beat()
    while len(slow.assigned.get(topic.topic_id, [])) == 2:
        await slow.beat()
        await asyncio.sleep(0.05)
    await asyncio.sleep(3.0)
    (await slow.acknowledge()).expect(error_code="NONE")
    await asyncio.sleep(3.5)
    (await slow.beat()).expect(error_code="NONE")
