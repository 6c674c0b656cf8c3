"""Epochs -1 and -2: leaving a consumer group."""

from __future__ import annotations

from ..case import case
from ..consumer_member import LEAVE, LEAVE_FOR_A_WHILE, consumer_member, joined
from ..group_state import described_consumer, expect_members
from ..peer import Peer

_V1 = {"consumer_group_heartbeat": 1}


@case("consumer.leave.1", "M-LEAVE-02", "M-LEAVE-04", "M-RSP-04", needs=_V1)
async def the_last_member_leaves_the_group_empty(peer: Peer) -> None:
    """The only member leaves with epoch -1. The answer has epoch -1 and no assignment, and the group is empty."""
    member = await joined(peer, await peer.topic(partitions=1))
    own = member.member_id
    (await member.leave()).expect(error_code="NONE", member_id=own, member_epoch=-1, assignment=None)
    (await described_consumer(peer)).expect(group_state="Empty").rows("members", number=0)


@case("consumer.leave.2", "M-LEAVE-02", needs=_V1)
async def an_unknown_member_cannot_leave(peer: Peer) -> None:
    """A stranger leaves a group with epoch -1. The broker answers UNKNOWN_MEMBER_ID, and the member stays."""
    topic = await peer.topic(partitions=1)
    await joined(peer, topic)
    stranger = await consumer_member(peer, topic)
    (await stranger.leave()).expect(error_code="UNKNOWN_MEMBER_ID")
    await expect_members(peer, number=1)


@case("consumer.leave.3", "M-LEAVE-01", needs=_V1)
async def a_missing_group_cannot_be_left(peer: Peer) -> None:
    """A member leaves a group that does not exist. The broker answers GROUP_ID_NOT_FOUND."""
    member = await consumer_member(peer, await peer.topic(partitions=1))
    (await member.leave()).expect(error_code="GROUP_ID_NOT_FOUND")


@case("consumer.leave.4", "M-LEAVE-04", "M-LEAVE-08", needs=_V1)
async def epochs_continue_after_the_group_was_empty(peer: Peer) -> None:
    """The only member leaves, and another one joins. Its epoch is higher than that of the first. In releases of Kafka
    before 4.4 it may be the same, if the join comes within the assignment interval."""
    topic = await peer.topic(partitions=1)
    first = await joined(peer, topic)
    least = first.epoch + (not peer.profile.old_emptied_group_keeps_target_epoch)
    await first.gone()
    second = await consumer_member(peer, topic)
    answer = (await second.beat()).expect(error_code="NONE")
    received = answer["member_epoch"]
    peer.require(holds=received >= least, expected=f"an epoch from {least} on", received=str(received))


@case("consumer.leave.5", "M-VAL-13", needs=_V1)
async def a_dynamic_member_cannot_leave_for_a_while(peer: Peer) -> None:
    """A member without an instance id leaves with epoch -2. The broker answers INVALID_REQUEST."""
    member = await joined(peer, await peer.topic(partitions=1))
    (await member.leave(LEAVE_FOR_A_WHILE)).expect(error_code="INVALID_REQUEST")


@case("consumer.leave.6", "M-EPOCH-04", needs=_V1)
async def the_others_receive_the_partitions(peer: Peer) -> None:
    """One of two members leaves. The other receives all partitions at a higher epoch."""
    topic = await peer.topic(partitions=2)
    first = await joined(peer, topic)
    second = await consumer_member(peer, topic)
    await second.beat()
    while not second.assigned:
        await first.acknowledge()
        await second.beat()
    await second.acknowledge()
    epoch = second.epoch
    (await first.leave(LEAVE)).expect(error_code="NONE")
    answer = await second.until({topic.topic_id: [0, 1]})
    peer.require(holds=answer["member_epoch"] > epoch, expected="a higher epoch", received=str(answer["member_epoch"]))
