"""A member of a consumer group that the suite plays itself, beside the client.

It takes each assignment at once, unless ``keeps`` is set. So a case decides when the coordinator can
give a partition to the client.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias
from uuid import UUID, uuid4

from fencepost.remote.connection import Connection

from ..cases.peer import NotReached

#: partitions, each with the id of its topic
Owned: TypeAlias = "frozenset[tuple[UUID, int]]"
#: how long it may keep what it must give up, and the pause between its heartbeats
_REBALANCE_MS: Final = 120_000
_PAUSE_S: Final = 0.2
_JOIN, _LEAVE = 0, -1
#: the version of ConsumerGroupHeartbeat
_VERSION: Final = 0


@dataclass(slots=True)
class Companion:
    """``keeps``: it does not give up partitions for now. ``owned``: what it has reported last, and ``target``: what the
    coordinator assigned to it last."""

    connection: Connection
    group: str
    topic: str
    keeps: bool = False
    owned: Owned = frozenset()
    target: Owned = frozenset()
    _member_id: str = field(default_factory=lambda: str(uuid4()))
    _epoch: int = _JOIN
    _task: asyncio.Task[None] | None = None
    _ending: bool = False

    async def join(self) -> None:
        """Join, and send heartbeats from now on. Raises ``NotReached`` for an error."""
        await self._beat(rebalance_timeout=_REBALANCE_MS, subscribed_topic_names=[self.topic], topic_partitions=[])
        self._task = asyncio.ensure_future(self._beats())

    async def owns(self, count: int, within_s: float = 20.0) -> None:
        """Wait until it has so many partitions, and no other assignment. Raises ``NotReached``."""
        try:
            async with asyncio.timeout(within_s):
                while len(self.owned) != count or self.owned != self.target:
                    if self._task is not None and self._task.done():
                        self._task.result()
                    await asyncio.sleep(_PAUSE_S / 4)
        except TimeoutError:
            raise NotReached(f"a member of the suite had {len(self.owned)} partitions, not {count}") from None

    async def leave(self) -> None:
        """Leave the group."""
        await self._end()
        await self._beat(member_epoch=_LEAVE)

    async def stop(self) -> None:
        """Send nothing more, and close the connection."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await self.connection.close()

    async def _end(self) -> None:
        """End the heartbeats behind an answer: a request that is cancelled would break the connection."""
        self._ending = True
        if self._task is not None:
            await self._task

    async def _beats(self) -> None:
        while not self._ending:
            await asyncio.sleep(_PAUSE_S)
            if self.owned != self.target and not (self.keeps and self.owned - self.target):
                self.owned = self.target
                await self._beat(topic_partitions=_rows(self.owned))
            else:
                await self._beat()

    async def _beat(self, **changes: Any) -> None:
        asked = {"group_id": self.group, "member_id": self._member_id, "member_epoch": self._epoch}
        asked |= {"rebalance_timeout": -1, "subscribed_topic_names": None, "topic_partitions": None}
        try:
            answer: Any = await self.connection.ask("consumer_group_heartbeat", _VERSION, asked | changes)
        except OSError as broken:
            raise NotReached(f"a member of the suite lost its connection: {broken}") from None
        if answer.error_code.value:
            raise NotReached(f"a member of the suite was answered {answer.error_code.name}")
        self._epoch = answer.member_epoch
        if answer.assignment is not None:
            rows = answer.assignment.topic_partitions
            self.target = frozenset((UUID(str(row.topic_id)), index) for row in rows for index in row.partitions)


def _rows(owned: Owned) -> list[dict[str, Any]]:
    topics = {topic for topic, _ in owned}
    return [
        {"topic_id": topic.bytes, "partitions": sorted(index for each, index in owned if each == topic)}
        for topic in topics
    ]
