"""Helpers for groups with members of both protocols."""

from __future__ import annotations

import asyncio

from fencepost.protocol.embedded import decode_assignment
from fencepost.protocol.partitions import TopicPartition

from .answers import Answer, NotSupported
from .broker_settings import POLICY, UPGRADES
from .classic_member import ClassicMember
from .consumer_member import ConsumerMember
from .peer import NotReached, Peer, Topic, reached

#: how many rounds two members need at most, and the seconds between them
_ROUNDS, _BETWEEN_S = 200, 0.05


def assigned_to(synced: Answer) -> list[int]:
    """Return the partitions in the answer to SyncGroup."""
    data = synced["assignment"]
    return sorted(each.partition for each in decode_assignment(data).partitions) if data else []


async def joins(peer: Peer, consumer: ConsumerMember) -> Answer:
    """Send the first heartbeat of a member that joins a classic group. Raises ``NotSupported`` if the broker refuses it
    as one without upgrades does, and does not report a policy with upgrades (X-UP-02)."""
    answer = await consumer.beat()
    if answer["error_code"] == "GROUP_ID_NOT_FOUND" and peer.settings.get(POLICY, "").lower() not in UPGRADES:
        raise NotSupported(f"the broker does not upgrade classic groups, and reports no {POLICY} that has upgrades")
    return answer


async def rolled(topic: Topic, classic: ClassicMember, consumer: ConsumerMember) -> list[int]:
    """Drive both members until the topic's partitions are divided between them; return those of the classic member.
    Raises ``NotReached`` if that does not happen."""
    mine: list[int] = []
    for _ in range(_ROUNDS):
        answer = await classic.heartbeat()
        if answer["error_code"] == "REBALANCE_IN_PROGRESS":
            reached("JoinGroup", await classic.join())
            synced = await classic.sync()
            if synced["error_code"] == "NONE":
                mine = assigned_to(synced)
                classic.owned = tuple(TopicPartition(topic.name, each) for each in mine)
        else:
            reached("Heartbeat", answer)
        await (consumer.beat() if consumer.owned == consumer.assigned else consumer.acknowledge())
        theirs = consumer.owned.get(topic.topic_id, [])
        if mine and theirs and sorted(mine + theirs) == list(range(topic.partitions)):
            return mine
        await asyncio.sleep(_BETWEEN_S)
    raise NotReached(f"the partitions were not divided: {mine} and {consumer.owned}")
