"""One node of several on a database: it stands by until nobody leads, then it does, until it ends.

A node that has lost its lease ends: nothing of what it held may be used any more. Started again, it stands by."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Final

from fencepost.host.lookup import Endpoint
from fencepost.store import PostgresLease, Seen, StoreError

from ..node import TOPIC_KIND, Node
from ..server import Server

_log = logging.getLogger(__name__)

#: so often within its lease a node is heard of
_BEATS: Final = 4


class LeaseLost(StoreError):
    """Another node may lead by now."""


class Member:
    """``lead`` makes the node that leads in an epoch, loaded, and sets the event that it is given once another host has
    taken a partition over. ``topics``: those that who leads makes if they are not there."""

    def __init__(
        self,
        server: Server,
        lease: PostgresLease,
        lead: Callable[[int, asyncio.Event], Awaitable[Node]],
        topics: Mapping[str, int],
    ) -> None:
        self._wanted = topics
        self._server, self._lease, self._lead = server, lease, lead
        self._epoch: int | None = None
        self._renewed = 0.0
        self._leading: asyncio.Task[Node] | None = None
        self.fenced = asyncio.Event()

    async def run(self, stop: asyncio.Event) -> None:
        """Until it is told to end. Raises ``LeaseLost``, and ``StoreError`` if it cannot lead."""
        loop = asyncio.get_running_loop()
        waits = [loop.create_task(each.wait()) for each in (stop, self.fenced)]
        try:
            while not stop.is_set():
                if self.fenced.is_set():
                    raise LeaseLost("another node has taken over; start this one again, to stand by")
                began = loop.time()
                try:
                    await self._beat(began)
                except LeaseLost:
                    raise
                except StoreError as failure:
                    self._without_database(began, failure)
                if self._leading is not None and self._leading.done():
                    await self._take_over(self._leading.result())
                more = [] if self._leading is None else [self._leading]
                await asyncio.wait(
                    [*waits, *more], timeout=self._lease.seconds / _BEATS, return_when=asyncio.FIRST_COMPLETED
                )
        finally:
            for each in waits:
                each.cancel()
            if self._leading is not None:
                self._leading.cancel()
                await asyncio.gather(self._leading, return_exceptions=True)

    async def leave(self) -> None:
        """Another may lead at once."""
        if self._epoch is not None:
            with suppress(StoreError):
                await self._lease.release(self._epoch)

    async def _beat(self, now: float) -> None:
        if self._epoch is not None:
            if not await self._lease.renew(self._epoch):
                raise LeaseLost("another node leads by now; start this one again, to stand by")
            self._renewed = now
        seen = await look(self._server.node, self._lease)
        if self._epoch is None and seen.leader is None:
            self._epoch = await self._lease.claim()
            if self._epoch is not None:
                self._renewed = now
                _log.info("nobody leads: this node does, in epoch %s", self._epoch)
                self._leading = asyncio.ensure_future(self._lead(self._epoch, self.fenced))

    async def _take_over(self, node: Node) -> None:
        self._leading = None
        node.peers = self._server.node.peers
        await self._server.become(node, self._wanted)
        _log.info("this node leads in epoch %s", self._epoch)

    def _without_database(self, now: float, failure: StoreError) -> None:
        _log.warning("the database cannot be asked who leads: %s", failure)
        if self._epoch is not None and now - self._renewed > self._lease.seconds:
            raise LeaseLost(f"the lease is over, and the database does not renew it ({failure}); start this node again")


async def look(node: Node, lease: PostgresLease) -> Seen:
    """Has a node know who lives and, while it stands by, who leads and which topics there are, to tell clients."""
    seen = await lease.beat()
    node.peers = tuple(
        Endpoint(each.node_id, each.host, each.port) for each in seen.peers if each.node_id != node.options.node_id
    )
    if node.leads:
        return seen
    living = {each.node_id for each in node.peers}
    node.leader_id = seen.leader if seen.leader in living else None
    node.leader_epoch = seen.epoch
    rows = {name: json.loads(text) for name, text in (await node.store.kept()).values.get(TOPIC_KIND, {}).items()}
    topics = node.topics
    for topic in topics:
        row = rows.get(topic.name)
        if row is None or (row["id"], row["partitions"]) != (topic.topic_id.hex(), len(topic.logs)):
            topics.delete(topic)
    for name, row in rows.items():
        if name not in topics.by_name:
            topics.create(name, row["partitions"], row["config"], bytes.fromhex(row["id"]))
    return seen
