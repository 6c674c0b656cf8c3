"""Requests about committed offsets, in the shape that each version has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID, uuid4

from .answers import Answer
from .peer import Client, Peer, Topic

#: OffsetCommit and OffsetFetch name topics by id from this version on
BY_ID: Final = 10
#: OffsetFetch asks for several groups from this version on
_GROUPS: Final = 8


async def commit(
    client: Client, group: str, topic: Topic, offsets: Mapping[int, int], version: int | None = None, **changes: Any
) -> Answer:
    """Commit offsets by partition. ``changes`` replace fields of the request, ``metadata`` that of each partition."""
    version = client.newest("offset_commit") if version is None else version
    metadata = changes.pop("metadata", "")
    partitions = [
        {
            "partition_index": each,
            "committed_offset": offset,
            "committed_leader_epoch": -1,
            "committed_metadata": metadata,
        }
        for each, offset in offsets.items()
    ]
    request = {
        "group_id": group,
        "generation_id_or_member_epoch": -1,
        "member_id": "",
        "retention_time": -1,
        "topics": [{**named(topic, by_id=version >= BY_ID), "partitions": partitions}],
    }
    return await client.ask("offset_commit", version, **(request | changes))


async def fetch(
    client: Client,
    group: str,
    topic: Topic | None,
    partitions: Sequence[int] = (0,),
    version: int | None = None,
    **changes: Any,
) -> Answer:
    """Fetch committed offsets: of these partitions, or of all topics if ``topic`` is None. Return what the answer says
    of the group. ``changes`` replace fields of the request, or of the group's row."""
    version = client.newest("offset_fetch") if version is None else version
    stable = changes.pop("require_stable", False)
    topics = None
    if topic is not None:
        topics = [{**named(topic, by_id=version >= BY_ID), "partition_indexes": list(partitions)}]
    row = {"group_id": group, "member_id": None, "member_epoch": -1, "topics": topics} | changes
    if version < _GROUPS:
        return await client.ask("offset_fetch", version, require_stable=stable, **row)
    answer = await client.ask("offset_fetch", version, require_stable=stable, groups=[row])
    return answer.at("groups.0")


async def expect_offset(client: Client, group: str, topic: Topic, offset: int, partition: int = 0) -> Answer:
    """Expect a committed offset; -1 for none."""
    answer = await fetch(client, group, topic, (partition,))
    return answer.at("topics.0.partitions.0").expect(error_code="NONE", committed_offset=offset)


async def expect_offset_soon(peer: Peer, topic: Topic, offset: int, **changes: Any) -> None:
    """Expect a committed offset of partition 0 of the case's group within 20 s; ``changes`` as in ``fetch``."""
    client = await peer.client()
    code, committed = "", None

    async def is_there() -> bool:
        nonlocal code, committed
        row = (await fetch(client, peer.group, topic, **changes)).at("topics.0.partitions.0")
        code, committed = row["error_code"], row["committed_offset"]
        return (code, committed) == ("NONE", offset)

    holds = await peer.until(is_there)
    peer.require(
        holds=holds, expected=f"NONE and offset {offset} within 20 s", received=f"{code} and offset {committed}"
    )


def named(topic: Topic, *, by_id: bool) -> dict[str, Any]:
    """Return how a row of a request names a topic."""
    return {"topic_id": UUID(topic.topic_id).bytes} if by_id else {"name": topic.name}


@dataclass(slots=True)
class Producer:
    """A transactional producer, with a connection to its transaction coordinator and one to the group's."""

    client: Client
    transactions: Client
    transactional_id: str
    producer_id: int
    producer_epoch: int

    @property
    def identity(self) -> dict[str, Any]:
        return {
            "transactional_id": self.transactional_id,
            "producer_id": self.producer_id,
            "producer_epoch": self.producer_epoch,
        }

    async def commit(self, group: str, topic: Topic, offset: int, version: int | None = None, **changes: Any) -> Answer:
        """Add the group to the transaction, and commit an offset of partition 0 in it."""
        await self.transactions.until_ready("add_offsets_to_txn", group_id=group, **self.identity)
        partition = {"partition_index": 0, "committed_offset": offset, "committed_leader_epoch": -1}
        partition |= {"committed_metadata": changes.pop("metadata", "")}
        version = self.client.newest("txn_offset_commit") if version is None else version
        rows = [{**named(topic, by_id=version > _BY_NAME), "partitions": [partition]}]
        request = {**self.identity, "group_id": group, "generation_id": -1, "member_id": "", "topics": rows}
        return await self.client.ask("txn_offset_commit", version, **(request | changes))

    async def end(self, *, committed: bool) -> Answer:
        """End the transaction, and take the next epoch if the broker gives one."""
        answer = await self.transactions.ask("end_txn", committed=committed, **self.identity)
        if answer["error_code"] == "NONE" and answer.value.get("producer_epoch", -1) >= 0:
            self.producer_id, self.producer_epoch = answer["producer_id"], answer["producer_epoch"]
        return answer


#: TxnOffsetCommit names topics by name up to this version
_BY_NAME: Final = 5


async def producer(peer: Peer) -> Producer:
    """Return a producer with a new transactional id. Raises ``NotReached`` if it gets no producer id."""
    name = f"case-{uuid4()}"
    transactions = await peer.client(coordinates=name)
    answer = await transactions.until_ready(
        "init_producer_id", transactional_id=name, transaction_timeout=60_000, producer_id=-1, producer_epoch=-1
    )
    return Producer(await peer.client(), transactions, name, answer["producer_id"], answer["producer_epoch"])
