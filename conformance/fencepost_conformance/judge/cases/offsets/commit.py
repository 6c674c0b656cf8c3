"""OffsetCommit: who may commit, and what is stored."""

from __future__ import annotations

import asyncio
from uuid import uuid4

from ..case import case
from ..classic_member import classic_member, stable_group, until_rebalance
from ..consumer_member import consumer_member, joined
from ..offset_requests import BY_ID, commit, expect_offset, fetch
from ..peer import Peer, Topic

_KIP_848 = {"consumer_group_heartbeat": 1, "offset_commit": 9}


@case("offsets.commit.1", "O-COMMIT-20", "O-COMMIT-09")
async def a_simple_group_commits(peer: Peer) -> None:
    """A client without a member commits to a group that does not exist. The offset is stored and can be fetched."""
    topic = await peer.topic()
    client = await peer.client()
    answer = await commit(client, peer.group, topic, {0: 42})
    answer.at("topics.0.partitions.0").expect(error_code="NONE", partition_index=0)
    await expect_offset(client, peer.group, topic, 42)


@case("offsets.commit.2", "O-COMMIT-13")
async def the_last_commit_counts(peer: Peer) -> None:
    """A client commits 10 and then 5. The fetched offset is 5: a broker does not check that offsets grow."""
    topic = await peer.topic()
    client = await peer.client()
    for offset in (10, 5):
        (await commit(client, peer.group, topic, {0: offset})).at("topics.0.partitions.0").expect(error_code="NONE")
    await expect_offset(client, peer.group, topic, 5)


@case("offsets.commit.3", "O-COMMIT-14")
async def metadata_is_kept(peer: Peer) -> None:
    """A client commits with a metadata text. The fetched offset has the same text."""
    topic = await peer.topic()
    client = await peer.client()
    await commit(client, peer.group, topic, {0: 1}, metadata="héllo 𝄞")
    answer = await fetch(client, peer.group, topic)
    answer.at("topics.0.partitions.0").expect(error_code="NONE", committed_offset=1, metadata="héllo 𝄞")


@case("offsets.commit.4", "O-COMMIT-08")
async def long_metadata_is_refused(peer: Peer) -> None:
    """A client commits with a metadata text of 20,000 characters, more than brokers store. The partition is answered
    OFFSET_METADATA_TOO_LARGE, and nothing is stored."""
    topic = await peer.topic()
    client = await peer.client()
    answer = await commit(client, peer.group, topic, {0: 1}, metadata="x" * 20_000)
    answer.at("topics.0.partitions.0").expect(error_code="OFFSET_METADATA_TOO_LARGE")
    await expect_offset(client, peer.group, topic, -1)


@case("offsets.commit.5", "O-COMMIT-02")
async def an_unknown_topic_is_refused(peer: Peer) -> None:
    """A client commits in version 9 for a topic that does not exist. The partition is answered
    UNKNOWN_TOPIC_OR_PARTITION."""
    client = await peer.client()
    missing = Topic(f"missing-{uuid4()}", str(uuid4()), 1)
    answer = await commit(client, peer.group, missing, {0: 1}, version=client.newest("offset_commit", most=9))
    answer.at("topics.0.partitions.0").expect(error_code="UNKNOWN_TOPIC_OR_PARTITION")


@case("offsets.commit.6", "O-COMMIT-02", needs={"offset_commit": BY_ID})
async def an_unknown_topic_id_is_refused(peer: Peer) -> None:
    """A client commits in version 10 for a topic id that no topic has. The partition is answered UNKNOWN_TOPIC_ID."""
    client = await peer.client()
    missing = Topic("", str(uuid4()), 1)
    answer = await commit(client, peer.group, missing, {0: 1}, version=BY_ID)
    answer.at("topics.0.partitions.0").expect(error_code="UNKNOWN_TOPIC_ID")


