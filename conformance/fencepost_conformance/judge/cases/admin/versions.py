"""Every version of every API of groups, offsets and transactions: the simplest exchange that succeeds.

The number of a case is the version. A broker that does not announce the version does not support the case.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

from ..case import case
from ..classic_member import classic_member, stable_group
from ..consumer_member import consumer_member, joined
from ..offset_requests import commit, fetch, producer
from ..peer import Peer, spoken

_Exchange: TypeAlias = Callable[..., Awaitable[None]]


async def _join(peer: Peer, version: int) -> None:
    member = await classic_member(peer)
    (await member.enter(version)).expect(error_code="NONE", generation_id=1, leader=member.member_id)


async def _sync(peer: Peer, version: int) -> None:
    (member,) = await stable_group(peer, 1)
    (await member.sync(version=version)).expect(error_code="NONE")


async def _heartbeat(peer: Peer, version: int) -> None:
    (member,) = await stable_group(peer, 1)
    (await member.heartbeat(version)).expect(error_code="NONE")


async def _leave(peer: Peer, version: int) -> None:
    (member,) = await stable_group(peer, 1)
    (await member.leave(version)).expect(error_code="NONE")
    (await member.heartbeat()).expect(error_code="UNKNOWN_MEMBER_ID")


async def _commit(peer: Peer, version: int) -> None:
    topic, client = await peer.topic(), await peer.client()
    answer = await commit(client, peer.group, topic, {0: 5}, version=version)
    answer.at("topics.0.partitions.0").expect(error_code="NONE", partition_index=0)


async def _fetch(peer: Peer, version: int) -> None:
    topic, client = await peer.topic(), await peer.client()
    await commit(client, peer.group, topic, {0: 5})
    answer = await fetch(client, peer.group, topic, version=version)
    answer.at("topics.0.partitions.0").expect(error_code="NONE", committed_offset=5)


async def _find(peer: Peer, version: int) -> None:
    client = await peer.client()
    (await client.find_coordinator(peer.group, version=version)).expect(error_code="NONE")


async def _describe(peer: Peer, version: int) -> None:
    (member,) = await stable_group(peer, 1)
    answer = await member.client.ask("describe_groups", version, groups=[peer.group])
    answer.at("groups.0").expect(error_code="NONE", group_state="Stable").rows("members", number=1)


async def _list(peer: Peer, version: int) -> None:
    (member,) = await stable_group(peer, 1)
    answer = (await member.client.ask("list_groups", version)).expect(error_code="NONE")
    listed = [row["group_id"] for row in answer["groups"]].count(peer.group)
    peer.require(holds=listed == 1, expected="the group once", received=f"{listed} times")


async def _delete(peer: Peer, version: int) -> None:
    topic, client = await peer.topic(), await peer.client()
    await commit(client, peer.group, topic, {0: 5})
    answer = await client.ask("delete_groups", version, groups_names=[peer.group])
    answer.at("results.0").expect(error_code="NONE", group_id=peer.group)


async def _delete_offset(peer: Peer, version: int) -> None:
    topic, client = await peer.topic(), await peer.client()
    await commit(client, peer.group, topic, {0: 5})
    row = {"name": topic.name, "partitions": [{"partition_index": 0}]}
    answer = (await client.ask("offset_delete", version, group_id=peer.group, topics=[row])).expect(error_code="NONE")
    answer.at("topics.0.partitions.0").expect(error_code="NONE")


async def _beat(peer: Peer, version: int) -> None:
    member = await consumer_member(peer, await peer.topic())
    (await member.beat(version)).expect(error_code="NONE").rows("assignment.topic_partitions", number=1)


async def _describe_consumer(peer: Peer, version: int) -> None:
    member = await joined(peer, await peer.topic())
    answer = await member.client.ask("consumer_group_describe", version, group_ids=[peer.group])
    answer.at("groups.0").expect(error_code="NONE", group_state="Stable").rows("members", number=1)


async def _transaction(peer: Peer, version: int) -> None:
    topic, writer = await peer.topic(), await producer(peer)
    answer = await writer.commit(peer.group, topic, 7, version=version)
    answer.at("topics.0.partitions.0").expect(error_code="NONE")
    (await writer.end(committed=True)).expect(error_code="NONE")


#: by API: what the case does, what must happen, its rules, and the exchange
_EXCHANGES: Final[dict[str, tuple[str, tuple[str, ...], _Exchange]]] = {
    "join_group": ("A member joins an empty group, and leads it.", ("C-JOIN-48", "C-JOIN-49"), _join),
    "sync_group": ("A member of a stable group sends SyncGroup: NONE.", ("C-SYNC-18",), _sync),
    "heartbeat": ("A member of a stable group sends a heartbeat: NONE.", ("C-HB-12",), _heartbeat),
    "leave_group": ("The only member leaves, and is unknown afterwards.", ("C-LEAVE-14",), _leave),
    "offset_commit": ("A client without a member commits an offset: NONE.", ("O-COMMIT-20",), _commit),
    "offset_fetch": ("A committed offset is fetched.", ("O-FETCH-04",), _fetch),
    "find_coordinator": ("The coordinator of a group is looked up: NONE.", ("F-LOC-04",), _find),
    "describe_groups": ("A stable classic group is described with its member.", ("C-ADM-03",), _describe),
    "list_groups": ("A stable classic group is listed once.", ("C-ADM-05",), _list),
    "delete_groups": ("A group without members is deleted: NONE.", ("C-ADM-09",), _delete),
    "offset_delete": ("A committed offset is deleted: NONE.", ("O-DEL-06",), _delete_offset),
    "consumer_group_heartbeat": ("A member joins, and is assigned its topic.", ("M-FENCE-02",), _beat),
    "consumer_group_describe": ("A consumer group is described with its member.", ("M-DESC-01",), _describe_consumer),
    "txn_offset_commit": ("An offset is committed in a transaction: NONE.", ("O-TXN-07",), _transaction),
}


def _register() -> None:
    for api, (text, rules, exchange) in _EXCHANGES.items():
        lowest, highest = spoken(api)
        for version in range(lowest, highest + 1):
            case(f"versions.{api}.{version}", *rules, needs={}, waits_s=3.0, text=text)(_of(api, version, exchange))


def _of(api: str, version: int, exchange: _Exchange) -> Callable[[Peer], Awaitable[None]]:
    async def play(peer: Peer) -> None:
        (await peer.client()).newest(api, least=version, most=version)  # before the topic that it may need
        await exchange(peer, version)

    return play


_register()
