"""OffsetFetch: what a broker tells about committed offsets."""

from __future__ import annotations

from uuid import uuid4

from ..case import case
from ..classic_member import stable_group
from ..consumer_member import joined
from ..offset_requests import BY_ID, commit, expect_offset_soon, fetch
from ..peer import Peer, Topic

_KIP_848 = {"consumer_group_heartbeat": 1, "offset_fetch": 9}


@case("offsets.fetch.1", "O-FETCH-03")
async def a_missing_group_has_no_offsets(peer: Peer) -> None:
    """A client fetches an offset of a group that does not exist. The answer is NONE with offset -1, leader epoch -1 and
    empty metadata."""
    topic = await peer.topic()
    client = await peer.client()
    answer = await fetch(client, peer.group, topic)
    row = answer.at("topics.0.partitions.0")
    row.expect(error_code="NONE", committed_offset=-1, committed_leader_epoch=-1, metadata="")


@case("offsets.fetch.2", "O-FETCH-06")
async def a_partition_without_a_commit_has_none(peer: Peer) -> None:
    """A client commits for partition 0, and fetches partition 1. The answer is NONE with offset -1."""
    topic = await peer.topic(partitions=2)
    client = await peer.client()
    await commit(client, peer.group, topic, {0: 5})
    answer = await fetch(client, peer.group, topic, (1,))
    answer.at("topics.0.partitions.0").expect(error_code="NONE", committed_offset=-1, partition_index=1)


@case("offsets.fetch.3", "O-FETCH-13", needs={"offset_fetch": 2})
async def all_offsets_of_a_group(peer: Peer) -> None:
    """A client commits for two topics, and fetches without naming topics. The answer has both, and nothing else."""
    first, second = await peer.topic(), await peer.topic()
    client = await peer.client()
    await commit(client, peer.group, first, {0: 1})
    await commit(client, peer.group, second, {0: 2})
    answer = await fetch(client, peer.group, None, version=client.newest("offset_fetch", most=9))
    rows = answer.rows("topics", number=2)
    offsets = {row["name"]: row.at("partitions.0").expect(error_code="NONE")["committed_offset"] for row in rows}
    expected = {first.name: 1, second.name: 2}
    peer.require(holds=offsets == expected, expected=str(expected), received=str(offsets))


@case("offsets.fetch.4", "O-FETCH-03", needs={"offset_fetch": 2})
async def a_missing_group_has_no_topics(peer: Peer) -> None:
    """A client fetches all offsets of a group that does not exist. The answer is NONE without topics."""
    client = await peer.client()
    answer = await fetch(client, peer.group, None)
    answer.expect(error_code="NONE").rows("topics", number=0)


@case("offsets.fetch.5", "O-FETCH-11", needs={"offset_fetch": 8})
async def several_groups_at_once(peer: Peer) -> None:
    """A client commits to two groups, and fetches both in one request. Each group's row has its own offset."""
    topic = await peer.topic()
    client = await peer.client()
    groups = (peer.group, f"{peer.group}-2")
    for number, group in enumerate(groups):
        await commit(client, group, topic, {0: number + 1})
    version = client.newest("offset_fetch", most=9)
    asked = [{"name": topic.name, "partition_indexes": [0]}]
    rows = [{"group_id": group, "member_id": None, "member_epoch": -1, "topics": asked} for group in groups]
    answer = await client.ask("offset_fetch", version, groups=rows, require_stable=False)
    for number, row in enumerate(answer.rows("groups", number=2)):
        row.expect(group_id=groups[number], error_code="NONE")
        row.at("topics.0.partitions.0").expect(error_code="NONE", committed_offset=number + 1)


@case("offsets.fetch.6", "O-FETCH-04", waits_s=3)
async def anybody_may_read_a_classic_group(peer: Peer) -> None:
    """A client that is not a member fetches an offset of a stable classic group. It receives it."""
    topic = await peer.topic()
    (member,) = await stable_group(peer, 1)
    identity = member.committing()
    await commit(member.client, peer.group, topic, {0: 7}, **identity)
    client = await peer.client()
    (await fetch(client, peer.group, topic)).at("topics.0.partitions.0").expect(error_code="NONE", committed_offset=7)