@case("offsets.commit.7", "O-COMMIT-03")
async def an_unknown_partition_is_refused(peer: Peer) -> None:
    """A client commits for partition 0, which exists, and for partition 9, which does not. The first is stored; the
    second is answered UNKNOWN_TOPIC_OR_PARTITION."""
    topic = await peer.topic()
    client = await peer.client()
    answer = await commit(client, peer.group, topic, {0: 1, 9: 1})
    codes = {row["partition_index"]: row["error_code"] for row in answer.at("topics.0")["partitions"]}
    expected = {0: "NONE", 9: "UNKNOWN_TOPIC_OR_PARTITION"}
    peer.require(holds=codes == expected, expected=str(expected), received=str(codes))
    await expect_offset(client, peer.group, topic, 1)


@case("offsets.commit.8", "O-COMMIT-21", "O-COMMIT-22")
async def a_generation_of_a_missing_group_is_refused(peer: Peer) -> None:
    """A client commits with a generation to a group that does not exist. The broker answers GROUP_ID_NOT_FOUND from
    version 9 on, ILLEGAL_GENERATION before."""
    topic = await peer.topic()
    client = await peer.client()
    newest = client.newest("offset_commit")
    answer = await commit(client, peer.group, topic, {0: 1}, generation_id_or_member_epoch=3, member_id="m")
    expected = "GROUP_ID_NOT_FOUND" if newest >= 9 else "ILLEGAL_GENERATION"
    answer.at("topics.0.partitions.0").expect(error_code=expected)


@case("offsets.commit.9", "O-COMMIT-28", waits_s=3)
async def a_member_commits(peer: Peer) -> None:
    """A member of a stable classic group commits with its generation. The offset is stored."""
    topic = await peer.topic()
    (member,) = await stable_group(peer, 1)
    identity = member.committing()
    answer = await commit(member.client, peer.group, topic, {0: 7}, **identity)
    answer.at("topics.0.partitions.0").expect(error_code="NONE")
    await expect_offset(member.client, peer.group, topic, 7)


@case("offsets.commit.10", "O-COMMIT-25", waits_s=3)
async def an_old_generation_is_refused(peer: Peer) -> None:
    """A member of a stable classic group commits with the generation before its own. The broker answers
    ILLEGAL_GENERATION and stores nothing."""
    topic = await peer.topic()
    (member,) = await stable_group(peer, 1)
    identity = member.committing(epoch=member.generation_id - 1)
    answer = await commit(member.client, peer.group, topic, {0: 7}, **identity)
    answer.at("topics.0.partitions.0").expect(error_code="ILLEGAL_GENERATION")
    await expect_offset(member.client, peer.group, topic, -1)


@case("offsets.commit.11", "O-COMMIT-25", waits_s=3)
async def a_stranger_cannot_commit(peer: Peer) -> None:
    """A stranger commits to a stable classic group with its generation. The broker answers UNKNOWN_MEMBER_ID."""
    topic = await peer.topic()
    (member,) = await stable_group(peer, 1)
    identity = member.committing(member_id="nobody")
    answer = await commit(member.client, peer.group, topic, {0: 7}, **identity)
    answer.at("topics.0.partitions.0").expect(error_code="UNKNOWN_MEMBER_ID")


@case("offsets.commit.12", "O-COMMIT-26", "O-COMMIT-38", waits_s=3)
async def a_simple_client_cannot_commit_to_a_group_with_members(peer: Peer) -> None:
    """A client without a member commits to a stable classic group. The broker answers UNKNOWN_MEMBER_ID."""
    topic = await peer.topic()
    (member,) = await stable_group(peer, 1)
    answer = await commit(member.client, peer.group, topic, {0: 7})
    answer.at("topics.0.partitions.0").expect(error_code="UNKNOWN_MEMBER_ID")


@case("offsets.commit.13", "O-COMMIT-24", waits_s=3)
async def a_simple_client_may_commit_to_an_empty_group(peer: Peer) -> None:
    """The only member of a classic group leaves, and a client without a member commits. The offset is stored."""
    topic = await peer.topic()
    (member,) = await stable_group(peer, 1)
    await member.leave()
    answer = await commit(member.client, peer.group, topic, {0: 7})
    answer.at("topics.0.partitions.0").expect(error_code="NONE")
    await expect_offset(member.client, peer.group, topic, 7)


