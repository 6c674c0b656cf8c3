"""TxnOffsetCommit: offsets that are committed with a transaction."""

from __future__ import annotations

from typing import Any

from ..case import case
from ..classic_member import stable_group
from ..consumer_member import joined
from ..offset_requests import commit, expect_offset, expect_offset_soon, fetch, producer
from ..peer import Peer

_TRANSACTIONS = {"txn_offset_commit": 0, "add_offsets_to_txn": 0, "init_producer_id": 0, "end_txn": 0}
_MEMBERS = _TRANSACTIONS | {"txn_offset_commit": 3}
_STABLE = _TRANSACTIONS | {"offset_fetch": 7}


@case("offsets.transaction.1", "O-TXN-07", "O-TXN-08", needs=_TRANSACTIONS)
async def an_offset_appears_when_the_transaction_commits(peer: Peer) -> None:
    """A group has an offset of one partition. A producer commits one of another partition in a transaction. Fetching
    returns none there before the transaction is committed, and the offset afterwards."""
    topic = await peer.topic(partitions=2)
    writer = await producer(peer)
    await commit(writer.client, peer.group, topic, {1: 3})
    (await writer.commit(peer.group, topic, 7)).at("topics.0.partitions.0").expect(error_code="NONE")
    await expect_offset(writer.client, peer.group, topic, -1)
    (await writer.end(committed=True)).expect(error_code="NONE")
    await expect_offset_soon(peer, topic, 7)


@case("offsets.transaction.2", "O-TXN-08", needs=_TRANSACTIONS)
async def an_abort_leaves_the_offset_of_before(peer: Peer) -> None:
    """An offset is committed, then a producer commits another one in a transaction and aborts it. Fetching returns the
    first."""
    topic = await peer.topic()
    writer = await producer(peer)
    await commit(writer.client, peer.group, topic, {0: 3})
    (await writer.commit(peer.group, topic, 7)).at("topics.0.partitions.0").expect(error_code="NONE")
    (await writer.end(committed=False)).expect(error_code="NONE")
    (await writer.commit(peer.group, topic, 8)).at("topics.0.partitions.0").expect(error_code="NONE")
    (await writer.end(committed=False)).expect(error_code="NONE")
    await expect_offset(writer.client, peer.group, topic, 3)


@case("offsets.transaction.3", "O-FETCH-08", needs=_STABLE)
async def a_stable_fetch_waits_for_the_transaction(peer: Peer) -> None:
    """A group has an offset of one partition, and a producer has committed one of another partition in an open
    transaction. Fetching it as a stable offset is answered UNSTABLE_OFFSET_COMMIT until the transaction ends; then it
    returns the offset."""
    topic = await peer.topic(partitions=2)
    writer = await producer(peer)
    await commit(writer.client, peer.group, topic, {1: 3})
    (await writer.commit(peer.group, topic, 7)).at("topics.0.partitions.0").expect(error_code="NONE")
    answer = await fetch(writer.client, peer.group, topic, require_stable=True)
    answer.at("topics.0.partitions.0").expect(error_code="UNSTABLE_OFFSET_COMMIT", committed_offset=-1)
    (await writer.end(committed=True)).expect(error_code="NONE")
    await expect_offset_soon(peer, topic, 7, require_stable=True)


@case("offsets.transaction.4", "O-FETCH-07", needs=_STABLE)
async def an_ordinary_fetch_does_not_wait(peer: Peer) -> None:
    """An offset is committed, and a producer has committed another one in an open transaction. An ordinary fetch
    returns the first."""
    topic = await peer.topic()
    writer = await producer(peer)
    await commit(writer.client, peer.group, topic, {0: 3})
    (await writer.commit(peer.group, topic, 7)).at("topics.0.partitions.0").expect(error_code="NONE")
    await expect_offset(writer.client, peer.group, topic, 3)
    await writer.end(committed=False)


@case("offsets.transaction.5", "O-TXN-04", waits_s=3, needs=_MEMBERS)
async def an_old_generation_is_refused(peer: Peer) -> None:
    """A producer commits for a member of a stable classic group with the generation before its own. The broker answers
    ILLEGAL_GENERATION."""
    topic = await peer.topic()
    (member,) = await stable_group(peer, 1)
    writer = await producer(peer)
    identity: dict[str, Any] = {"member_id": member.member_id, "generation_id": member.generation_id - 1}
    answer = await writer.commit(peer.group, topic, 7, **identity)
    answer.at("topics.0.partitions.0").expect(error_code="ILLEGAL_GENERATION")


@case("offsets.transaction.6", "O-TXN-04", waits_s=3, needs=_MEMBERS)
async def a_stranger_is_refused(peer: Peer) -> None:
    """A producer commits to a stable classic group for a member that does not exist. The broker answers
    UNKNOWN_MEMBER_ID."""
    topic = await peer.topic()
    (member,) = await stable_group(peer, 1)
    writer = await producer(peer)
    identity: dict[str, Any] = {"member_id": "nobody", "generation_id": member.generation_id}
    answer = await writer.commit(peer.group, topic, 7, **identity)
    answer.at("topics.0.partitions.0").expect(error_code="UNKNOWN_MEMBER_ID")


@case("offsets.transaction.7", "O-TXN-05", needs=_MEMBERS | {"consumer_group_heartbeat": 1})
async def an_epoch_of_the_future_is_refused(peer: Peer) -> None:
    """A producer commits for a member of a consumer group with the epoch after its own. The broker answers
    ILLEGAL_GENERATION up to version 5, STALE_MEMBER_EPOCH from version 6 on."""
    topic = await peer.topic()
    member = await joined(peer, topic)
    writer = await producer(peer)
    identity: dict[str, Any] = {"member_id": member.member_id, "generation_id": member.epoch + 1}
    newest = writer.client.newest("txn_offset_commit")
    for version in sorted({min(newest, 5), newest}):
        answer = await writer.commit(peer.group, topic, 7, version=version, **identity)
        expected = "STALE_MEMBER_EPOCH" if version >= 6 else "ILLEGAL_GENERATION"
        answer.at("topics.0.partitions.0").expect(error_code=expected)


@case("offsets.transaction.8", "O-TXN-05", needs=_MEMBERS | {"consumer_group_heartbeat": 1})
async def a_member_of_a_consumer_group_commits(peer: Peer) -> None:
    """A producer commits for a member of a consumer group with its epoch, and commits the transaction. The offset
    appears."""
    topic = await peer.topic()
    member = await joined(peer, topic)
    writer = await producer(peer)
    identity: dict[str, Any] = {"member_id": member.member_id, "generation_id": member.epoch}
    (await writer.commit(peer.group, topic, 7, **identity)).at("topics.0.partitions.0").expect(error_code="NONE")
    (await writer.end(committed=True)).expect(error_code="NONE")
    await expect_offset_soon(peer, topic, 7)


@case("offsets.transaction.9", "O-TXN-14", "O-COMMIT-08", needs=_TRANSACTIONS)
async def long_metadata_is_refused(peer: Peer) -> None:
    """A producer commits an offset with a metadata text of 20,000 characters. The partition is answered
    OFFSET_METADATA_TOO_LARGE."""
    topic = await peer.topic()
    writer = await producer(peer)
    answer = await writer.commit(peer.group, topic, 7, metadata="x" * 20_000)
    answer.at("topics.0.partitions.0").expect(error_code="OFFSET_METADATA_TOO_LARGE")
