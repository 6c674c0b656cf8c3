"""OffsetDelete: an administrator deletes committed offsets."""

from __future__ import annotations

from uuid import uuid4

from ..answers import Answer
from ..case import case
from ..classic_member import classic_member, stable_group
from ..consumer_member import joined
from ..offset_requests import commit, expect_offset
from ..peer import Client, Peer

_API = {"offset_delete": 0}


async def _delete(client: Client, group: str, topic: str, partition: int = 0) -> Answer:
    row = {"name": topic, "partitions": [{"partition_index": partition}]}
    return await client.ask("offset_delete", group_id=group, topics=[row])


@case("offsets.delete.1", "O-DEL-06", needs=_API)
async def an_offset_is_deleted(peer: Peer) -> None:
    """An offset of a simple group is committed and deleted. Fetching returns none."""
    topic = await peer.topic()
    client = await peer.client()
    await commit(client, peer.group, topic, {0: 5})
    answer = (await _delete(client, peer.group, topic.name)).expect(error_code="NONE")
    answer.at("topics.0.partitions.0").expect(error_code="NONE", partition_index=0)
    await expect_offset(client, peer.group, topic, -1)


@case("offsets.delete.2", "O-DEL-03", needs=_API)
async def a_missing_group_is_not_found(peer: Peer) -> None:
    """An administrator deletes an offset of a group that does not exist. The broker answers GROUP_ID_NOT_FOUND."""
    topic = await peer.topic()
    (await _delete(await peer.client(), peer.group, topic.name)).expect(error_code="GROUP_ID_NOT_FOUND")


@case("offsets.delete.3", "O-DEL-01", needs=_API)
async def an_unknown_topic_is_refused(peer: Peer) -> None:
    """An administrator deletes an offset of a topic that does not exist. The partition is answered
    UNKNOWN_TOPIC_OR_PARTITION."""
    topic = await peer.topic()
    client = await peer.client()
    await commit(client, peer.group, topic, {0: 5})
    answer = await _delete(client, peer.group, f"missing-{uuid4()}")
    answer.at("topics.0.partitions.0").expect(error_code="UNKNOWN_TOPIC_OR_PARTITION")


@case("offsets.delete.4", "O-DEL-05", "O-DEL-07", waits_s=3, needs=_API)
async def a_subscribed_topic_is_protected(peer: Peer) -> None:
    """A member of a stable classic group subscribes to a topic, and an administrator deletes its offset. The partition
    is answered GROUP_SUBSCRIBED_TO_TOPIC, and the offset stays."""
    topic = await peer.topic()
    (member,) = await stable_group(peer, 1, topics=(topic.name,))
    identity = member.committing()
    await commit(member.client, peer.group, topic, {0: 5}, **identity)
    answer = (await _delete(await peer.client(), peer.group, topic.name)).expect(error_code="NONE")
    answer.at("topics.0.partitions.0").expect(error_code="GROUP_SUBSCRIBED_TO_TOPIC")
    await expect_offset(member.client, peer.group, topic, 5)


@case("offsets.delete.5", "O-DEL-05", "O-DEL-07", needs=_API | {"consumer_group_heartbeat": 1, "offset_commit": 9})
async def a_topic_of_a_consumer_group_is_protected(peer: Peer) -> None:
    """A member of a consumer group subscribes to a topic, and an administrator deletes its offset. The partition is
    answered GROUP_SUBSCRIBED_TO_TOPIC, and the offset stays."""
    topic = await peer.topic()
    member = await joined(peer, topic)
    identity = member.committing()
    await commit(member.client, peer.group, topic, {0: 5}, **identity)
    answer = (await _delete(await peer.client(), peer.group, topic.name)).expect(error_code="NONE")
    answer.at("topics.0.partitions.0").expect(error_code="GROUP_SUBSCRIBED_TO_TOPIC")
    await expect_offset(member.client, peer.group, topic, 5)


@case("offsets.delete.6", "O-DEL-04", waits_s=3, needs=_API)
async def a_group_of_another_type_is_not_empty(peer: Peer) -> None:
    """A member of protocol type ``connect`` is in a classic group, and an administrator deletes an offset. The broker
    answers NON_EMPTY_GROUP."""
    topic = await peer.topic()
    member = await classic_member(peer, protocol_type="connect")
    await member.enter()
    (await _delete(await peer.client(), peer.group, topic.name)).expect(error_code="NON_EMPTY_GROUP")


@case("offsets.delete.7", "O-DEL-08", waits_s=3, needs=_API)
async def an_empty_group_protects_nothing(peer: Peer) -> None:
    """The only member of a classic group leaves, and an administrator deletes an offset of its topic. It is deleted."""
    topic = await peer.topic()
    (member,) = await stable_group(peer, 1, topics=(topic.name,))
    identity = member.committing()
    await commit(member.client, peer.group, topic, {0: 5}, **identity)
    await member.leave()
    answer = (await _delete(member.client, peer.group, topic.name)).expect(error_code="NONE")
    answer.at("topics.0.partitions.0").expect(error_code="NONE")
    await expect_offset(member.client, peer.group, topic, -1)