@case("offsets.commit.14", "O-COMMIT-27", waits_s=3)
async def a_commit_between_join_and_sync_is_refused(peer: Peer) -> None:
    """A member commits after JoinGroup and before SyncGroup. The broker answers REBALANCE_IN_PROGRESS."""
    topic = await peer.topic()
    member = await classic_member(peer)
    await member.enter()
    identity = member.committing()
    answer = await commit(member.client, peer.group, topic, {0: 7}, **identity)
    answer.at("topics.0.partitions.0").expect(error_code="REBALANCE_IN_PROGRESS")


@case("offsets.commit.15", "O-COMMIT-35", waits_s=3)
async def a_member_may_commit_before_it_rejoins(peer: Peer) -> None:
    """A rebalance has begun, and a member commits with its old generation before it joins again. The offset is
    stored."""
    topic = await peer.topic()
    (member,) = await stable_group(peer, 1)
    newcomer = await classic_member(peer)
    waiting = peer.start(newcomer.enter())
    await until_rebalance(member)
    identity = member.committing()
    answer = await commit(member.client, peer.group, topic, {0: 7}, **identity)
    answer.at("topics.0.partitions.0").expect(error_code="NONE")
    await asyncio.gather(member.join(), waiting)


@case("offsets.commit.16", "O-COMMIT-25", "C-STATIC-13", waits_s=3, needs={"offset_commit": 7})
async def another_holder_of_the_instance_id_is_fenced(peer: Peer) -> None:
    """A stranger commits with the instance id of a static member. The broker answers FENCED_INSTANCE_ID."""
    topic = await peer.topic()
    (member,) = await stable_group(peer, 1, instance_id="one")
    identity = member.committing(member_id="nobody") | {"group_instance_id": "one"}
    answer = await commit(member.client, peer.group, topic, {0: 7}, **identity)
    answer.at("topics.0.partitions.0").expect(error_code="FENCED_INSTANCE_ID")


@case("offsets.commit.17", "O-COMMIT-28", "C-TMR-04", waits_s=13)
async def commits_extend_the_session(peer: Peer) -> None:
    """A member of a classic group sends three commits, each after half of its session timeout, and nothing else. It is
    still a member then."""
    topic = await peer.topic()
    (member,) = await stable_group(peer, 1, session_timeout_ms=6_000)
    identity = member.committing()
    for offset in range(3):
        await asyncio.sleep(member.session_s / 2)
        answer = await commit(member.client, peer.group, topic, {0: offset}, **identity)
        answer.at("topics.0.partitions.0").expect(error_code="NONE")
    (await member.heartbeat()).expect(error_code="NONE")


@case("offsets.commit.18", "O-COMMIT-33", needs=_KIP_848)
async def a_consumer_group_member_commits(peer: Peer) -> None:
    """A member of a consumer group commits with its epoch. The offset is stored."""
    topic = await peer.topic()
    member = await joined(peer, topic)
    identity = member.committing()
    answer = await commit(member.client, peer.group, topic, {0: 7}, **identity)
    answer.at("topics.0.partitions.0").expect(error_code="NONE")
    await expect_offset(member.client, peer.group, topic, 7)


@case("offsets.commit.19", "O-COMMIT-32", needs=_KIP_848)
async def an_epoch_of_the_future_is_refused(peer: Peer) -> None:
    """A member of a consumer group commits with the epoch after its own. The broker answers STALE_MEMBER_EPOCH."""
    topic = await peer.topic()
    member = await joined(peer, topic)
    identity = member.committing(epoch=member.epoch + 1)
    answer = await commit(member.client, peer.group, topic, {0: 7}, **identity)
    answer.at("topics.0.partitions.0").expect(error_code="STALE_MEMBER_EPOCH")


@case("offsets.commit.20", "O-COMMIT-32", needs=_KIP_848)
async def an_epoch_before_the_assignment_is_refused(peer: Peer) -> None:
    """A member of a consumer group commits with an epoch from before it was assigned the partition. The broker answers
    STALE_MEMBER_EPOCH."""
    topic = await peer.topic()
    member = await joined(peer, topic)
    identity = member.committing(epoch=member.epoch - 1)
    answer = await commit(member.client, peer.group, topic, {0: 7}, **identity)
    answer.at("topics.0.partitions.0").expect(error_code="STALE_MEMBER_EPOCH")


