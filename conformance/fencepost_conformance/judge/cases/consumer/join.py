"""ConsumerGroupHeartbeat with epoch 0: joining a consumer group, and what a broker refuses."""

from __future__ import annotations

from uuid import uuid4

from ..answers import SOMETHING, Matches
from ..case import case
from ..consumer_member import consumer_member, joined
from ..peer import Peer

#: the API of every case here, in the version in which the client makes the member id
_V1 = {"consumer_group_heartbeat": 1}
_POSITIVE = Matches("a positive number", lambda value: value > 0)


@case("consumer.join.1", "M-FENCE-02", "M-RSP-01", "M-HB-10", needs=_V1)
async def a_member_alone_is_assigned_all_partitions(peer: Peer) -> None:
    """A member joins an empty group with epoch 0. The answer has a positive epoch, a heartbeat interval, and an
    assignment with all partitions of its topic."""
    topic = await peer.topic(partitions=3)
    member = await consumer_member(peer, topic)
    own = member.member_id
    answer = await member.beat()
    answer.expect(error_code="NONE", member_id=own, member_epoch=_POSITIVE, heartbeat_interval=_POSITIVE)
    (row,) = answer.rows("assignment.topic_partitions", number=1)
    row.expect(topic_id=topic.topic_id, partitions=[0, 1, 2])


@case("consumer.join.2", "M-VAL-09", needs=_V1)
async def a_member_without_an_id_is_refused(peer: Peer) -> None:
    """A member joins in version 1 without a member id. The broker answers INVALID_REQUEST."""
    member = await consumer_member(peer, await peer.topic(partitions=1), member_id="")
    (await member.beat(version=1)).expect(error_code="INVALID_REQUEST")


@case("consumer.join.3", "M-VAL-26", needs={"consumer_group_heartbeat": 0})
async def an_early_client_is_given_an_id(peer: Peer) -> None:
    """A member joins in version 0 without a member id. It is admitted, and the answer has an id for it."""
    member = await consumer_member(peer, await peer.topic(partitions=1), member_id="")
    (await member.beat(version=0)).expect(error_code="NONE", member_id=SOMETHING, member_epoch=_POSITIVE)


@case("consumer.join.4", "M-VAL-05", needs=_V1)
async def an_empty_group_id_is_refused(peer: Peer) -> None:
    """A member joins the group with the empty id. The broker answers INVALID_REQUEST."""
    member = await consumer_member(peer, await peer.topic(partitions=1))
    (await member.beat(group_id="")).expect(error_code="INVALID_REQUEST")


@case("consumer.join.5", "M-VAL-06", needs=_V1)
async def an_empty_instance_id_is_refused(peer: Peer) -> None:
    """A member joins with the empty instance id. The broker answers INVALID_REQUEST."""
    member = await consumer_member(peer, await peer.topic(partitions=1))
    (await member.beat(instance_id="")).expect(error_code="INVALID_REQUEST")


@case("consumer.join.6", "M-VAL-07", needs=_V1)
async def an_empty_rack_is_refused(peer: Peer) -> None:
    """A member joins with the empty rack. The broker answers INVALID_REQUEST."""
    member = await consumer_member(peer, await peer.topic(partitions=1))
    (await member.beat(rack_id="")).expect(error_code="INVALID_REQUEST")


@case("consumer.join.7", "M-VAL-10", needs=_V1)
async def a_join_needs_a_rebalance_timeout(peer: Peer) -> None:
    """A member joins without a rebalance timeout (-1). The broker answers INVALID_REQUEST."""
    member = await consumer_member(peer, await peer.topic(partitions=1))
    (await member.beat(rebalance_timeout=-1)).expect(error_code="INVALID_REQUEST")


@case("consumer.join.8", "M-VAL-11", needs=_V1)
async def a_join_needs_a_list_of_partitions(peer: Peer) -> None:
    """A member joins without a list of owned partitions (null). The broker answers INVALID_REQUEST."""
    member = await consumer_member(peer, await peer.topic(partitions=1))
    (await member.beat(topic_partitions=None)).expect(error_code="INVALID_REQUEST")


