"""One of several nodes on a database. It stands by until no node leads, then it leads until it stops.

A node that has lost its lease stops, because its state in memory is no longer valid. After a restart it stands by."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Final

from fencepost.host.lookup import Endpoint
from fencepost.store import PostgresLease, Seen, StoreError
from fencepost_server.node import TOPIC_KIND, Node
from fencepost_server.server import Server

_log = logging.getLogger(__name__)

#: beats of a node within the time of a lease
_BEATS: Final = 4


class LeaseLost(StoreError):
    """The node has lost its lease, so another node may lead."""


class Member:
    """The server's part in the cluster. ``lead`` loads and returns a node that leads in an epoch; it sets its second
    argument, an event, when another host has taken over a partition. ``topics`` are created by the leader if they do
    not exist, with their numbers of partitions."""

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
        """Stand by and lead until ``stop`` is set. Raises ``LeaseLost``, and ``StoreError`` if the node cannot lead."""
        loop = asyncio.get_running_loop()
        waits = [loop.create_task(each.wait()) for each in (stop, self.fenced)]
        try:
            while not stop.is_set():
                if self.fenced.is_set():
                    raise LeaseLost("another node has taken over; restart this one to stand by")
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
        """Release the lease, so that another node may lead immediately."""
        if self._epoch is not None:
            with suppress(StoreError):
                await self._lease.release(self._epoch)

    async def _beat(self, now: float) -> None:
        if self._epoch is not None:
            if not await self._lease.renew(self._epoch):
                raise LeaseLost("another node leads now; restart this one to stand by")
            self._renewed = now
        seen = await look(self._server.node, self._lease)
        if self._epoch is None and seen.leader is None:
            self._epoch = await self._lease.claim()
            if self._epoch is not None:
                self._renewed = now
                _log.info("no node leads: this node takes over in epoch %s", self._epoch)
                self._leading = asyncio.ensure_future(self._lead(self._epoch, self.fenced))

    async def _take_over(self, node: Node) -> None:
        self._leading = None
        node.peers = self._server.node.peers
        await self._server.become(node, self._wanted)
        _log.info("this node leads in epoch %s", self._epoch)

    def _without_database(self, now: float, failure: StoreError) -> None:
        _log.warning("the lease could not be checked in the database: %s", failure)
        if self._epoch is not None and now - self._renewed > self._lease.seconds:
            raise LeaseLost(f"the lease has expired and could not be renewed ({failure}); restart this node")


async def look(node: Node, lease: PostgresLease) -> Seen:
    """Update a node's list of live nodes and, while it stands by, its leader and topics, which its answers to clients
    name. Returns the state of the lease."""
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