@case("offsets.commit.21", "O-COMMIT-30", needs=_KIP_848)
async def a_stranger_cannot_commit_to_a_consumer_group(peer: Peer) -> None:
    """A stranger commits to a consumer group with its epoch. The broker answers UNKNOWN_MEMBER_ID."""
    topic = await peer.topic()
    member = await joined(peer, topic)
    identity = member.committing(member_id="nobody")
    answer = await commit(member.client, peer.group, topic, {0: 7}, **identity)
    answer.at("topics.0.partitions.0").expect(error_code="UNKNOWN_MEMBER_ID")


@case("offsets.commit.22", "O-COMMIT-31", needs=_KIP_848)
async def an_old_version_cannot_commit_to_a_consumer_group(peer: Peer) -> None:
    """A member of a consumer group commits in version 8, which knows no member epochs. The broker answers
    UNSUPPORTED_VERSION."""
    topic = await peer.topic()
    member = await joined(peer, topic)
    identity = member.committing()
    answer = await commit(member.client, peer.group, topic, {0: 7}, version=8, **identity)
    answer.at("topics.0.partitions.0").expect(error_code="UNSUPPORTED_VERSION")


@case("offsets.commit.23", "O-COMMIT-29", needs=_KIP_848)
async def a_simple_client_may_commit_to_an_empty_consumer_group(peer: Peer) -> None:
    """The only member of a consumer group leaves, and a client without a member commits. The offset is stored."""
    topic = await peer.topic()
    member = await joined(peer, topic)
    await member.gone()
    answer = await commit(member.client, peer.group, topic, {0: 7})
    answer.at("topics.0.partitions.0").expect(error_code="NONE")
    await expect_offset(member.client, peer.group, topic, 7)


@case("offsets.commit.24", "O-COMMIT-36", "O-COMMIT-41", needs=_KIP_848)
async def a_kept_partition_may_be_committed_with_the_former_epoch(peer: Peer) -> None:
    """A member of a consumer group moves to the next epoch and keeps a partition. A commit for this partition with the
    former epoch, as sent just before the move, is stored. Releases of Kafka before 4.3 answer STALE_MEMBER_EPOCH."""
    topic = await peer.topic(partitions=2)
    first = await joined(peer, topic)
    old = first.epoch
    second = await consumer_member(peer, topic)
    await second.beat()
    while first.epoch == old:
        await first.acknowledge()
        await asyncio.sleep(0.05)
    (kept,) = first.assigned[topic.topic_id]
    identity = first.committing(epoch=old)
    answer = await commit(first.client, peer.group, topic, {kept: 7}, **identity)
    expected = "STALE_MEMBER_EPOCH" if peer.profile.old_no_assignment_epochs else "NONE"
    answer.at("topics.0.partitions.0").expect(error_code=expected)


@case("offsets.commit.25", "O-COMMIT-02", "O-COMMIT-14", needs={"offset_commit": BY_ID})
async def names_and_ids_mean_the_same_topic(peer: Peer) -> None:
    """A client commits by topic id in version 10, and then by name in version 9. Each fetch, by id and by name, returns
    what was committed last."""
    topic = await peer.topic()
    client = await peer.client()
    for version, offset in ((BY_ID, 3), (9, 4)):
        answer = await commit(client, peer.group, topic, {0: offset}, version=version)
        answer.at("topics.0.partitions.0").expect(error_code="NONE")
        for asked in (9, BY_ID):
            fetched = await fetch(client, peer.group, topic, version=asked)
            fetched.at("topics.0.partitions.0").expect(error_code="NONE", committed_offset=offset)


@case("offsets.commit.26", "O-COMMIT-10", "O-COMMIT-13")
async def each_partition_has_its_own_offset(peer: Peer) -> None:
    """A client commits different offsets for three partitions in one request. Each fetched offset is its own."""
    topic = await peer.topic(partitions=3)
    client = await peer.client()
    await commit(client, peer.group, topic, {0: 10, 1: 11, 2: 2**62})
    for partition, offset in ((0, 10), (1, 11), (2, 2**62)):
        await expect_offset(client, peer.group, topic, offset, partition)