@case("consumer.join.9", "M-VAL-11", needs=_V1)
async def a_join_cannot_own_partitions(peer: Peer) -> None:
    """A member joins and reports that it owns a partition. The broker answers INVALID_REQUEST."""
    topic = await peer.topic(partitions=1)
    member = await consumer_member(peer, topic)
    member.owned = {topic.topic_id: [0]}
    (await member.beat()).expect(error_code="INVALID_REQUEST")


@case("consumer.join.10", "M-VAL-12", needs=_V1)
async def a_join_needs_a_subscription(peer: Peer) -> None:
    """A member joins without topic names and without an expression (both null). The broker answers INVALID_REQUEST."""
    member = await consumer_member(peer, await peer.topic(partitions=1))
    (await member.beat(subscribed_topic_names=None)).expect(error_code="INVALID_REQUEST")


@case("consumer.join.11", "M-VAL-12", needs=_V1)
async def a_member_may_subscribe_to_nothing(peer: Peer) -> None:
    """A member joins with an empty list of topics. It is admitted, and its assignment is empty."""
    member = await consumer_member(peer, await peer.topic(partitions=1))
    answer = await member.beat(subscribed_topic_names=[])
    answer.expect(error_code="NONE", member_epoch=_POSITIVE).rows("assignment.topic_partitions", number=0)


@case("consumer.join.12", "M-META-05", needs=_V1)
async def a_topic_that_does_not_exist_is_ignored(peer: Peer) -> None:
    """A member subscribes to a topic that does not exist. It is admitted, and its assignment is empty."""
    member = await consumer_member(peer, await peer.topic(partitions=1))
    answer = await member.beat(subscribed_topic_names=[f"missing-{uuid4()}"])
    answer.expect(error_code="NONE").rows("assignment.topic_partitions", number=0)


@case("consumer.join.13", "M-VAL-15", needs=_V1)
async def an_unknown_assignor_is_refused(peer: Peer) -> None:
    """A member joins with a server-side assignor that no broker has. The broker answers UNSUPPORTED_ASSIGNOR."""
    member = await consumer_member(peer, await peer.topic(partitions=1), server_assignor="nobody-has-this")
    (await member.beat()).expect(error_code="UNSUPPORTED_ASSIGNOR")


@case("consumer.join.14", "M-TGT-02", needs=_V1)
async def the_range_assignor_can_be_chosen(peer: Peer) -> None:
    """A member joins with the server-side assignor ``range``. It is admitted, and owns all partitions."""
    topic = await peer.topic(partitions=2)
    member = await joined(peer, topic, server_assignor="range")
    answer = await member.client.ask("consumer_group_describe", group_ids=[peer.group])
    answer.at("groups.0").expect(error_code="NONE", assignor_name="range")


@case("consumer.join.15", "M-VAL-14", needs=_V1)
async def an_epoch_below_minus_2_is_refused(peer: Peer) -> None:
    """A member sends a heartbeat with epoch -3. The broker answers INVALID_REQUEST."""
    member = await consumer_member(peer, await peer.topic(partitions=1))
    (await member.beat(member_epoch=-3)).expect(error_code="INVALID_REQUEST")


@case("consumer.join.16", "M-VAL-20", needs=_V1)
async def a_missing_group_is_not_found(peer: Peer) -> None:
    """A member sends a heartbeat with epoch 5 to a group that does not exist. The broker answers
    GROUP_ID_NOT_FOUND."""
    member = await consumer_member(peer, await peer.topic(partitions=1), epoch=5)
    (await member.beat()).expect(error_code="GROUP_ID_NOT_FOUND")


@case("consumer.join.17", "M-FENCE-07", needs=_V1)
async def a_lost_answer_can_be_repeated(peer: Peer) -> None:
    """A member joins, and sends the same request again, as after a lost answer. It is accepted with the same epoch and
    the same assignment."""
    topic = await peer.topic(partitions=1)
    member = await consumer_member(peer, topic)
    first = await member.beat()
    again = await member.beat(full=True, member_epoch=0, topic_partitions=[])
    again.expect(error_code="NONE", member_epoch=first["member_epoch"], assignment=first["assignment"])
