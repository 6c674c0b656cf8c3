"""A member of a consumer group (KIP-848), which a case drives heartbeat by heartbeat."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID, uuid4

from .answers import Answer
from .peer import Client, NotReached, Peer, Topic, reached

#: member epochs with a special meaning: to join, to leave, and to leave for a while as a static member
JOIN, LEAVE, LEAVE_FOR_A_WHILE = 0, -1, -2
#: how many heartbeats a member sends until it has what it waits for, and the seconds between them
_BEATS, _BETWEEN_S = 300, 0.05


@dataclass(slots=True)
class ConsumerMember:
    """A member with its own connection. ``beat`` sets ``member_id`` and ``epoch`` from the answer, and
    ``assigned`` if the answer contains an assignment. ``owned`` is what the next full heartbeat reports: partitions by
    topic id."""

    client: Client
    group: str
    topics: tuple[str, ...]
    member_id: str = field(default_factory=lambda: str(uuid4()))
    instance_id: str | None = None
    epoch: int = JOIN
    rebalance_timeout_ms: int = 10_000
    server_assignor: str | None = None
    owned: dict[str, list[int]] = field(default_factory=dict)
    assigned: dict[str, list[int]] = field(default_factory=dict)

    async def beat(self, version: int | None = None, *, full: bool = False, **changes: Any) -> Answer:
        """Send ConsumerGroupHeartbeat. ``full``: with all fields, as a member sends when it joins or retries. An
        acknowledgement is ``owned_topic_partitions=rows(...)``."""
        request: dict[str, Any] = {
            "group_id": self.group,
            "member_id": self.member_id,
            "member_epoch": self.epoch,
            "rebalance_timeout": -1,
        }
        if full or self.epoch == JOIN:
            request |= {
                "instance_id": self.instance_id,
                "rebalance_timeout": self.rebalance_timeout_ms,
                "subscribed_topic_names": list(self.topics),
                "server_assignor": self.server_assignor,
                "topic_partitions": rows(self.owned),
            }
        answer = await self.client.ask("consumer_group_heartbeat", version, **(request | changes))
        if answer["error_code"] == "NONE":
            self.member_id, self.epoch = answer["member_id"] or self.member_id, answer["member_epoch"]
            if answer["assignment"] is not None:
                assignment = answer["assignment"]["topic_partitions"]
                self.assigned = {row["topic_id"]: sorted(row["partitions"]) for row in assignment if row["partitions"]}
        return answer

    async def acknowledge(self, **changes: Any) -> Answer:
        """Take what is assigned, and report it as owned."""
        self.owned = {topic: list(partitions) for topic, partitions in self.assigned.items()}
        return await self.beat(topic_partitions=rows(self.owned), **changes)

    async def leave(self, epoch: int = LEAVE, **changes: Any) -> Answer:
        """Leave the group, with epoch -1 or -2."""
        return await self.beat(member_epoch=epoch, **changes)

    async def gone(self, epoch: int = LEAVE, **changes: Any) -> Answer:
        """Leave the group as a step that only leads to what the case tests. Raises ``NotReached`` for an error."""
        return reached("ConsumerGroupHeartbeat", await self.leave(epoch, **changes))

    def committing(self, *, member_id: str | None = None, epoch: int | None = None) -> dict[str, Any]:
        """Return the fields of OffsetCommit that tell who commits."""
        return {
            "member_id": self.member_id if member_id is None else member_id,
            "generation_id_or_member_epoch": self.epoch if epoch is None else epoch,
        }

    async def until(self, assigned: dict[str, list[int]]) -> Answer:
        """Send heartbeats, acknowledging each assignment, until this one has come. Raises ``NotReached``."""
        for _ in range(_BEATS):
            answer = await (self.beat() if self.owned == self.assigned else self.acknowledge())
            reached("ConsumerGroupHeartbeat", answer)
            if self.assigned == assigned == self.owned:
                return answer
            await asyncio.sleep(_BETWEEN_S)
        raise NotReached(f"the member has {self.assigned} instead of {assigned} after {_BEATS * _BETWEEN_S:g} s")


def rows(partitions: dict[str, list[int]]) -> list[dict[str, Any]]:
    """Return the rows of a request for partitions by topic id."""
    return [{"topic_id": UUID(topic).bytes, "partitions": each} for topic, each in partitions.items()]


async def consumer_member(peer: Peer, topic: Topic, **attributes: Any) -> ConsumerMember:
    """Return a member of the case's group that subscribes to the topic and has sent nothing yet."""
    return ConsumerMember(await peer.client(), peer.group, (topic.name,), **attributes)


async def joined(peer: Peer, topic: Topic, **attributes: Any) -> ConsumerMember:
    """Return a member that is alone in the group and owns all partitions of the topic. Raises ``NotReached``."""
    member = await consumer_member(peer, topic, **attributes)
    reached("ConsumerGroupHeartbeat", await member.beat())
    await member.until({topic.topic_id: list(range(topic.partitions))})
    return member