@case("offsets.fetch.7", "O-FETCH-05", needs=_KIP_848)
async def anybody_may_read_a_consumer_group(peer: Peer) -> None:
    """A client fetches an offset of a consumer group without a member id. It receives it."""
    topic = await peer.topic()
    member = await joined(peer, topic)
    identity = member.committing()
    await commit(member.client, peer.group, topic, {0: 7}, **identity)
    client = await peer.client()
    (await fetch(client, peer.group, topic)).at("topics.0.partitions.0").expect(error_code="NONE", committed_offset=7)


@case("offsets.fetch.8", "O-FETCH-05", needs=_KIP_848)
async def a_member_reads_with_its_epoch(peer: Peer) -> None:
    """A member of a consumer group fetches an offset with its member id and epoch. It receives it."""
    topic = await peer.topic()
    member = await joined(peer, topic)
    identity = member.committing()
    await commit(member.client, peer.group, topic, {0: 7}, **identity)
    answer = await fetch(member.client, peer.group, topic, member_id=member.member_id, member_epoch=member.epoch)
    answer.expect(error_code="NONE").at("topics.0.partitions.0").expect(error_code="NONE", committed_offset=7)


@case("offsets.fetch.9", "O-FETCH-05", needs=_KIP_848)
async def another_epoch_is_refused(peer: Peer) -> None:
    """A member of a consumer group fetches offsets with the epoch before its own, and with the one after it. The broker
    answers STALE_MEMBER_EPOCH to both."""
    topic = await peer.topic()
    member = await joined(peer, topic)
    for epoch in (member.epoch - 1, member.epoch + 1):
        answer = await fetch(member.client, peer.group, topic, member_id=member.member_id, member_epoch=epoch)
        answer.expect(error_code="STALE_MEMBER_EPOCH")


@case("offsets.fetch.10", "O-FETCH-05", needs=_KIP_848)
async def a_stranger_with_a_member_id_is_refused(peer: Peer) -> None:
    """A stranger fetches offsets of a consumer group with a member id. The broker answers UNKNOWN_MEMBER_ID."""
    topic = await peer.topic()
    member = await joined(peer, topic)
    answer = await fetch(member.client, peer.group, topic, member_id="nobody", member_epoch=member.epoch)
    answer.expect(error_code="UNKNOWN_MEMBER_ID")


@case("offsets.fetch.11", "O-FETCH-06")
async def an_unknown_topic_has_no_offset(peer: Peer) -> None:
    """A group has an offset. A client fetches by name one of a topic that does not exist. The answer is NONE with
    offset -1."""
    client = await peer.client()
    await commit(client, peer.group, await peer.topic(), {0: 5})
    missing = Topic(f"missing-{uuid4()}", str(uuid4()), 1)
    answer = await fetch(client, peer.group, missing, version=client.newest("offset_fetch", most=9))
    answer.at("topics.0.partitions.0").expect(error_code="NONE", committed_offset=-1)


@case("offsets.fetch.12", "O-FETCH-06", needs={"offset_fetch": BY_ID})
async def an_unknown_topic_id_is_refused(peer: Peer) -> None:
    """A group has an offset. A client fetches by id one of a topic that does not exist. The partition is answered
    UNKNOWN_TOPIC_ID."""
    client = await peer.client()
    await commit(client, peer.group, await peer.topic(), {0: 5})
    missing = Topic("", str(uuid4()), 1)
    answer = await fetch(client, peer.group, missing, version=BY_ID)
    answer.at("topics.0.partitions.0").expect(error_code="UNKNOWN_TOPIC_ID")


@case("offsets.fetch.13", "O-FETCH-06", "O-EXP-23", needs={"delete_topics": 0})
async def the_offsets_of_a_deleted_topic_go(peer: Peer) -> None:
    """A client commits for a topic, and the topic is deleted. Its offset is gone a moment later."""
    topic = await peer.topic()
    client = await peer.client()
    await commit(client, peer.group, topic, {0: 5})
    await peer.delete(topic)
    await expect_offset_soon(peer, topic, -1, version=client.newest("offset_fetch", most=9))
