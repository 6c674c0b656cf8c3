"""The last member with the consumer protocol goes: the group becomes a classic group again."""

from __future__ import annotations

import asyncio

from ..answers import Matches
from ..broker_settings import DOWNGRADES, MIXES, POLICY
from ..case import KnownFault, case
from ..classic_member import ClassicMember, classic_member, until_rebalance
from ..consumer_member import LEAVE_FOR_A_WHILE, ConsumerMember, consumer_member, joined
from ..group_state import expect_state
from ..mixed_group import rolled
from ..offset_requests import commit, expect_offset
from ..peer import Peer, Topic

#: Kafka counts generations anew
_COUNTS_ANEW = KnownFault("fault_empty_group_counts_anew", "generation_id", 1)
_API = {"consumer_group_heartbeat": 1, "consumer_group_describe": 0}
_DOWNGRADES = {POLICY: DOWNGRADES}
_MIXES = {POLICY: MIXES}


async def _mixed(peer: Peer, topic: Topic, instance_id: str | None = None) -> tuple[ConsumerMember, ClassicMember]:
    """Return the members of a consumer group that divide the topic's partitions: one of each protocol."""
    consumer = await consumer_member(peer, topic, instance_id=instance_id)
    await consumer.beat()
    await consumer.acknowledge()
    classic = await classic_member(peer, topics=(topic.name,))
    await classic.enter()
    await rolled(topic, classic, consumer)
    return consumer, classic


@case("mixed.downgrade.1", "X-DOWN-01", "X-DOWN-03", needs=_API, settings=_DOWNGRADES)
async def the_group_is_converted_back(peer: Peer) -> None:
    """A group has one member of each protocol, and the one with the consumer protocol leaves. The group is classic
    again, with the other member."""
    topic = await peer.topic(partitions=2)
    consumer, classic = await _mixed(peer, topic)
    (await consumer.leave()).expect(error_code="NONE")
    client = await peer.client()
    row = (await client.ask("describe_groups", groups=[peer.group])).at("groups.0")
    (member,) = row.expect(error_code="NONE", protocol_type="consumer").rows("members", number=1)
    member.expect(member_id=classic.member_id)


@case("mixed.downgrade.2", "X-DOWN-06", "X-DOWN-07", needs=_API, settings=_DOWNGRADES)
async def the_classic_member_rejoins_and_leads(peer: Peer) -> None:
    """A group was converted back. The classic member's heartbeat is answered REBALANCE_IN_PROGRESS; it joins again and
    is the leader of the next generation."""
    topic = await peer.topic(partitions=2)
    consumer, classic = await _mixed(peer, topic)
    generation = classic.generation_id
    await consumer.gone()
    await until_rebalance(classic)
    answer = (await classic.join()).expect(error_code="NONE", leader=classic.member_id)
    received = answer["generation_id"]
    peer.require(holds=received > generation, expected=f"a generation above {generation}", received=str(received))


@case("mixed.downgrade.3", "X-DOWN-02", "O-COMMIT-33", needs=_API | {"offset_commit": 9}, settings=_DOWNGRADES)
async def committed_offsets_stay(peer: Peer) -> None:
    """A member with the consumer protocol commits, and the group is converted back. Fetching returns the offset."""
    topic = await peer.topic(partitions=2)
    consumer, _ = await _mixed(peer, topic)
    await commit(consumer.client, peer.group, topic, {0: 9}, **consumer.committing())
    await consumer.gone()
    await expect_offset(consumer.client, peer.group, topic, 9)


@case("mixed.downgrade.4", "C-JOIN-10", "C-JOIN-16", needs=_API, fault=_COUNTS_ANEW)
async def an_empty_consumer_group_is_replaced(peer: Peer) -> None:
    """The only member of a consumer group leaves, and a classic member joins. It becomes the leader of a classic group,
    whose generation is higher than the epochs of the consumer group."""
    topic = await peer.topic(partitions=1)
    member = await joined(peer, topic)
    epoch = member.epoch
    await member.gone()
    classic = await classic_member(peer, topics=(topic.name,))
    answer = (await classic.enter()).expect(error_code="NONE", leader=classic.member_id)
    answer.expect(generation_id=Matches(f"a generation above {epoch}", lambda generation: generation > epoch))


@case("mixed.downgrade.5", "C-JOIN-15", needs=_API)
async def an_empty_consumer_group_knows_no_member(peer: Peer) -> None:
    """The only member of a consumer group leaves, and a classic member joins with a member id. The broker answers
    UNKNOWN_MEMBER_ID."""
    topic = await peer.topic(partitions=1)
    member = await joined(peer, topic)
    await member.gone()
    classic = await classic_member(peer, topics=(topic.name,), member_id="nobody")
    (await classic.join()).expect(error_code="UNKNOWN_MEMBER_ID")


@case("mixed.downgrade.6", "X-DOWN-20", "X-JOIN-07", needs=_API, settings=_DOWNGRADES)
async def a_static_member_returns_with_the_classic_protocol(peer: Peer) -> None:
    """A static member with the consumer protocol leaves with epoch -2, and its new process joins with the classic
    protocol. It is admitted, and the group, which has classic members only, is classic."""
    topic = await peer.topic(partitions=2)
    consumer, _ = await _mixed(peer, topic, instance_id="one")
    await consumer.gone(LEAVE_FOR_A_WHILE, instance_id="one")
    classic = await classic_member(peer, topics=(topic.name,), instance_id="one")
    (await classic.join()).expect(error_code="NONE")
    client = await peer.client()
    row = (await client.ask("describe_groups", groups=[peer.group])).at("groups.0")
    row.expect(error_code="NONE").rows("members", number=2)


@case("mixed.downgrade.7", "X-TMR-01", "X-DOWN-01", waits_s=10, needs=_API, settings=_MIXES)
async def a_silent_classic_member_is_removed(peer: Peer) -> None:
    """The classic member of a mixed group sends nothing for longer than its session timeout. The other receives all
    partitions."""
    topic = await peer.topic(partitions=2)
    consumer = await consumer_member(peer, topic)
    await consumer.beat()
    await consumer.acknowledge()
    classic = await classic_member(peer, topics=(topic.name,), session_timeout_ms=6_000)
    await classic.enter()
    await rolled(topic, classic, consumer)
    for _ in range(round(2.5 * classic.session_s)):
        await consumer.beat()
        await asyncio.sleep(0.5)
    await consumer.until({topic.topic_id: [0, 1]})
    (await classic.heartbeat()).expect(error_code="UNKNOWN_MEMBER_ID")


@case("mixed.downgrade.8", "X-DOWN-03", "C-SYNC-17", needs=_API, settings=_DOWNGRADES)
async def the_classic_group_works_again(peer: Peer) -> None:
    """A group was converted back. Its member joins, assigns all partitions to itself and sends a heartbeat: the group
    is stable."""
    topic = await peer.topic(partitions=2)
    consumer, classic = await _mixed(peer, topic)
    await consumer.gone()
    await until_rebalance(classic)
    await classic.join()
    (await classic.sync({classic.member_id: ()})).expect(error_code="NONE")
    (await classic.heartbeat()).expect(error_code="NONE")
    await expect_state(peer, "Stable")
