"""A member of a classic group, which a case drives request by request."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from fencepost.protocol.embedded import Assignment, Subscription, encode_assignment, encode_subscription
from fencepost.protocol.partitions import TopicPartition

from .answers import Answer
from .broker_settings import allowed_session_ms
from .peer import Client, NotReached, Peer, reached

#: the topic that members subscribe to where it need not exist: a classic coordinator does not read subscriptions
TOPIC: Final = "events"
#: seconds between two heartbeats of a member that waits for something
_BETWEEN_S: Final = 0.05


@dataclass(slots=True)
class ClassicMember:
    """A member with its own connection. The attributes are what its next requests contain; ``join`` sets
    ``member_id``, ``generation_id`` and ``protocol_name`` from the answer."""

    client: Client
    group: str
    topics: tuple[str, ...] = (TOPIC,)
    instance_id: str | None = None
    member_id: str = ""
    generation_id: int = -1
    session_timeout_ms: int = 10_000
    rebalance_timeout_ms: int = 10_000
    protocol_type: str = "consumer"
    assignors: tuple[str, ...] = ("range",)
    protocol_name: str = ""
    owned: tuple[TopicPartition, ...] = ()

    async def join(self, version: int | None = None, **changes: Any) -> Answer:
        """Send JoinGroup once; ``changes`` replace fields of the request."""
        metadata = encode_subscription(Subscription(self.topics, owned_partitions=self.owned))
        request = {
            "group_id": self.group,
            "session_timeout": self.session_timeout_ms,
            "rebalance_timeout": self.rebalance_timeout_ms,
            "member_id": self.member_id,
            "group_instance_id": self.instance_id,
            "protocol_type": self.protocol_type,
            "protocols": [{"name": name, "metadata": metadata} for name in self.assignors],
        }
        answer = await self.client.ask("join_group", version, **(request | changes))
        if answer["member_id"]:
            self.member_id = answer["member_id"]
        if answer["error_code"] == "NONE":
            self.generation_id = answer["generation_id"]
            self.protocol_name = answer["protocol_name"]
        return answer

    async def enter(self, version: int | None = None) -> Answer:
        """Join, a second time if the first answer is MEMBER_ID_REQUIRED. Raises ``NotReached`` if the member is not
        admitted."""
        answer = await self.join(version)
        if answer["error_code"] == "MEMBER_ID_REQUIRED":
            answer = await self.join(version)
        return reached("JoinGroup", answer)

    async def sync(
        self,
        assignment: Mapping[str, Sequence[TopicPartition]] | None = None,
        version: int | None = None,
        **changes: Any,
    ) -> Answer:
        """Send SyncGroup. ``assignment``: the partitions of each member, from the leader."""
        rows = [
            {"member_id": member, "assignment": encode_assignment(Assignment(tuple(partitions)))}
            for member, partitions in (assignment or {}).items()
        ]
        request = {**self._identity(), "assignments": rows}
        request |= {"protocol_type": self.protocol_type, "protocol_name": self.protocol_name}
        return await self.client.ask("sync_group", version, **(request | changes))

    async def heartbeat(self, version: int | None = None, **changes: Any) -> Answer:
        """Send Heartbeat."""
        return await self.client.ask("heartbeat", version, **(self._identity() | changes))

    async def leave(self, version: int | None = None, **changes: Any) -> Answer:
        """Send LeaveGroup for this member."""
        row = {"member_id": self.member_id, "group_instance_id": self.instance_id}
        request = {"group_id": self.group, "member_id": self.member_id, "members": [row]}
        return await self.client.ask("leave_group", version, **(request | changes))

    def committing(self, *, member_id: str | None = None, epoch: int | None = None) -> dict[str, Any]:
        """Return the fields of OffsetCommit that tell who commits."""
        return {
            "member_id": self.member_id if member_id is None else member_id,
            "generation_id_or_member_epoch": self.generation_id if epoch is None else epoch,
        }

    @property
    def session_s(self) -> float:
        """Its session timeout in seconds."""
        return self.session_timeout_ms / 1000

    def _identity(self) -> dict[str, Any]:
        return {
            "group_id": self.group,
            "generation_id": self.generation_id,
            "member_id": self.member_id,
            "group_instance_id": self.instance_id,
        }


async def classic_member(peer: Peer, **attributes: Any) -> ClassicMember:
    """Return a member of the case's group that has sent nothing yet. Its session timeout is one that the broker
    allows."""
    member = ClassicMember(await peer.client(), peer.group, **attributes)
    member.session_timeout_ms = allowed_session_ms(peer.settings, member.session_timeout_ms)
    return member


async def stable_group(peer: Peer, count: int, **attributes: Any) -> list[ClassicMember]:
    """Return the members of a stable group, the leader first; each has one partition of ``TOPIC``. Raises
    ``NotReached`` if the group does not form."""
    members = [await classic_member(peer, **attributes) for _ in range(count)]
    answers = [await members[0].enter()]
    await settle(members[:1], answers)
    for number in range(2, count + 1):
        newest = peer.start(members[number - 1].enter())
        answers = [*await asyncio.gather(*(_rejoin(each) for each in members[: number - 1])), await newest]
        await settle(members[:number], answers)
    leader = next(each for each, answer in zip(members, answers, strict=True) if answer["leader"] == each.member_id)
    return [leader, *(each for each in members if each is not leader)]


async def until_refused(member: ClassicMember, within_s: float = 10.0) -> Answer:
    """Send heartbeats until one is answered with an error; return that answer. Raises ``NotReached`` if none is."""
    for _ in range(round(within_s / _BETWEEN_S)):
        answer = await member.heartbeat()
        if answer["error_code"] != "NONE":
            return answer
        await asyncio.sleep(_BETWEEN_S)
    raise NotReached(f"no heartbeat reported a rebalance within {within_s:g} s")


async def until_rebalance(member: ClassicMember, within_s: float = 10.0) -> Answer:
    """Send heartbeats until one reports a rebalance. Raises ``NotReached`` if none does, or for another error."""
    answer = await until_refused(member, within_s)
    return answer if answer["error_code"] == "REBALANCE_IN_PROGRESS" else reached("Heartbeat", answer)


async def _rejoin(member: ClassicMember) -> Answer:
    await until_rebalance(member)
    return reached("JoinGroup", await member.join())


async def settle(members: Sequence[ClassicMember], joined: Sequence[Answer]) -> None:
    """Send the SyncGroup of each member that joined, with the leader's assignment: a partition for each. Raises
    ``NotReached`` for an error."""
    assignment = {each.member_id: (TopicPartition(TOPIC, index),) for index, each in enumerate(members)}
    answers = await asyncio.gather(
        *(
            member.sync(assignment if answer["leader"] == member.member_id else None)
            for member, answer in zip(members, joined, strict=True)
        )
    )
    for answer in answers:
        reached("SyncGroup", answer)
